// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/graph_importer.h"

#include <algorithm>

#include "import/onnx/rules.h"
#include "import/onnx/signatures.h"
#include "import/onnx/tensor.h"

namespace treadle::onnx {
namespace {

constexpr int64_t kMaxInnerNodes = 100'000;  // of functions and subgraphs, counted each time that they are imported
constexpr int64_t kMaxElements = int64_t{1} << 40;  // of one value
constexpr int kMaxFunctionDepth = 32;
constexpr size_t kMaxRank = 64;

std::string domain_of(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

std::string function_key(const std::string& domain, const std::string& name, const std::string& overload) {
  return domain_of(domain) + '\0' + name + '\0' + overload;
}

void check_size(const Shape& shape, const std::string& what) {
  if (shape.size() > kMaxRank)
    fail(ErrorCode::Limit, "{} has {} axes, at most {} are allowed", what, shape.size(), kMaxRank);
  int64_t elements = 1;
  for (const Dim& dim : shape) {
    if (!dim.is_const()) continue;
    if (dim.value() > 0 && elements > kMaxElements / dim.value())
      fail(ErrorCode::Limit, "{} has the shape {}: more than 2^40 elements", what, to_string(shape));
    elements *= std::max<int64_t>(dim.value(), 1);
  }
}

// The error with the node's name and its inputs' types; what the builders said of the same node is not repeated.
Error located(const Error& error, const Node& node) {
  Error result(error.code(), error.message());
  bool inner = false;  // the error comes from a node of a subgraph or function, which says its own types
  for (const std::string& context : error.context()) {
    if (context == to_string(node.span())) continue;
    inner |= context.starts_with("node \"");
    result.at(context);
  }
  result.at(node.describe());
  for (const std::string& note : error.notes()) result.note(note);
  if (!inner) {
    for (const std::string& note : node.input_notes()) result.note(note);
  }
  if (!error.hint().empty()) result.help(error.hint());
  return result;
}

// Sets a value and puts the old one back when the scope is left, by an error too.
template <typename T>
class Restored {
 public:
  Restored(T& place, T value) : place_(place), old_(place) { place_ = std::move(value); }
  Restored(const Restored&) = delete;
  Restored& operator=(const Restored&) = delete;
  ~Restored() { place_ = std::move(old_); }

 private:
  T& place_;
  T old_;
};

std::string symbol_text(const std::string& param) {
  std::string text;
  for (const char c : param.substr(0, 100))
    text += std::isalnum(static_cast<unsigned char>(c)) && static_cast<unsigned char>(c) < 128 ? c : '_';
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0])) || text[0] == '_') text = "d" + text;
  return text;
}

}  // namespace

Value* Scope::find(const std::string& name) {
  for (Scope* scope = this; scope; scope = scope->parent_) {
    const auto found = scope->values_.find(name);
    if (found != scope->values_.end()) return &found->second;
  }
  return nullptr;
}

Value& Scope::define(const std::string& name, Value value) {
  const auto [place, inserted] = values_.emplace(name, std::move(value));
  if (!inserted) fail(ErrorCode::ImportFormat, "the name \"{}\" stands for two values", printable(name));
  return place->second;
}

GraphImporter::GraphImporter(Model& model, const ImportOptions& options, std::vector<Unsupported>* unsupported)
    : model_(model), options_(options), unsupported_(unsupported), symbol_names_{"floordiv", "floormod", "min",
                                                                                 "max",      "mod",      "Any"} {}

const Tensor& GraphImporter::tensor_of(const onnxpb::TensorProto& proto) {
  const auto found = tensors_.find(&proto);
  if (found != tensors_.end()) return found->second;
  // Taking the value empties the message, which nobody reads again: the model is ours.
  return tensors_.emplace(&proto, take_tensor(const_cast<onnxpb::TensorProto&>(proto), model_.folder, model_.raw))
      .first->second;
}

