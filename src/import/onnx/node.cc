// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/node.h"

#include "import/onnx/graph_importer.h"
#include "import/onnx/tensor.h"
#include "ir/op.h"

namespace treadle::onnx {
namespace {

using onnxpb::AttributeProto;

// AttributeProto.AttributeType.
enum AttributeType { kFloat = 1, kInt, kString, kTensor, kGraph, kFloats, kInts, kStrings };
constexpr const char* kTypeNames[] = {
    "unset",   "FLOAT",   "INT",    "STRING",        "TENSOR",         "GRAPH",      "FLOATS",     "INTS",
    "STRINGS", "TENSORS", "GRAPHS", "SPARSE_TENSOR", "SPARSE_TENSORS", "TYPE_PROTO", "TYPE_PROTOS"};

std::string type_name(int type) { return type >= 0 && type <= 14 ? kTypeNames[type] : fmt::format("{}", type); }

// Files before IR version 2 do not set the type: it shows in the field that is there.
int type_of(const AttributeProto& attribute) {
  if (attribute.has_type()) return attribute.type();
  if (attribute.has_f()) return kFloat;
  if (attribute.has_i()) return kInt;
  if (attribute.has_s()) return kString;
  if (attribute.has_t()) return kTensor;
  if (attribute.has_g()) return kGraph;
  if (attribute.floats_size()) return kFloats;
  if (attribute.ints_size()) return kInts;
  if (attribute.strings_size()) return kStrings;
  return 0;
}

}  // namespace

std::string node_name(const onnxpb::NodeProto& proto) {
  if (!proto.name().empty()) return printable(proto.name());
  for (const std::string& output : proto.output()) {
    if (!output.empty()) return printable(output);
  }
  return "";
}

const ir::Expr& Value::as_expr(const Span& span) {
  if (!expr.defined() && known) expr = to_expr(*known, span);
  return expr;
}

const Known* Value::as_known() {
  if (!known && !looked) {
    looked = true;
    if (const auto* constant = expr.as<ir::Constant>()) {
      if (auto value = known_of(constant->value)) known = std::make_shared<const Known>(std::move(*value));
    }
  }
  return known.get();
}

Type Value::type() {
  if (expr.defined()) return expr.type();
  return known ? tensor_type(to_shape(known->shape), known->dtype) : nullptr;
}

Node::Node(GraphImporter& importer, Scope& scope, const onnxpb::NodeProto& proto, std::vector<Value*> inputs,
           int64_t opset, const AttributeMap* outer)
    : importer_(importer), scope_(scope), proto_(proto), inputs_(std::move(inputs)), opset_(opset) {
  auto info = std::make_shared<SpanInfo>();
  info->source = importer.source();
  info->node = fmt::format("{} ({}, opset {})", node_name(proto), printable(proto.op_type()), opset);
  span_ = std::move(info);
  for (const AttributeProto& attribute : proto.attribute()) {
    const AttributeProto* value = &attribute;
    if (!attribute.ref_attr_name().empty()) {
      if (!outer)
        malformed(fmt::format("attribute \"{}\" refers to one of a function, but stands in none",
                              printable(attribute.name())));
      const auto found = outer->find(attribute.ref_attr_name());
      if (found == outer->end()) continue;  // not given: the operator's default
      value = found->second;
    }
    if (!attributes_.emplace(attribute.name(), value).second)
      malformed(fmt::format("attribute \"{}\" is given twice", printable(attribute.name())));
  }
}

// ---- Inputs ----

Value& Node::value(size_t i) {
  if (!has(i)) malformed(fmt::format("input {} is missing", i));
  used_inputs_.insert(i);
  return *inputs_[i];
}

ir::Expr Node::input(size_t i) { return value(i).as_expr(span_); }

std::vector<ir::Expr> Node::all_inputs() {
  std::vector<ir::Expr> result;
  for (size_t i = 0; i < inputs_.size(); ++i) result.push_back(input(i));
  return result;
}

const TensorType& Node::type(size_t i) {
  Value& v = value(i);
  if (!v.expr.defined()) v.as_expr(span_);
  const TensorType* tensor = as_tensor(v.expr.type());
  if (!tensor) unsupported(fmt::format("input {} is no tensor", i));
  return *tensor;
}

const Known* Node::known(size_t i) { return value(i).as_known(); }

Shape Node::dims_input(size_t i, const char* what) {
  const Known* value = known(i);
  if (!value) {
    const TensorType& t = type(i);
    if (!t.dtype.is_integer())
      malformed(fmt::format("{} (input {}) are {}, they must be integers", what, i, to_string(t.dtype)));
    unsupported(
        fmt::format("{} (input {}) are computed from data: they must be constants or follow from shapes", what, i));
  }
  if (!value->dtype.is_integer())
    malformed(fmt::format("{} (input {}) are {}, they must be integers", what, i, to_string(value->dtype)));
  if (value->shape.size() > 1)
    malformed(fmt::format("{} (input {}) have {} axes, they must be a list", what, i, value->shape.size()));
  return *value->dims();
}

ir::Ints Node::ints_input(size_t i, const char* what) {
  ir::Ints result;
  for (const Dim& dim : dims_input(i, what)) {
    if (!dim.is_const())
      unsupported(fmt::format("{} (input {}) depend on the symbolic extent {}", what, i, to_string(dim)));
    result.push_back(dim.value());
  }
  return result;
}

int64_t Node::int_input(size_t i, const char* what) {
  const ir::Ints values = ints_input(i, what);
  if (values.size() != 1)
    malformed(fmt::format("{} (input {}) has {} elements, it must have one", what, i, values.size()));
  return values[0];
}

double Node::float_input(size_t i, const char* what) {
  const Known* known_value = known(i);
  if (known_value && known_value->values.size() == 1 && known_value->is_const()) return known_value->values[0].number();
  if (const auto* constant = input(i).as<ir::Constant>()) {
    if (constant->value.size() == 1) return constant->value.at(0);
    malformed(fmt::format("{} (input {}) has {} elements, it must have one", what, i, constant->value.size()));
  }
  unsupported(fmt::format("{} (input {}) is computed from data: it must be a constant", what, i));
}

// ---- Attributes ----

const AttributeProto* Node::find(std::string_view name, int type) {
  used_attributes_.emplace(name);
  const auto found = attributes_.find(name);
  if (found == attributes_.end()) return nullptr;
  const int actual = type_of(*found->second);
  // An empty list without a type says nothing.
  if (actual == 0 && type >= kFloats) return found->second;
  if (actual != type)
    malformed(fmt::format("attribute \"{}\" is of type {}, it must be {}", name, type_name(actual), type_name(type)));
  return found->second;
}

int64_t Node::i(std::string_view name, int64_t default_value) {
  const AttributeProto* attribute = find(name, kInt);
  return attribute ? attribute->i() : default_value;
}

int64_t Node::required_i(std::string_view name) {
  const AttributeProto* attribute = find(name, kInt);
  if (!attribute) malformed(fmt::format("attribute \"{}\" is missing", name));
  return attribute->i();
}

double Node::f(std::string_view name, double default_value) {
  const AttributeProto* attribute = find(name, kFloat);
  return attribute ? attribute->f() : default_value;
}

std::string Node::s(std::string_view name, const std::string& default_value) {
  const AttributeProto* attribute = find(name, kString);
  return attribute ? attribute->s() : default_value;
}

std::optional<ir::Ints> Node::optional_ints(std::string_view name) {
  const AttributeProto* attribute = find(name, kInts);
  if (!attribute) return std::nullopt;
  return ir::Ints(attribute->ints().begin(), attribute->ints().end());
}

ir::Ints Node::ints(std::string_view name, const ir::Ints& default_value) {
  return optional_ints(name).value_or(default_value);
}

std::vector<double> Node::floats(std::string_view name, const std::vector<double>& default_value) {
  const AttributeProto* attribute = find(name, kFloats);
  if (!attribute) return default_value;
  return {attribute->floats().begin(), attribute->floats().end()};
}

std::vector<std::string> Node::strings(std::string_view name, const std::vector<std::string>& default_value) {
  const AttributeProto* attribute = find(name, kStrings);
  if (!attribute) return default_value;
  return {attribute->strings().begin(), attribute->strings().end()};
}

std::optional<Tensor> Node::tensor(std::string_view name) {
  const AttributeProto* attribute = find(name, kTensor);
  if (!attribute) return std::nullopt;
  return importer_.tensor_of(attribute->t());
}

const onnxpb::GraphProto& Node::graph(std::string_view name) {
  const AttributeProto* attribute = find(name, kGraph);
  if (!attribute) malformed(fmt::format("attribute \"{}\" is missing", name));
  return attribute->g();
}

void Node::ignore(std::string_view name) { used_attributes_.emplace(name); }

// ---- Calls, errors ----

ir::Expr Node::call(std::string_view op, std::vector<ir::Expr> args, const ir::AttrMap& attrs) const {
  const ir::Op* found = ir::OpRegistry::instance().find(op);
  if (!found) unsupported(fmt::format("Treadle has no operator {}", op));
  return ir::call(found, std::move(args), found->make_attrs(attrs), span_);
}

ir::Expr Node::number(double value, DType dtype) const { return ir::constant(Tensor::scalar(dtype, value), span_); }

void Node::unsupported(const std::string& reason) const { throw Error(ErrorCode::ImportUnsupported, reason); }
void Node::malformed(const std::string& reason) const { throw Error(ErrorCode::ImportFormat, reason); }

void Node::check_consumed() const {
  for (const auto& [name, attribute] : attributes_) {
    if (!used_attributes_.count(name))
      unsupported(fmt::format("attribute \"{}\" of {} is unknown in opset {}, or not supported", printable(name),
                              printable(op_type()), opset_));
  }
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i] && !used_inputs_.count(i))
      unsupported(
          fmt::format("input {} of {} is unknown in opset {}, or not supported", i, printable(op_type()), opset_));
  }
}

std::string Node::describe() const {
  return fmt::format("node \"{}\" ({}, opset {})", node_name(proto_), printable(op_type()), opset_);
}

std::vector<std::string> Node::input_notes() const {
  std::vector<std::string> notes;
  for (size_t i = 0; i < inputs_.size() && i < 8; ++i) {
    if (!inputs_[i]) continue;
    const Type type = inputs_[i]->type();
    notes.push_back(fmt::format("input {} \"{}\": {}", i, printable(proto_.input(static_cast<int>(i))),
                                type ? to_string(type) : "?"));
  }
  return notes;
}

}  // namespace treadle::onnx
