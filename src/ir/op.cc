// SPDX-License-Identifier: Apache-2.0
// The operator registry and the driver of type relations.
#include "ir/op.h"

#include <algorithm>

#include "ir/unify.h"

namespace treadle::ir {
namespace {

// Levenshtein distance.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

// `known` completed by `wanted`, whose null parts are open. Errors: TypeMismatch.
Type refine(const Type& known, const Type& wanted) {
  Unifier unifier;
  const Type a = unifier.open(known), b = unifier.open(wanted);
  unifier.unify(a, b);
  return unifier.close(a);
}

std::string argument_label(const Op& op, size_t i) {
  return i < op.inputs.size() ? fmt::format("argument {} ({})", i, op.inputs[i].name) : fmt::format("argument {}", i);
}

}  // namespace

const char* to_string(FusionKind kind) {
  switch (kind) {
    case FusionKind::Elementwise:
      return "elementwise";
    case FusionKind::Broadcast:
      return "broadcast";
    case FusionKind::Injective:
      return "injective";
    case FusionKind::Reduction:
      return "reduction";
    case FusionKind::OutFusable:
      return "output-fusable";
    case FusionKind::Tuple:
      return "tuple";
    case FusionKind::Opaque:
      return "opaque";
  }
  return "unknown";
}

const TensorType* Relation::tensor(size_t i) const {
  if (!inputs_.at(i)) return nullptr;
  const TensorType* tensor = as_tensor(inputs_[i]);
  if (!tensor)
    fail(ErrorCode::TypeMismatch, "{}: {} must be a tensor, but is {}", op.name, argument_label(op, i),
         to_string(inputs_[i]));
  return tensor;
}

std::optional<std::vector<const TensorType*>> Relation::tensors(size_t i) const {
  if (!inputs_.at(i)) return std::nullopt;
  const TupleType* tuple = as_tuple(inputs_[i]);
  if (!tuple) {
    fail(ErrorCode::TypeMismatch, "{}: {} must be a tuple of tensors, but is {}", op.name, argument_label(op, i),
         to_string(inputs_[i]));
  }
  std::vector<const TensorType*> result;
  for (const Type& field : tuple->fields) {
    if (!field) return std::nullopt;
    const TensorType* tensor = as_tensor(field);
    if (!tensor) {
      fail(ErrorCode::TypeMismatch, "{}: {} must be a tuple of tensors, but is {}", op.name, argument_label(op, i),
           to_string(inputs_[i]));
    }
    result.push_back(tensor);
  }
  return result;
}

void Relation::set_input(size_t i, Type type) {
  try {
    inputs_.at(i) = refine(inputs_[i], type);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::TypeMismatch) throw;
    Error better(ErrorCode::TypeMismatch, fmt::format("{}: {} must be {}, but is {}", op.name, argument_label(op, i),
                                                      to_string(type), to_string(inputs_[i])));
    throw better;
  }
}

OpRegistry& OpRegistry::instance() {
  static OpRegistry registry;
  return registry;
}

Op* OpRegistry::insert(std::string name, std::string family, const AttrSchema* schema,
                       AttrsRef (*make)(const AttrMap&, std::string_view)) {
  auto op = std::make_unique<Op>();
  op->name = name;
  op->family = std::move(family);
  op->schema = schema;
  op->make_attrs = [make, name](const AttrMap& map) { return make(map, name); };
  const auto [place, added] = ops_.emplace(std::move(name), std::move(op));
  TREADLE_CHECK(added, "operator {} is registered twice", place->first);
  return place->second.get();
}

const Op* OpRegistry::find(std::string_view name) const {
  const auto found = ops_.find(name);
  return found == ops_.end() ? nullptr : found->second.get();
}

std::vector<std::string> OpRegistry::nearest(std::string_view name) const {
  constexpr size_t kMostNames = 3;
  name = name.substr(0, 64);  // a longer one is no misspelling
  const size_t limit = std::max<size_t>(1, name.size() / 3);
  std::vector<std::pair<size_t, std::string>> found;
  for (const auto& [known, op] : ops_) {
    size_t distance = edit_distance(name, known);
    // A forgotten or wrong namespace: relu for nn.relu.
    const auto base = [](std::string_view text) {
      return text.substr(text.rfind('.') == std::string_view::npos ? 0 : text.rfind('.') + 1);
    };
    if (base(known) == base(name)) distance = 0;
    if (distance <= limit) found.emplace_back(distance, known);
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> result;
  for (size_t i = 0; i < found.size() && i < kMostNames; ++i) result.push_back(std::move(found[i].second));
  return result;
}

const Op& OpRegistry::get(std::string_view name) const {
  if (const Op* op = find(name)) return *op;
  Error error(ErrorCode::InvalidArgument, fmt::format("no operator is called \"{}\"", name));
  std::string names;
  for (const std::string& near : nearest(name)) names += (names.empty() ? "" : ", ") + near;
  if (!names.empty()) error.help("nearest names: " + names);
  throw error;
}

std::vector<const Op*> OpRegistry::all() const {
  std::vector<const Op*> result;
  for (const auto& [name, op] : ops_) result.push_back(op.get());
  return result;
}

// An attribute may ask for it: zeros(shape=[-1]), a window larger than the image.
static void check_extents(const Type& type) {
  if (const TupleType* tuple = as_tuple(type)) {
    for (const Type& field : tuple->fields) check_extents(field);  // an operator gives tensors or a flat tuple
  } else if (const TensorType* tensor = as_tensor(type)) {
    for (const Dim& extent : tensor->shape) {
      if (extent.is_const() && extent.value() < 0)
        fail(ErrorCode::TypeMismatch, "the result would have shape {}", to_string(tensor->shape));
    }
  }
}

Type infer_call(const Op& op, const Attrs& attrs, std::vector<Type>& inputs) {
  try {
    if (inputs.size() != op.inputs.size() && inputs.size() + op.optional_inputs != op.inputs.size()) {
      fail(ErrorCode::TypeMismatch, "{} takes {} argument{}, but is called with {}", op.name, op.inputs.size(),
           op.inputs.size() == 1 ? "" : "s", inputs.size());
    }
    if (&attrs.schema() != op.schema)
      fail(ErrorCode::TypeAttribute, "{} is called with the attributes of another operator", op.name);
    TREADLE_CHECK(op.relation != nullptr, "operator {} has no type relation", op.name);
    Relation relation(op, attrs, inputs);
    op.relation(relation);
    for (size_t i = 0; i < inputs.size(); ++i) inputs[i] = relation.input(i);
    check_extents(relation.output());
    return relation.output();
  } catch (Error& error) {
    std::string text;
    for (size_t i = 0; i < inputs.size(); ++i) {
      text += fmt::format("{}{}: {}", i ? "   " : "", i < op.inputs.size() ? op.inputs[i].name : std::to_string(i),
                          to_string(inputs[i]));
    }
    if (!text.empty()) error.note(text);
    error.at("operator " + op.name);
    throw;
  }
}

}  // namespace treadle::ir