Dim GraphImporter::fresh_symbol(const std::string& base) {
  const std::string text = symbol_text(base);
  std::string name = text;
  for (int i = 1; !symbol_names_.insert(name).second; ++i) name = fmt::format("{}_{}", text, i);
  return Dim::symbol(name);
}

Dim GraphImporter::symbol_of(const std::string& param, const std::string& fallback) {
  if (param.empty() || param == "?") return fresh_symbol(fallback);
  const auto found = symbols_.find(param);
  if (found != symbols_.end()) return Dim::symbol(found->second);
  const Dim dim = fresh_symbol(param);
  symbols_[param] = *dim.as_symbol();
  return dim;
}

Type GraphImporter::declared_type(const onnxpb::ValueInfoProto& info, const Shape* wanted) {
  if (!info.has_type() || !info.type().has_tensor_type())
    fail(info.has_type() ? ErrorCode::ImportUnsupported : ErrorCode::ImportFormat, "it has no tensor type");
  const auto& tensor = info.type().tensor_type();
  const DType dtype = dtype_of_code(tensor.elem_type());
  if (!tensor.has_shape()) {
    if (wanted) return tensor_type(*wanted, dtype);
    throw Error(ErrorCode::ImportUnsupported, "its rank is not declared").help("give its shape");
  }
  Shape shape;
  const auto& dims = tensor.shape().dim();
  if (wanted && wanted->size() != static_cast<size_t>(dims.size()))
    fail(ErrorCode::InvalidArgument, "the given shape {} has {} axes, the model declares {}", to_string(*wanted),
         wanted->size(), dims.size());
  if (static_cast<size_t>(dims.size()) > kMaxRank)
    fail(ErrorCode::Limit, "it has {} axes, at most {} are allowed", dims.size(), kMaxRank);
  for (int i = 0; i < dims.size(); ++i) {
    if (dims[i].has_dim_value() && dims[i].dim_value() != -1) {
      if (dims[i].dim_value() < 0) fail(ErrorCode::ImportFormat, "axis {} has the extent {}", i, dims[i].dim_value());
      shape.emplace_back(dims[i].dim_value());
    } else if (wanted) {
      shape.emplace_back();
    } else {
      shape.push_back(symbol_of(dims[i].dim_param(), fmt::format("{}_{}", info.name(), i)));
    }
  }
  if (wanted) shape = *wanted;
  check_size(shape, "it");
  return tensor_type(std::move(shape), dtype);
}

std::map<std::string, int64_t> GraphImporter::read_opsets(
    const google::protobuf::RepeatedPtrField<onnxpb::OperatorSetIdProto>& imports) const {
  std::map<std::string, int64_t> opsets;
  for (const auto& entry : imports) {
    const std::string domain = domain_of(entry.domain());
    if (!opsets.emplace(domain, entry.version()).second)
      fail(ErrorCode::ImportFormat, "the operator set of domain \"{}\" is imported twice",
           printable(domain.empty() ? "ai.onnx" : domain));
    if (!domain.empty()) continue;
    if (entry.version() > kNewestOpset)
      fail(ErrorCode::ImportUnsupported, "the model uses operator set {}, the newest that is supported is {}",
           entry.version(), kNewestOpset);
    if (entry.version() < 7)
      throw Error(ErrorCode::ImportUnsupported,
                  fmt::format("the model uses operator set {}, the oldest that is supported is 7", entry.version()))
          .help("convert it with onnx.version_converter");
  }
  return opsets;
}

void GraphImporter::add_initializers(const onnxpb::GraphProto& graph, Scope& scope) {
  if (graph.sparse_initializer_size() > 0) fail(ErrorCode::ImportUnsupported, "the graph has sparse initialisers");
  for (const auto& tensor : graph.initializer()) {
    try {
      if (tensor.name().empty()) fail(ErrorCode::ImportFormat, "the initialiser has no name");
      Value value;
      value.expr = ir::constant(tensor_of(tensor));
      scope.define(tensor.name(), std::move(value));
    } catch (Error& error) {
      error.at(fmt::format("initialiser \"{}\"", printable(tensor.name())));
      throw;
    }
  }
}

