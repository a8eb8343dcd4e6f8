// SPDX-License-Identifier: Apache-2.0
// If, Loop and Scan. Their subgraphs use values of the outer graphs directly, as Treadle's branches and loop bodies do.
#include "import/onnx/graph_importer.h"
#include "import/onnx/indices.h"
#include "op/tensor/gather.h"
#include "op/tensor/reshape.h"
#include "op/tensor/transform.h"

namespace treadle::onnx {
namespace {

using ir::Expr;
using Exprs = std::vector<Expr>;

// A loop body is imported again when a carried value's type changes from iteration to iteration.
constexpr int kMaxAttempts = 4;

Value of(Expr expr) { return {std::move(expr), nullptr}; }

Exprs exprs_of(std::vector<Value>& values, const Span& span) {
  Exprs result;
  for (Value& value : values) result.push_back(value.as_expr(span));
  return result;
}

Exprs fields_of(const Expr& tuple, size_t first, size_t count, const Span& span) {
  Exprs result;
  for (size_t i = 0; i < count; ++i) result.push_back(ir::tuple_get(tuple, static_cast<int>(first + i), span));
  return result;
}

// A tensor of one element as a scalar.
Expr scalar_input(Node& node, size_t i) {
  const Shape& shape = node.shape(i);
  if (shape.empty()) return node.input(i);
  if (shape.size() != 1 || !shape[0].is(1)) node.malformed(fmt::format("input {} must be a scalar", i));
  return op::reshape_to(node.input(i), {});
}

Exprs if_rule(Node& node) {
  const onnxpb::GraphProto& then_graph = node.graph("then_branch");
  const onnxpb::GraphProto& else_graph = node.graph("else_branch");
  if (!node.dtype(0).is_bool())
    node.malformed(fmt::format("the condition is {}, it must be bool", to_string(node.dtype(0))));
  for (const auto* graph : {&then_graph, &else_graph}) {
    if (graph->output_size() != static_cast<int>(node.num_outputs()))
      node.malformed(fmt::format("a branch has {} outputs, the node {}", graph->output_size(), node.num_outputs()));
  }
  const Known* known = node.known(0);
  if (known && known->is_const() && known->values.size() == 1) {
    std::vector<Value> values =
        node.importer().subgraph(node, known->values[0].number() != 0 ? then_graph : else_graph, {});
    return exprs_of(values, node.span());
  }
  const Expr condition = scalar_input(node, 0);
  std::vector<Value> then_values = node.importer().subgraph(node, then_graph, {});
  std::vector<Value> else_values = node.importer().subgraph(node, else_graph, {});
  for (size_t i = 0; i < then_values.size() && i < else_values.size(); ++i) {
    const TensorType *a = as_tensor(then_values[i].type()), *b = as_tensor(else_values[i].type());
    if (a && b && a->shape.size() != b->shape.size())
      node.unsupported(fmt::format("output {} is {} of one branch and {} of the other", i,
                                   to_string(then_values[i].type()), to_string(else_values[i].type())));
  }
  const Expr both = ir::if_expr(condition, ir::tuple(exprs_of(then_values, node.span())),
                                ir::tuple(exprs_of(else_values, node.span())), node.span());
  return fields_of(both, 0, then_values.size(), node.span());
}

// The type that holds values of both; null when there is none. Extents that differ become anonymous.
Type wider(const Type& a, const Type& b) {
  const TensorType *x = as_tensor(a), *y = as_tensor(b);
  if (!x || !y || x->dtype != y->dtype || x->shape.size() != y->shape.size()) return nullptr;
  Shape shape;
  for (size_t i = 0; i < x->shape.size(); ++i) shape.push_back(x->shape[i] == y->shape[i] ? x->shape[i] : Dim::any());
  return tensor_type(std::move(shape), x->dtype);
}

bool is_true(Value& value) {
  const Known* known = value.as_known();
  return known && known->is_const() && known->values.size() == 1 && known->values[0].number() != 0;
}

// A loop in the making: the body as a function of the iteration and the carried values.
struct Body {
  Exprs params, results;
};

// Imports a body until the carried types stay as they are. `make` gives the results for parameters of these types; the
// first of the results are the carried values.
Body stable_body(Node& node, std::vector<Type> types, const std::function<Exprs(const Exprs& params)>& make) {
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    Body body;
    body.params.push_back(ir::var("i", tensor_type({}, dtype::int64_)));
    for (size_t i = 0; i < types.size(); ++i) body.params.push_back(ir::var(fmt::format("carried_{}", i), types[i]));
    body.results = make(body.params);
    bool stable = true;
    for (size_t i = 0; i < types.size(); ++i) {
      if (compatible(types[i], body.results[i].type())) continue;
      const Type wide = wider(types[i], body.results[i].type());
      if (!wide)
        node.malformed(fmt::format("carried value {} changes from {} to {}", i, to_string(types[i]),
                                   to_string(body.results[i].type())));
      types[i] = wide;
      stable = false;
    }
    if (stable) return body;
  }
  node.unsupported("the carried values' types do not settle");
}

Expr condition_of(const Body& body) { return ir::function(body.params, body.params[1]); }

// The condition is left out where it is always true; else it is the first carried value.
Exprs loop_rule(Node& node) {
  const onnxpb::GraphProto& graph = node.graph("body");
  const size_t carried = node.num_inputs() < 2 ? 0 : node.num_inputs() - 2;
  if (graph.output_size() < static_cast<int>(carried) + 1)
    node.malformed(fmt::format("the body has {} outputs for {} carried values", graph.output_size(), carried));
  const size_t scanned = static_cast<size_t>(graph.output_size()) - 1 - carried;
  const Expr trip = node.has(0) ? scalar_input(node, 0) : Expr();
  if (trip.defined() && node.dtype(0) != dtype::int64_) node.malformed("the trip count must be int64");
  if (node.has(1) && !node.dtype(1).is_bool()) node.malformed("the condition must be bool");
  Exprs initial;
  std::vector<Type> types;
  for (size_t i = 0; i < carried; ++i) {
    initial.push_back(node.input(i + 2));
    types.push_back(initial.back().type());
  }
  bool always = !node.has(1) || is_true(node.value(1));
  const auto make = [&](const Exprs& params, bool with_condition) {
    std::vector<Value> inputs = {of(params[0]), of(with_condition ? params[1] : node.number(1, dtype::bool_))};
    for (size_t i = with_condition ? 2 : 1; i < params.size(); ++i) inputs.push_back(of(params[i]));
    std::vector<Value> outputs = node.importer().subgraph(node, graph, std::move(inputs));
    if (!with_condition) {
      always &= is_true(outputs[0]);
      outputs.erase(outputs.begin());
      return exprs_of(outputs, node.span());
    }
    Exprs results = exprs_of(outputs, node.span());
    if (!results[0].tensor_type().shape.empty()) results[0] = op::reshape_to(results[0], {});
    return results;
  };
  if (always && trip.defined()) {
    const Body body = stable_body(node, types, [&](const Exprs& params) { return make(params, false); });
    if (always) {
      const Expr loop = ir::loop(trip, Expr(), ir::function(body.params, ir::tuple(body.results)), initial,
                                 static_cast<int>(scanned), node.span());
      Exprs outputs = fields_of(loop, 0, carried + scanned, node.span());
      const Known* count = node.known(0);
      if (count && count->values.size() == 1 && !count->values[0].is_real) {
        for (size_t i = carried; i < outputs.size(); ++i)
          outputs[i] = with_rows(outputs[i], max(count->values[0].dim, Dim(0)));
      }
      return outputs;
    }
  }
  initial.insert(initial.begin(), node.has(1) ? scalar_input(node, 1) : node.number(1, dtype::bool_));
  types.insert(types.begin(), tensor_type({}, dtype::bool_));
  const Body body = stable_body(node, types, [&](const Exprs& params) { return make(params, true); });
  const Expr loop = ir::loop(trip, condition_of(body), ir::function(body.params, ir::tuple(body.results)), initial,
                             static_cast<int>(scanned), node.span());
  return fields_of(loop, 1, carried + scanned, node.span());
}

// ---- Scan ----

struct ScanAttributes {
  ir::Ints input_axes, input_directions, output_axes, output_directions;
};

ir::Ints counted(Node& node, const char* name, size_t count) {
  const ir::Ints values = node.ints(name, ir::Ints(count, 0));
  if (values.size() != count)
    node.malformed(fmt::format("{} has {} values, {} are needed", name, values.size(), count));
  return values;
}

// Iteration i of a scan input.
Expr scan_slice(Node& node, const Expr& x, const Expr& i, int64_t axis, bool backward) {
  const Dim& extent = x.tensor_type().shape[static_cast<size_t>(axis)];
  const Expr place = backward ? node.call("subtract", {extent_value(extent - 1, dtype::int64_), i}) : i;
  return op::take(x, place, axis);
}

Exprs scan_rule(Node& node) {
  const onnxpb::GraphProto& graph = node.graph("body");
  const auto scans = static_cast<size_t>(node.required_i("num_scan_inputs"));
  if (scans < 1 || scans > node.num_inputs())
    node.malformed(fmt::format("{} scan inputs of {} inputs", scans, node.num_inputs()));
  const size_t states = node.num_inputs() - scans;
  if (static_cast<size_t>(graph.output_size()) < states) node.malformed("the body has too few outputs");
  const size_t scanned = static_cast<size_t>(graph.output_size()) - states;
  const ScanAttributes attributes{
      counted(node, "scan_input_axes", scans), counted(node, "scan_input_directions", scans),
      counted(node, "scan_output_axes", scanned), counted(node, "scan_output_directions", scanned)};
  Exprs initial;
  std::vector<Type> types;
  for (size_t i = 0; i < states; ++i) {
    initial.push_back(node.input(i));
    types.push_back(initial.back().type());
  }
  const int64_t first_axis = axis_of(node, attributes.input_axes[0], node.rank(states));
  const Expr trip = extent_value(node.shape(states)[static_cast<size_t>(first_axis)], dtype::int64_);
  const Body body = stable_body(node, types, [&](const Exprs& params) {
    std::vector<Value> inputs;
    for (size_t i = 0; i < states; ++i) inputs.push_back(of(params[i + 1]));
    for (size_t i = 0; i < scans; ++i) {
      const int64_t axis = axis_of(node, attributes.input_axes[i], node.rank(states + i));
      inputs.push_back(
          of(scan_slice(node, node.input(states + i), params[0], axis, attributes.input_directions[i] != 0)));
    }
    std::vector<Value> outputs = node.importer().subgraph(node, graph, std::move(inputs));
    return exprs_of(outputs, node.span());
  });
  const Expr loop = ir::loop(trip, Expr(), ir::function(body.params, ir::tuple(body.results)), initial,
                             static_cast<int>(scanned), node.span());
  Exprs outputs = fields_of(loop, 0, states + scanned, node.span());
  for (size_t i = 0; i < scanned; ++i) {
    Expr& output = outputs[states + i];
    output = with_rows(output, node.shape(states)[static_cast<size_t>(first_axis)]);
    const size_t rank = output.tensor_type().shape.size();
    if (attributes.output_directions[i] != 0) output = node.call("reverse", {output}, {{"axis", int64_t{0}}});
    const int64_t axis = axis_of(node, attributes.output_axes[i], rank);
    ir::Ints order;
    for (int64_t a = 1; a < static_cast<int64_t>(rank); ++a) order.push_back(a);
    order.insert(order.begin() + axis, 0);
    if (axis != 0) output = op::transpose(output, order);
  }
  return outputs;
}

}  // namespace

Expr with_rows(const Expr& x, const Dim& rows) {
  Shape shape = x.tensor_type().shape;
  if (shape[0] == rows) return x;
  shape[0] = rows;
  return op::reshape_to(x, shape);
}

void add_control_rules(RuleTable& table) {
  table.add("If", {1, 11, 13, 16, 19, 21, 23, 24, 25}, if_rule);
  table.add("Loop", {1, 11, 13, 16, 19, 21, 23, 24, 25}, loop_rule);
  table.add("Scan", {9, 11, 16, 19, 21, 23, 24, 25}, scan_rule);
}

}  // namespace treadle::onnx
