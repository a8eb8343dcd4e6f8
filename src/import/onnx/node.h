// SPDX-License-Identifier: Apache-2.0
// What a rule sees of one node: inputs, attributes and how many outputs are wanted. It records what the rule asked for:
// an attribute or input that nobody asked for is an error, so that none is ignored by mistake.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "import/onnx/known.h"
#include "import/onnx/model.h"
#include "ir/expr.h"

namespace treadle::onnx {

// What a name of the graph stands for: an expression, a known value, or both.
struct Value {
  ir::Expr expr;                       // made from `known` when it is first needed
  std::shared_ptr<const Known> known;  // null: not known
  bool looked = false;                 // known was looked for in a constant
  bool missing = false;                // in check mode: made by a node that cannot be imported

  const ir::Expr& as_expr(const Span& span);
  const Known* as_known();
  Type type();
};

class Scope;
class GraphImporter;

class Node {
 public:
  // Attributes of the function call that `proto` stands in, for references to them; null when in none.
  using AttributeMap = std::map<std::string, const onnxpb::AttributeProto*, std::less<>>;

  Node(GraphImporter& importer, Scope& scope, const onnxpb::NodeProto& proto, std::vector<Value*> inputs, int64_t opset,
       const AttributeMap* outer);

  const std::string& op_type() const { return proto_.op_type(); }
  int64_t opset() const { return opset_; }  // of the node's domain
  const Span& span() const { return span_; }
  const onnxpb::NodeProto& proto() const { return proto_; }
  GraphImporter& importer() const { return importer_; }
  Scope& scope() const { return scope_; }

  // ---- Inputs ----
  size_t num_inputs() const { return inputs_.size(); }  // with empty ones
  // True when the input is given and not empty.
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i]; }
  // Errors: ImportFormat when it is not given.
  ir::Expr input(size_t i);
  std::vector<ir::Expr> all_inputs();  // errors as input, for an empty one
  Value& value(size_t i);              // asks for it without making an expression
  const TensorType& type(size_t i);    // its tensor type
  DType dtype(size_t i) { return type(i).dtype; }
  const Shape& shape(size_t i) { return type(i).shape; }
  size_t rank(size_t i) { return shape(i).size(); }
  // Null when the value is not known at import.
  const Known* known(size_t i);
  // Numbers that must be known: errors ImportUnsupported when they are not, ImportFormat when they are no list of
  // integers.
  ir::Ints ints_input(size_t i, const char* what);
  int64_t int_input(size_t i, const char* what);  // of one element
  double float_input(size_t i, const char* what);
  // As ints_input, with symbols.
  Shape dims_input(size_t i, const char* what);
  // Marks an input whose value does not matter.
  void ignore_input(size_t i) { used_inputs_.insert(i); }

  // ---- Attributes ----
  bool has_attr(std::string_view name) const { return attributes_.count(std::string(name)) > 0; }
  // With the default of the operator version. Errors: ImportFormat for another type.
  int64_t i(std::string_view name, int64_t default_value);
  bool flag(std::string_view name, bool default_value = false) { return i(name, default_value) != 0; }
  double f(std::string_view name, double default_value);
  std::string s(std::string_view name, const std::string& default_value);
  ir::Ints ints(std::string_view name, const ir::Ints& default_value = {});
  std::optional<ir::Ints> optional_ints(std::string_view name);
  std::vector<double> floats(std::string_view name, const std::vector<double>& default_value = {});
  std::vector<std::string> strings(std::string_view name, const std::vector<std::string>& default_value = {});
  std::optional<Tensor> tensor(std::string_view name);
  const onnxpb::GraphProto& graph(std::string_view name);  // errors: ImportFormat when absent
  // Errors: ImportFormat when absent.
  int64_t required_i(std::string_view name);
  // An attribute that has no meaning for inference.
  void ignore(std::string_view name);

  // ---- Outputs ----
  size_t num_outputs() const { return static_cast<size_t>(proto_.output_size()); }
  bool wants(size_t i) const { return i < num_outputs() && !proto_.output(static_cast<int>(i)).empty(); }

  // A call of one of Treadle's operators. Errors: ImportUnsupported when there is no such operator; as ir::call.
  ir::Expr call(std::string_view op, std::vector<ir::Expr> args, const ir::AttrMap& attrs = {}) const;
  // A 0-d constant.
  ir::Expr number(double value, DType dtype) const;

  // Errors: ImportUnsupported with this reason.
  [[noreturn]] void unsupported(const std::string& reason) const;
  [[noreturn]] void malformed(const std::string& reason) const;

  // Errors: ImportUnsupported naming the first attribute or input that was not asked for.
  void check_consumed() const;
  // "node "conv1" (Conv, opset 13)".
  std::string describe() const;
  const AttributeMap& attributes() const { return attributes_; }
  // "input 1 "w": Tensor[(3, 4), float32]" for each.
  std::vector<std::string> input_notes() const;

 private:
  const onnxpb::AttributeProto* find(std::string_view name, int type);

  GraphImporter& importer_;
  Scope& scope_;
  const onnxpb::NodeProto& proto_;
  std::vector<Value*> inputs_;
  int64_t opset_;
  Span span_;
  AttributeMap attributes_;
  std::set<std::string, std::less<>> used_attributes_;
  std::set<size_t> used_inputs_;
};

// The name of a node, or of its first output when it has none.
std::string node_name(const onnxpb::NodeProto& proto);

}  // namespace treadle::onnx