std::vector<ir::Expr> GraphImporter::add_inputs(Scope& scope, std::vector<std::string>& names) {
  const auto& graph = model_.proto.graph();
  std::set<std::string> initialisers;
  for (const auto& tensor : graph.initializer()) initialisers.insert(tensor.name());
  const auto check_name = [&](const std::string& name, const char* what) {
    const bool exists = std::any_of(graph.input().begin(), graph.input().end(),
                                    [&](const auto& input) { return input.name() == name; });
    if (!exists || initialisers.count(name))
      fail(ErrorCode::InvalidArgument, "a {} is given for \"{}\", which is no input", what, printable(name));
  };
  for (const auto& [name, shape] : options_.input_shapes) check_name(name, "shape");
  for (const auto& [name, value] : options_.input_values) check_name(name, "value");
  std::vector<ir::Expr> params;
  std::set<std::string> seen;
  for (const auto& input : graph.input()) {
    try {
      if (input.name().empty()) fail(ErrorCode::ImportFormat, "the input has no name");
      if (!seen.insert(input.name()).second) fail(ErrorCode::ImportFormat, "the input is listed twice");
      if (initialisers.count(input.name())) continue;
      const auto fixed = options_.input_values.find(input.name());
      if (fixed != options_.input_values.end()) {
        scope.define(input.name(), {ir::constant(fixed->second), nullptr});
        continue;
      }
      const auto wanted = options_.input_shapes.find(input.name());
      const Type type = declared_type(input, wanted == options_.input_shapes.end() ? nullptr : &wanted->second);
      params.push_back(ir::var(input.name(), type));
      names.push_back(input.name());
      Value value;
      value.expr = params.back();
      scope.define(input.name(), std::move(value));
    } catch (Error& error) {
      error.at(fmt::format("graph input \"{}\"", printable(input.name())));
      throw;
    }
  }
  return params;
}

void GraphImporter::import_nodes(const NodeList& nodes, Scope& scope, const Context& context) {
  const Restored<const Context*> restored(context_, &context);
  for (const onnxpb::NodeProto* node : ordered_nodes(nodes)) import_node(*node, scope, context);
}

void GraphImporter::define_outputs(const onnxpb::NodeProto& proto, Scope& scope, std::vector<Value> outputs) {
  for (int i = 0; i < proto.output_size(); ++i) {
    if (proto.output(i).empty()) continue;
    if (static_cast<size_t>(i) >= outputs.size())
      fail(ErrorCode::ImportUnsupported, "output {} (\"{}\") is not supported", i, printable(proto.output(i)));
    Value& value = outputs[static_cast<size_t>(i)];
    const Type type = value.type();
    if (const TensorType* tensor = as_tensor(type)) check_size(tensor->shape, fmt::format("output {}", i));
    scope.define(proto.output(i), std::move(value));
  }
}

std::vector<Value> GraphImporter::convert(Node& node, const std::string& domain) {
  const auto function = functions_.find(function_key(domain, node.op_type(), node.proto().overload()));
  if (function != functions_.end()) return call_function(node, *function->second);
  if (!node.proto().overload().empty())
    fail(ErrorCode::ImportFormat, "the model has no function with overload \"{}\"", printable(node.proto().overload()));
  const RuleTable& table = RuleTable::instance();
  const Rule* rule = table.find(domain, node.op_type(), node.opset());
  if (!rule) {
    const std::string name = printable(domain.empty() ? node.op_type() : domain + "." + node.op_type());
    if (table.has_any(domain, node.op_type()))
      fail(ErrorCode::ImportUnsupported, "operator {} does not exist in opset {}, or is not supported", name,
           node.opset());
    fail(ErrorCode::ImportUnsupported, "operator {} is not supported", name);
  }
  if (domain.empty()) {
    if (const auto error = signature_error(node.proto(), node.opset())) throw Error(*error);
  }
  std::vector<Value> outputs;
  if (const FoldRule* fold = domain.empty() ? table.find_fold(node.op_type()) : nullptr) {
    if (auto known = (*fold)(node)) {
      for (Known& value : *known) outputs.push_back({ir::Expr(), std::make_shared<const Known>(std::move(value))});
    }
  }
  if (outputs.empty()) {
    for (ir::Expr& expr : (*rule)(node)) {
      if (expr.defined() && !expr.type()) fail(ErrorCode::TypeUnresolved, "the type of the result is not known");
      outputs.push_back({std::move(expr), nullptr});
    }
  }
  node.check_consumed();
  return outputs;
}

