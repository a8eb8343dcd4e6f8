// SPDX-License-Identifier: Apache-2.0
// Walks the graphs of a model: scopes of names, order of nodes, subgraphs, functions of the model, and errors with
// their context.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "import/onnx/node.h"
#include "import/onnx/onnx.h"

namespace treadle::onnx {

// Names of one graph; an inner graph sees those of the outer ones.
class Scope {
 public:
  explicit Scope(Scope* parent = nullptr) : parent_(parent) {}
  // Null when no graph has the name.
  Value* find(const std::string& name);
  // Errors: ImportFormat when this graph has the name already.
  Value& define(const std::string& name, Value value);

 private:
  Scope* parent_;
  std::unordered_map<std::string, Value> values_;
};

class GraphImporter {
 public:
  // `unsupported` null: the first node that cannot be imported is an error; else it is listed there.
  GraphImporter(Model& model, const ImportOptions& options, std::vector<Unsupported>* unsupported);

  Imported run();

  const std::string& source() const { return model_.source; }
  // The value of a tensor of the model; read once.
  const Tensor& tensor_of(const onnxpb::TensorProto& proto);
  // Imports a subgraph of `node` with these values of its inputs, which may use what the node sees. Gives the outputs'
  // values.
  std::vector<Value> subgraph(Node& node, const onnxpb::GraphProto& graph, std::vector<Value> inputs);
  // A symbol that no other part of the model uses, whose name begins with `base`.
  Dim fresh_symbol(const std::string& base);

 private:
  // What surrounds the nodes of a list: operator sets, and the attributes of the function that they stand in.
  struct Context {
    std::map<std::string, int64_t> opsets;
    Node::AttributeMap attributes;
    bool in_function = false;
    bool inner = false;                                             // not the model's graph
    std::map<std::string, const onnxpb::ValueInfoProto*> declared;  // value_info, for check mode
  };

  using NodeList = google::protobuf::RepeatedPtrField<onnxpb::NodeProto>;

  std::map<std::string, int64_t> read_opsets(
      const google::protobuf::RepeatedPtrField<onnxpb::OperatorSetIdProto>& imports) const;
  void add_initializers(const onnxpb::GraphProto& graph, Scope& scope);
  std::vector<ir::Expr> add_inputs(Scope& scope, std::vector<std::string>& names);
  Type declared_type(const onnxpb::ValueInfoProto& info, const Shape* wanted);
  Dim symbol_of(const std::string& param, const std::string& fallback);
  void import_nodes(const NodeList& nodes, Scope& scope, const Context& context);
  void import_node(const onnxpb::NodeProto& proto, Scope& scope, const Context& context);
  void define_outputs(const onnxpb::NodeProto& proto, Scope& scope, std::vector<Value> outputs);
  std::vector<Value> convert(Node& node, const std::string& domain);
  std::vector<Value> call_function(Node& node, const onnxpb::FunctionProto& function);
  void skip_node(const onnxpb::NodeProto& proto, Scope& scope, const Context& context, const Error* error);
  Unsupported unsupported_node(const onnxpb::NodeProto& proto, Scope& scope, const Context& context,
                               const std::string& reason);
  void list_certain_faults(const onnxpb::NodeProto& proto, Scope& scope, const Context& context);
  std::vector<Value> outputs_of(const onnxpb::GraphProto& graph, Scope& scope);

  Model& model_;
  const ImportOptions& options_;
  std::vector<Unsupported>* unsupported_;
  std::unordered_map<const onnxpb::TensorProto*, Tensor> tensors_;
  std::map<std::string, const onnxpb::FunctionProto*> functions_;  // by domain:name:overload
  std::map<std::string, std::string> symbols_;                     // dim_param to symbol
  std::set<std::string> symbol_names_;
  const Context* context_ = nullptr;  // of the nodes being imported
  int64_t inner_nodes_ = 0;           // nodes of functions and subgraphs imported so far
  int depth_ = 0;                     // of nested function calls
};

// The nodes in an order in which every value is made before it is used; the given one when that is such an order
// already. Errors: ImportFormat for a cycle, naming one of its nodes, and for a name that two nodes make.
std::vector<const onnxpb::NodeProto*> ordered_nodes(const google::protobuf::RepeatedPtrField<onnxpb::NodeProto>& nodes);

// Names of outer graphs that a node's subgraphs use, and its own inputs.
std::set<std::string> used_names(const onnxpb::NodeProto& node);

}  // namespace treadle::onnx
