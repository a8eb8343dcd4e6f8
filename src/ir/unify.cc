// SPDX-License-Identifier: Apache-2.0
// Unification of types. Types are shallow (the parser bounds their nesting), so recursion over a type is safe.
#include "ir/unify.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "base/error.h"
#include "type/assume.h"

namespace treadle::ir {
namespace {

struct Placeholder : TypeVar {
  explicit Placeholder(size_t id) : TypeVar(fmt::format("${}", id)), id(id) {}
  const size_t id;
};

const Placeholder* as_placeholder(const Type& type) {
  const TypeVar* var = as_type_var(type);
  return var && var->name.starts_with('$') ? static_cast<const Placeholder*>(var) : nullptr;
}

// Rebuilds a type from the leaves; `leaf` gives the replacement of a null type or a type variable. Shares what does not
// change.
Type map_type(const Type& type, const std::function<Type(const Type&)>& leaf) {
  if (!type || type->kind == TypeKind::Var) return leaf(type);
  if (type->kind == TypeKind::Tensor) return type;
  bool changed = false;
  auto map_all = [&](const std::vector<Type>& parts) {
    std::vector<Type> result;
    result.reserve(parts.size());
    for (const Type& part : parts) {
      result.push_back(map_type(part, leaf));
      changed |= result.back() != part;
    }
    return result;
  };
  if (const TupleType* tuple = as_tuple(type)) {
    std::vector<Type> fields = map_all(tuple->fields);
    return changed ? tuple_type(std::move(fields)) : type;
  }
  const FuncType* func = as_func(type);
  std::vector<Type> params = map_all(func->params);
  Type result = map_type(func->result, leaf);
  changed |= result != func->result;
  return changed ? func_type(std::move(params), std::move(result), func->type_params) : type;
}

Type substitute_type_vars(const Type& type, const std::map<std::string, Type>& values) {
  return map_type(type, [&](const Type& leaf) {
    if (!leaf) return leaf;
    const auto found = values.find(as_type_var(leaf)->name);
    return found == values.end() ? leaf : found->second;
  });
}

// Where a parameter's extent is one anonymous symbol, the argument's extent says what it is in this call.
void match_extents(const Type& param, const Type& arg, std::map<std::string, Dim>& values) {
  if (!param || !arg || param->kind != arg->kind) return;
  if (const TensorType* tensor = as_tensor(param)) {
    const Shape& actual = as_tensor(arg)->shape;
    for (size_t i = 0; i < tensor->shape.size() && i < actual.size(); ++i) {
      const std::optional<std::string> name = tensor->shape[i].as_symbol();
      if (name && name->starts_with('?')) values.emplace(*name, actual[i]);
    }
  } else if (const TupleType* tuple = as_tuple(param)) {
    const TupleType* actual = as_tuple(arg);
    for (size_t i = 0; i < tuple->fields.size() && i < actual->fields.size(); ++i) {
      match_extents(tuple->fields[i], actual->fields[i], values);
    }
  }
}

[[noreturn]] void mismatch(const Type& a, const Type& b, const char* why) {
  fail(ErrorCode::TypeMismatch, "{} and {} {}", to_string(a), to_string(b), why);
}

}  // namespace

Type join_types(const Type& a, const Type& b) {
  if (!a || !b) return nullptr;
  if (a == b) return a;
  if (a->kind != b->kind) mismatch(a, b, "are of different kinds");
  if (const TensorType* s = as_tensor(a)) {
    const TensorType* t = as_tensor(b);
    if (s->dtype != t->dtype) mismatch(a, b, "have different dtypes");
    if (s->shape.size() != t->shape.size()) mismatch(a, b, "have different ranks");
    Shape shape;
    for (size_t i = 0; i < s->shape.size(); ++i) {
      shape.push_back(s->shape[i] == t->shape[i] ? s->shape[i] : Dim::any());
    }
    return tensor_type(std::move(shape), s->dtype);
  }
  if (const TupleType* s = as_tuple(a)) {
    const TupleType* t = as_tuple(b);
    if (s->fields.size() != t->fields.size()) mismatch(a, b, "have different lengths");
    std::vector<Type> fields;
    for (size_t i = 0; i < s->fields.size(); ++i) fields.push_back(join_types(s->fields[i], t->fields[i]));
    return tuple_type(std::move(fields));
  }
  Unifier unifier;
  unifier.unify(unifier.open(a), unifier.open(b));
  return a;
}

Type loop_type(const std::vector<Type>& initial, const Type& body, int num_scanned, const Dim& trip_count) {
  if (!body) return nullptr;
  const TupleType* outputs = as_tuple(body);
  if (!outputs || outputs->fields.size() != initial.size() + static_cast<size_t>(num_scanned)) {
    fail(ErrorCode::TypeMismatch,
         "the body of a loop with {} carried and {} scanned values must give a tuple of {}, but gives {}",
         initial.size(), num_scanned, initial.size() + static_cast<size_t>(num_scanned), to_string(body));
  }
  std::vector<Type> fields;
  for (size_t i = 0; i < initial.size(); ++i) {
    fields.push_back(join_types(initial[i], outputs->fields[i]));
    if (!fields.back()) return nullptr;
  }
  for (size_t i = initial.size(); i < outputs->fields.size(); ++i) {
    const Type& scanned = outputs->fields[i];
    if (!scanned || (as_type_var(scanned) != nullptr)) return nullptr;
    const TensorType* tensor = as_tensor(scanned);
    if (!tensor)
      fail(ErrorCode::TypeMismatch, "a scanned value of a loop must be a tensor, but is {}", to_string(scanned));
    Shape shape{trip_count};
    shape.insert(shape.end(), tensor->shape.begin(), tensor->shape.end());
    fields.push_back(tensor_type(std::move(shape), tensor->dtype));
  }
  return tuple_type(std::move(fields));
}

bool same_up_to_anonymous(const Type& a, const Type& b) {
  if (a == b) return true;
  if (!a || !b || a->kind != b->kind) return false;
  const auto all_same = [](const std::vector<Type>& x, const std::vector<Type>& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), same_up_to_anonymous);
  };
  switch (a->kind) {
    case TypeKind::Tensor: {
      const TensorType *s = as_tensor(a), *t = as_tensor(b);
      const auto same = [](const Dim& x, const Dim& y) { return x == y || (is_anonymous(x) && is_anonymous(y)); };
      return s->dtype == t->dtype &&
             std::equal(s->shape.begin(), s->shape.end(), t->shape.begin(), t->shape.end(), same);
    }
    case TypeKind::Tuple:
      return all_same(as_tuple(a)->fields, as_tuple(b)->fields);
    case TypeKind::Func: {
      const FuncType *s = as_func(a), *t = as_func(b);
      return s->type_params.size() == t->type_params.size() && all_same(s->params, t->params) &&
             same_up_to_anonymous(s->result, t->result);
    }
    case TypeKind::Var:
      return as_type_var(a)->name == as_type_var(b)->name;
  }
  return false;
}