void GraphImporter::import_node(const onnxpb::NodeProto& proto, Scope& scope, const Context& context) {
  if (context.inner && ++inner_nodes_ > kMaxInnerNodes)
    fail(ErrorCode::Limit, "functions and subgraphs have more than {} nodes when they are expanded", kMaxInnerNodes);
  const std::string domain = domain_of(proto.domain());
  const auto opset = context.opsets.find(domain);
  std::vector<Value*> inputs;
  bool missing = false;
  std::unique_ptr<Node> node;
  try {
    if (opset == context.opsets.end()) {
      throw Error(ErrorCode::ImportFormat, fmt::format("the model imports no operator set of domain \"{}\"",
                                                       printable(domain.empty() ? "ai.onnx" : domain)))
          .at(fmt::format("node \"{}\" ({})", node_name(proto), printable(proto.op_type())));
    }
    for (const std::string& name : proto.input()) {
      inputs.push_back(name.empty() ? nullptr : scope.find(name));
      if (inputs.back())
        missing |= inputs.back()->missing;
      else if (!name.empty())
        throw Error(
            ErrorCode::ImportFormat,
            fmt::format("input \"{}\" is made by no node, and is no graph input or initialiser", printable(name)))
            .at(fmt::format("node \"{}\" ({}, opset {})", node_name(proto), printable(proto.op_type()), opset->second));
    }
    if (unsupported_) {
      for (const std::string& name : used_names(proto)) {
        const Value* value = scope.find(name);
        missing |= value && value->missing;
      }
    }
    if (missing) return skip_node(proto, scope, context, nullptr);
    try {
      node = std::make_unique<Node>(*this, scope, proto, inputs, opset->second,
                                    context.in_function ? &context.attributes : nullptr);
      define_outputs(proto, scope, convert(*node, domain));
    } catch (const Error& error) {
      if (node) throw located(error, *node);
      throw Error(error).at(
          fmt::format("node \"{}\" ({}, opset {})", node_name(proto), printable(proto.op_type()), opset->second));
    }
  } catch (const Error& error) {
    if (!unsupported_) throw;
    skip_node(proto, scope, context, &error);
  }
}

// How check mode names a node.
Unsupported GraphImporter::unsupported_node(const onnxpb::NodeProto& proto, Scope& scope, const Context& context,
                                            const std::string& reason) {
  const std::string domain = domain_of(proto.domain());
  const auto opset = context.opsets.find(domain);
  Unsupported entry{node_name(proto),
                    printable(proto.op_type()),
                    printable(domain),
                    opset == context.opsets.end() ? 0 : opset->second,
                    {},
                    reason};
  for (const std::string& input : proto.input()) {
    Value* value = input.empty() ? nullptr : scope.find(input);
    const Type type = value ? value->type() : nullptr;
    entry.inputs.push_back(type ? to_string(type) : "?");
  }
  return entry;
}

