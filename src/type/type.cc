// SPDX-License-Identifier: Apache-2.0
#include "type/type.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "type/assume.h"

namespace treadle {
namespace {

template <typename DimsAgree>
bool same(const Type& a, const Type& b, DimsAgree dims_agree) {
  if (a == b) return true;
  if (!a || !b || a->kind != b->kind) return false;
  auto all_same = [&](const std::vector<Type>& x, const std::vector<Type>& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                      [&](const Type& s, const Type& t) { return same(s, t, dims_agree); });
  };
  switch (a->kind) {
    case TypeKind::Tensor: {
      const TensorType *s = as_tensor(a), *t = as_tensor(b);
      return s->dtype == t->dtype &&
             std::equal(s->shape.begin(), s->shape.end(), t->shape.begin(), t->shape.end(), dims_agree);
    }
    case TypeKind::Tuple:
      return all_same(as_tuple(a)->fields, as_tuple(b)->fields);
    case TypeKind::Func:
      return all_same(as_func(a)->params, as_func(b)->params) &&
             same(as_func(a)->result, as_func(b)->result, dims_agree);
    case TypeKind::Var:
      return as_type_var(a)->name == as_type_var(b)->name;
  }
  return false;
}

std::string join(const std::vector<Type>& types) {
  std::string text;
  for (size_t i = 0; i < types.size(); ++i) text += (i ? ", " : "") + to_string(types[i]);
  return text;
}

}  // namespace

TupleType::TupleType(std::vector<Type> all) : TypeNode(TypeKind::Tuple), fields(std::move(all)) {
  for (const Type& field : fields) {
    const TupleType* tuple = as_tuple(field);
    leaves += tuple ? tuple->leaves : 1;
    if (tuple) depth = std::max(depth, tuple->depth + 1);
  }
  leaves = std::max<int64_t>(leaves, 1);
  if (leaves > kMaxLeaves)
    fail(ErrorCode::Limit, "a tuple has {} fields, counted through nested tuples, at most {} are allowed", leaves,
         kMaxLeaves);
  if (depth > kMaxDepth) fail(ErrorCode::Limit, "tuples are nested deeper than {}", kMaxDepth);
}

std::vector<const TensorType*> flatten_tuple_type(const Type& type) {
  std::vector<const TensorType*> leaves;
  std::vector<Type> work = {type};
  while (!work.empty()) {
    const Type next = std::move(work.back());
    work.pop_back();
    if (const TupleType* tuple = as_tuple(next))
      work.insert(work.end(), tuple->fields.rbegin(), tuple->fields.rend());
    else
      leaves.push_back(as_tensor(next));
  }
  return leaves;
}

int64_t leaf_offset(const TupleType& tuple, int index) {
  size_t offset = 0;
  for (int i = 0; i < index; ++i) offset += flatten_tuple_type(tuple.fields[i]).size();
  return static_cast<int64_t>(offset);
}

void for_each_anonymous(const Type& type, const std::function<void(const std::string&)>& f) {
  if (const TensorType* tensor = as_tensor(type)) {
    for (const Dim& dim : tensor->shape) {
      if (dim.is_const()) continue;
      for (const std::string& name : dim.symbols()) {
        if (name.starts_with('?')) f(name);
      }
    }
  } else if (const TupleType* tuple = as_tuple(type)) {
    for (const Type& field : tuple->fields) for_each_anonymous(field, f);
  } else if (const FuncType* func = as_func(type)) {
    for (const Type& param : func->params) for_each_anonymous(param, f);
    for_each_anonymous(func->result, f);
  }
}

bool is_complete(const Type& type) {
  if (!type) return false;
  if (const TupleType* tuple = as_tuple(type))
    return std::all_of(tuple->fields.begin(), tuple->fields.end(), is_complete);
  if (const FuncType* func = as_func(type)) {
    return std::all_of(func->params.begin(), func->params.end(), is_complete) && is_complete(func->result);
  }
  return true;
}

bool equal(const Type& a, const Type& b) {
  return same(a, b, [](const Dim& x, const Dim& y) { return x == y; });
}

bool compatible(const Type& a, const Type& b) {
  return same(a, b, [](const Dim& x, const Dim& y) { return x == y || is_anonymous(x) || is_anonymous(y); });
}

uint64_t hash(const Type& type) {
  if (!type) return 0;
  uint64_t h = static_cast<uint64_t>(type->kind) + 1;
  if (const TensorType* tensor = as_tensor(type)) {
    h = hash_combine(h, static_cast<uint64_t>(tensor->dtype.code) << 8 | tensor->dtype.bits);
    for (const Dim& dim : tensor->shape) h = hash_combine(h, dim.hash());
  } else if (const TupleType* tuple = as_tuple(type)) {
    for (const Type& field : tuple->fields) h = hash_combine(h, hash(field));
  } else if (const FuncType* func = as_func(type)) {
    for (const Type& param : func->params) h = hash_combine(h, hash(param));
    h = hash_combine(h, hash(func->result));
  } else {
    h = hash_string(as_type_var(type)->name, h);
  }
  return h;
}

Type substitute(const Type& type, const std::map<std::string, Dim>& symbols) {
  if (!type || symbols.empty()) return type;
  auto all = [&](std::vector<Type> types) {
    for (Type& t : types) t = substitute(t, symbols);
    return types;
  };
  switch (type->kind) {
    case TypeKind::Tensor: {
      Shape shape = as_tensor(type)->shape;
      for (Dim& dim : shape) dim = dim.substitute(symbols);
      return tensor_type(std::move(shape), as_tensor(type)->dtype);
    }
    case TypeKind::Tuple:
      return tuple_type(all(as_tuple(type)->fields));
    case TypeKind::Func: {
      const FuncType* func = as_func(type);
      return func_type(all(func->params), substitute(func->result, symbols), func->type_params);
    }
    case TypeKind::Var:
      return type;
  }
  return type;
}

std::string to_string(const Type& type) {
  if (!type) return "_";
  if (const TensorType* tensor = as_tensor(type)) {
    if (tensor->shape.empty()) return to_string(tensor->dtype);
    return fmt::format("Tensor[{}, {}]", to_string(tensor->shape), to_string(tensor->dtype));
  }
  if (const TupleType* tuple = as_tuple(type))
    return fmt::format("({}{})", join(tuple->fields), tuple->fields.size() == 1 ? "," : "");
  if (const FuncType* func = as_func(type)) {
    std::string params;
    for (const std::string& name : func->type_params) params += (params.empty() ? "" : ", ") + name;
    return fmt::format("fn {}({}) -> {}", params.empty() ? "" : "[" + params + "]", join(func->params),
                       to_string(func->result));
  }
  return as_type_var(type)->name;
}

Shape broadcast(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()));
  for (size_t i = 0; i < result.size(); ++i) {  // counted from the right
    const Dim x = i < a.size() ? a[a.size() - 1 - i] : Dim(1);
    const Dim y = i < b.size() ? b[b.size() - 1 - i] : Dim(1);
    Dim& out = result[result.size() - 1 - i];
    if (x == y || y.is(1))
      out = x;
    else if (x.is(1))
      out = y;
    else if (!assume(Assumption::Kind::Broadcast, x, y)) {
      fail(ErrorCode::TypeMismatch, "extents {} and {} do not broadcast: shapes {} and {}", to_string(x), to_string(y),
           to_string(a), to_string(b));
    } else if (x.is_const())
      out = x;
    else if (y.is_const())
      out = y;
    else
      out = max(x, y);
  }
  return result;
}

}  // namespace treadle