Type Unifier::fresh() {
  bound_.push_back(nullptr);
  return std::make_shared<Placeholder>(bound_.size() - 1);
}

Type Unifier::open(const Type& type) {
  return map_type(type, [this](const Type& leaf) { return leaf ? leaf : fresh(); });
}

const Type& Unifier::find(const Type& type) const {
  const Type* current = &type;
  while (const Placeholder* hole = as_placeholder(*current)) {
    if (!bound_[hole->id]) break;
    current = &bound_[hole->id];
  }
  return *current;
}

Type Unifier::resolve(const Type& type) const {
  return map_type(type, [this](const Type& leaf) {
    if (!leaf) return leaf;
    const Type& known = find(leaf);
    return known == leaf || as_placeholder(known) ? known : resolve(known);
  });
}

Type Unifier::close(const Type& type) const {
  return map_type(resolve(type), [](const Type& leaf) { return as_placeholder(leaf) ? nullptr : leaf; });
}

bool Unifier::occurs(size_t id, const Type& type) const {
  bool found = false;
  map_type(resolve(type), [&](const Type& leaf) {
    const Placeholder* hole = as_placeholder(leaf);
    found |= hole && hole->id == id;
    return leaf;
  });
  return found;
}

void Unifier::unify(const Type& a, const Type& b) {
  const Type x = find(a), y = find(b);
  if (x == y) return;
  const Placeholder *p = as_placeholder(x), *q = as_placeholder(y);
  if (p && q && p->id == q->id) return;
  if (p || q) {
    const size_t id = p ? p->id : q->id;
    const Type& value = p ? y : x;
    if (occurs(id, value)) fail(ErrorCode::TypeMismatch, "a type would contain itself: {}", to_string(resolve(value)));
    bound_[id] = value;
    ++bound_count_;
    return;
  }
  unify_parts(x, y);
}