// What is wrong with a node whatever the types of its inputs are.
void GraphImporter::list_certain_faults(const onnxpb::NodeProto& proto, Scope& scope, const Context& context) {
  const std::string domain = domain_of(proto.domain());
  const auto opset = context.opsets.find(domain);
  const int64_t version = opset == context.opsets.end() ? 0 : opset->second;
  const bool function = functions_.count(function_key(domain, proto.op_type(), proto.overload())) > 0;
  if (!function && !RuleTable::instance().find(domain, proto.op_type(), version)) {
    unsupported_->push_back(unsupported_node(proto, scope, context, "the operator is not supported"));
  } else if (const auto error = function || !domain.empty() ? std::nullopt : signature_error(proto, version)) {
    unsupported_->push_back(unsupported_node(proto, scope, context, error->message()));
  }
  for (const auto& attribute : proto.attribute()) {
    for (const auto& inner : attribute.g().node()) list_certain_faults(inner, scope, context);
  }
}

// In check mode: lists the node (with an error), or only what is certainly wrong with it (an input is not known), and
// goes on with outputs of the types that the model declares, if it does.
void GraphImporter::skip_node(const onnxpb::NodeProto& proto, Scope& scope, const Context& context,
                              const Error* error) {
  if (error) {
    // A node of a subgraph was listed itself.
    const auto inner = std::count_if(error->context().begin(), error->context().end(),
                                     [](const std::string& text) { return text.starts_with("node \""); });
    if (inner <= 1) unsupported_->push_back(unsupported_node(proto, scope, context, error->message()));
  } else {
    list_certain_faults(proto, scope, context);
  }
  for (const std::string& output : proto.output()) {
    if (output.empty()) continue;
    Value value;
    value.missing = true;
    const auto declared = context.declared.find(output);
    if (declared != context.declared.end()) {
      try {
        value.expr = ir::var(output, declared_type(*declared->second, nullptr));
        value.missing = false;
      } catch (const Error&) {
        // Not declared completely.
      }
    }
    if (!scope.find(output)) scope.define(output, std::move(value));
  }
}

std::vector<Value> GraphImporter::outputs_of(const onnxpb::GraphProto& graph, Scope& scope) {
  std::vector<Value> result;
  for (const auto& output : graph.output()) {
    Value* value = output.name().empty() ? nullptr : scope.find(output.name());
    if (!value)
      fail(ErrorCode::ImportFormat, "the graph's output \"{}\" is made by no node, and is no input or initialiser",
           printable(output.name()));
    result.push_back(*value);
  }
  return result;
}

std::vector<Value> GraphImporter::subgraph(Node& node, const onnxpb::GraphProto& graph, std::vector<Value> inputs) {
  if (static_cast<size_t>(graph.input_size()) != inputs.size())
    fail(ErrorCode::ImportFormat, "the subgraph \"{}\" has {} inputs, the node gives it {}", printable(graph.name()),
         graph.input_size(), inputs.size());
  Context context;
  context.opsets = context_->opsets;
  context.attributes = context_->attributes;
  context.in_function = context_->in_function;
  context.inner = true;
  Scope scope(&node.scope());
  for (size_t i = 0; i < inputs.size(); ++i)
    scope.define(graph.input(static_cast<int>(i)).name(), std::move(inputs[i]));
  add_initializers(graph, scope);
  import_nodes(graph.node(), scope, context);
  std::vector<Value> outputs = outputs_of(graph, scope);
  for (const Value& output : outputs) {
    if (output.missing) fail(ErrorCode::ImportUnsupported, "a node of the subgraph is not supported");
  }
  return outputs;
}