void Unifier::unify_parts(const Type& a, const Type& b) {
  if (!a || !b || a->kind != b->kind) mismatch(resolve(a), resolve(b), "are of different kinds");
  switch (a->kind) {
    case TypeKind::Tensor: {
      const TensorType *s = as_tensor(a), *t = as_tensor(b);
      if (s->dtype != t->dtype) mismatch(a, b, "have different dtypes");
      if (s->shape.size() != t->shape.size()) mismatch(a, b, "have different ranks");
      for (size_t i = 0; i < s->shape.size(); ++i) {
        if (!assume_equal(s->shape[i], t->shape[i])) mismatch(a, b, "have different extents");
      }
      return;
    }
    case TypeKind::Tuple: {
      const TupleType *s = as_tuple(a), *t = as_tuple(b);
      if (s->fields.size() != t->fields.size()) mismatch(resolve(a), resolve(b), "have different lengths");
      for (size_t i = 0; i < s->fields.size(); ++i) unify(s->fields[i], t->fields[i]);
      return;
    }
    case TypeKind::Func: {
      const FuncType *s = as_func(a), *t = as_func(b);
      if (s->params.size() != t->params.size()) mismatch(resolve(a), resolve(b), "take different numbers of arguments");
      Type left = a, right = b;
      if (!s->type_params.empty() && s->type_params.size() == t->type_params.size()) {
        std::map<std::string, Type> names;  // both are polymorphic: equal up to the names of their parameters
        for (size_t i = 0; i < s->type_params.size(); ++i)
          names[t->type_params[i]] = std::make_shared<TypeVar>(s->type_params[i]);
        right = substitute_type_vars(func_type(t->params, t->result), names);
      } else {
        if (!s->type_params.empty()) left = instantiate(*s);
        if (!t->type_params.empty()) right = instantiate(*t);
      }
      s = as_func(left), t = as_func(right);
      for (size_t i = 0; i < s->params.size(); ++i) unify(s->params[i], t->params[i]);
      unify(s->result, t->result);
      return;
    }
    case TypeKind::Var:
      if (as_type_var(a)->name != as_type_var(b)->name) mismatch(a, b, "are different type parameters");
      return;
  }
}

Type Unifier::instantiate(const FuncType& func) {
  std::map<std::string, Type> values;
  for (const std::string& name : func.type_params) values[name] = fresh();
  return substitute_type_vars(func_type(func.params, func.result), values);
}

Type Unifier::apply(const Type& callee, const std::vector<Type>& args, bool once) {
  const Type known = find(callee);
  if (as_placeholder(known)) {
    const Type result = fresh();
    unify(known, func_type(args, result));
    return result;
  }
  const FuncType* func = as_func(known);
  if (!func)
    fail(ErrorCode::TypeMismatch, "a value of type {} is called, but is no function", to_string(resolve(known)));
  if (func->params.size() != args.size()) {
    fail(ErrorCode::TypeMismatch, "a function of type {} is called with {} arguments", to_string(resolve(known)),
         args.size());
  }
  const Type instance = func->type_params.empty() ? known : instantiate(*func);
  func = as_func(instance);
  std::map<std::string, Dim> extents;
  for (size_t i = 0; i < args.size(); ++i) {
    try {
      unify(func->params[i], args[i]);
    } catch (Error& error) {
      error.at(fmt::format("argument {} of a call of {}", i, to_string(resolve(known))));
      throw;
    }
    if (once) match_extents(resolve(func->params[i]), resolve(args[i]), extents);
  }
  if (!once) return func->result;
  // The extents of the declared result only: a type parameter's belong to the argument.
  std::set<std::string> anonymous;
  for_each_anonymous(find(func->result), [&](const std::string& name) { anonymous.insert(name); });
  for (const std::string& name : anonymous) {
    if (!extents.count(name)) extents[name] = Dim::any();
  }
  std::erase_if(extents, [&](const auto& entry) { return !anonymous.count(entry.first); });
  return substitute(find(func->result), extents);
}

}  // namespace treadle::ir