std::vector<Value> GraphImporter::call_function(Node& node, const onnxpb::FunctionProto& function) {
  if (depth_ >= kMaxFunctionDepth)
    fail(ErrorCode::Limit, "functions call each other more than {} deep", kMaxFunctionDepth);
  if (node.num_inputs() > static_cast<size_t>(function.input_size()))
    fail(ErrorCode::ImportFormat, "function {} has {} inputs, the node gives it {}", printable(function.name()),
         function.input_size(), node.num_inputs());
  Context context;
  context.opsets = read_opsets(function.opset_import());
  context.in_function = context.inner = true;
  for (const auto& attribute : function.attribute_proto()) context.attributes[attribute.name()] = &attribute;
  for (const auto& [name, attribute] : node.attributes()) {
    const bool listed =
        context.attributes.count(name) ||
        std::find(function.attribute().begin(), function.attribute().end(), name) != function.attribute().end();
    if (!listed) continue;  // check_consumed names it
    context.attributes[name] = attribute;
    node.ignore(name);
  }
  Scope scope;
  for (int i = 0; i < function.input_size(); ++i) {
    const auto at = static_cast<size_t>(i);
    if (node.has(at)) scope.define(function.input(i), node.value(at));
  }
  {
    const Restored<int> restored(depth_, depth_ + 1);
    import_nodes(function.node(), scope, context);
  }
  std::vector<Value> outputs;
  for (const std::string& name : function.output()) {
    Value* value = scope.find(name);
    if (!value)
      fail(ErrorCode::ImportFormat, "output \"{}\" of function {} is made by no node", printable(name),
           printable(function.name()));
    if (value->missing)
      fail(ErrorCode::ImportUnsupported, "a node of function {} is not supported", printable(function.name()));
    outputs.push_back(*value);
  }
  node.check_consumed();
  return outputs;
}

Imported GraphImporter::run() {
  try {
    const auto& graph = model_.proto.graph();
    if (model_.proto.ir_version() > 14)
      fail(ErrorCode::ImportUnsupported, "the file has IR version {}, the newest that is supported is 14",
           model_.proto.ir_version());
    Context context;
    context.opsets = read_opsets(model_.proto.opset_import());
    if (context.opsets.empty()) fail(ErrorCode::ImportFormat, "the model imports no operator set");
    for (const auto& function : model_.proto.functions()) {
      if (!functions_.emplace(function_key(function.domain(), function.name(), function.overload()), &function).second)
        fail(ErrorCode::ImportFormat, "the model defines the function \"{}\" twice", printable(function.name()));
    }
    if (unsupported_) {
      for (const auto& info : graph.value_info()) context.declared[info.name()] = &info;
    }
    Imported result;
    Scope scope;
    std::vector<ir::Expr> params = add_inputs(scope, result.input_names);
    add_initializers(graph, scope);
    import_nodes(graph.node(), scope, context);
    std::vector<ir::Expr> fields;
    std::set<std::string> seen;
    for (const auto& output : graph.output()) {
      if (!seen.insert(output.name()).second)
        fail(ErrorCode::ImportFormat, "the graph's output \"{}\" is listed twice", printable(output.name()));
      result.output_names.push_back(output.name());
    }
    if (result.output_names.empty()) fail(ErrorCode::ImportFormat, "the graph has no output");
    std::vector<Value> outputs = outputs_of(graph, scope);
    if (unsupported_ && !unsupported_->empty()) return result;
    for (size_t i = 0; i < outputs.size(); ++i) {
      fields.push_back(outputs[i].as_expr(nullptr));
      const auto& info = graph.output(static_cast<int>(i));
      const TensorType* tensor = as_tensor(fields.back().type());
      const int64_t declared = info.type().tensor_type().elem_type();
      if (tensor && info.type().has_tensor_type() && declared != 0 && dtype_of_code(declared) != tensor->dtype)
        fail(ErrorCode::TypeMismatch, "the graph's output \"{}\" is {}, but declared as {}", printable(info.name()),
             to_string(tensor->dtype), code_name(declared));
    }
    ir::AttrMap attrs;
    attrs["input_names"] = result.input_names;
    attrs["output_names"] = result.output_names;
    ir::Expr body = fields.size() == 1 ? fields[0] : ir::tuple(std::move(fields));
    result.module.functions["main"] = ir::function(std::move(params), std::move(body), nullptr, std::move(attrs));
    result.module.source = model_.source;
    return result;
  } catch (Error& error) {
    error.at(printable(model_.source));
    throw;
  }
}

}  // namespace treadle::onnx
