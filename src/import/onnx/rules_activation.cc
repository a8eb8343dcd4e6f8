// SPDX-License-Identifier: Apache-2.0
// Activation functions and softmax. Formulas: ONNX operator definitions.
#include <cmath>
#include <limits>

#include "import/onnx/rules.h"
#include "op/nn/activation.h"
#include "op/nn/softmax.h"
#include "op/tensor/binary.h"
#include "op/tensor/reduce.h"
#include "op/tensor/reshape.h"
#include "op/tensor/unary.h"

namespace treadle::onnx {
namespace {

using ir::Expr;
using Exprs = std::vector<Expr>;

void need_float(Node& node) {
  if (!node.dtype(0).is_float())
    node.malformed(fmt::format("the input is {}, it must be a float", to_string(node.dtype(0))));
}

Exprs relu_rule(Node& node) { return {op::relu(node.input(0), node.span())}; }

Exprs sigmoid_rule(Node& node) { return {node.call("sigmoid", {node.input(0)})}; }
Exprs tanh_rule(Node& node) { return {node.call("tanh", {node.input(0)})}; }

Exprs leaky_relu_rule(Node& node) { return {op::leaky_relu(node.input(0), node.f("alpha", 0.01), node.span())}; }

// where(x < 0, slope * x, x); the slope is broadcast to x, one way.
Exprs prelu_rule(Node& node) {
  const Expr x = node.input(0);
  const Expr result =
      op::where(node.call("less", {x, node.number(0, node.dtype(0))}), node.call("multiply", {x, node.input(1)}), x);
  if (!equal(result.type(), x.type())) node.malformed("the slope does not broadcast to the data's shape");
  return {result};
}

Exprs hard_sigmoid_rule(Node& node) {
  need_float(node);
  return {op::hard_sigmoid(node.input(0), node.f("alpha", 0.2), node.f("beta", 0.5))};
}

Exprs hard_swish_rule(Node& node) {
  need_float(node);
  return {op::hard_swish(node.input(0))};
}

// alpha * (exp(x) - 1) below 0, which must not be computed from the positive values: exp overflows there.
Expr negative_exp(const Expr& data, double alpha, double divisor, Node& node) {
  const DType given = data.tensor_type().dtype, dtype = given.is_half() ? dtype::float32_ : given;
  const Expr x = op::cast(data, dtype);
  const Expr low = node.call("minimum", {x, node.number(0, dtype)});
  const Expr scaled = divisor == 1 ? low : op::divide(low, node.number(divisor, dtype));
  return op::cast(op::multiply(op::add(node.call("exp", {scaled}), -1.0), alpha), given);
}

Exprs elu_rule(Node& node) {
  need_float(node);
  const Expr x = node.input(0);
  const Expr negative = negative_exp(x, node.f("alpha", 1), 1, node);
  return {op::where(node.call("less", {x, node.number(0, node.dtype(0))}), negative, x)};
}

Exprs selu_rule(Node& node) {
  need_float(node);
  const Expr x = node.input(0);
  const double alpha = node.f("alpha", 1.67326319217681884765625), gamma = node.f("gamma", 1.05070102214813232421875);
  const Expr negative = negative_exp(x, alpha, 1, node);
  return {op::multiply(op::where(node.call("greater", {x, node.number(0, node.dtype(0))}), x, negative), gamma)};
}

// max(0, x) + min(0, alpha * (exp(x / alpha) - 1))
Exprs celu_rule(Node& node) {
  need_float(node);
  const double alpha = node.f("alpha", 1);
  if (alpha <= 0) node.unsupported(fmt::format("alpha is {}, it must be positive", alpha));
  const Expr x = node.input(0);
  return {op::where(node.call("less", {x, node.number(0, node.dtype(0))}), negative_exp(x, alpha, alpha, node), x)};
}

Exprs thresholded_relu_rule(Node& node) {
  const Expr x = node.input(0);
  const double alpha = node.f("alpha", 1);
  return {op::where(node.call("greater", {x, node.number(alpha, node.dtype(0))}), x, node.number(0, node.dtype(0)))};
}

Exprs softplus_rule(Node& node) {
  need_float(node);
  return {op::softplus(node.input(0))};
}

Exprs softsign_rule(Node& node) {
  const Expr x = node.input(0);
  return {op::divide(x, op::add(node.call("abs", {x}), 1.0))};
}

Exprs mish_rule(Node& node) {
  need_float(node);
  const Expr x = node.input(0);
  return {op::multiply(x, node.call("tanh", {op::softplus(x)}))};
}

Exprs gelu_rule(Node& node) {
  need_float(node);
  const std::string form = node.s("approximate", "none");
  if (form != "none" && form != "tanh")
    node.malformed(fmt::format("approximate is \"{}\", it must be none or tanh", printable(form)));
  return {op::gelu(node.input(0), form == "tanh")};
}

// x * sigmoid(alpha * x)
Exprs swish_rule(Node& node) {
  need_float(node);
  const Expr x = node.input(0);
  const double alpha = node.f("alpha", 1);
  return {op::multiply(x, node.call("sigmoid", {alpha == 1 ? x : op::multiply(x, alpha)}))};
}

Exprs shrink_rule(Node& node) {
  const DType dtype = node.dtype(0);
  const double lambd = node.f("lambd", 0.5), bias = node.f("bias", 0);
  if (!dtype.is_float() && (lambd != std::floor(lambd) || bias != std::floor(bias)))
    node.unsupported("integers with a fractional lambd or bias");
  if (dtype.is_uint()) node.unsupported("unsigned integers");
  const Expr x = node.input(0), zero = node.number(0, dtype);
  const Expr above = node.call("subtract", {x, node.number(bias, dtype)}),
             below = node.call("add", {x, node.number(bias, dtype)});
  const Expr rest = op::where(node.call("greater", {x, node.number(lambd, dtype)}), above, zero);
  return {op::where(node.call("less", {x, node.number(-lambd, dtype)}), below, rest)};
}

// Bounds as attributes.
Exprs clip6_rule(Node& node) {
  need_float(node);
  constexpr double limit = std::numeric_limits<float>::max();
  return {op::clip(node.input(0), node.f("min", -limit), node.f("max", limit))};
}

// Bounds as inputs, each of them optional. A constant float bound goes into nn's clip; of 64-bit integers a double
// would lose bits.
Exprs clip11_rule(Node& node) {
  Expr x = node.input(0);
  const DType dtype = node.dtype(0);
  const auto constant = [&](size_t i) {
    return !node.has(i) || (node.input(i).as<ir::Constant>() && node.input(i).as<ir::Constant>()->value.size() == 1);
  };
  for (size_t i : {size_t{1}, size_t{2}}) {
    if (node.has(i) && (node.dtype(i) != dtype || (node.rank(i) > 0 && !(node.rank(i) == 1 && node.shape(i)[0].is(1)))))
      node.malformed(fmt::format("bound {} must be a scalar of the data's dtype", i));
  }
  if (dtype.is_float() && constant(1) && constant(2) && (node.has(1) || node.has(2))) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const double low = node.has(1) ? node.float_input(1, "the lower bound") : -infinity;
    const double high = node.has(2) ? node.float_input(2, "the upper bound") : infinity;
    if (!std::isnan(low) && !std::isnan(high)) return {node.call("clip", {x}, {{"a_min", low}, {"a_max", high}})};
  }
  for (size_t i : {size_t{1}, size_t{2}}) {
    if (!node.has(i)) continue;
    const Expr bound = node.rank(i) == 0 ? node.input(i) : op::reshape_to(node.input(i), {});
    x = node.call(i == 1 ? "maximum" : "minimum", {x, bound});
  }
  return {x};
}

// ---- Softmax ----

using SoftmaxFn = std::function<Expr(Expr, int64_t)>;

// 1 at the first largest value along the axis, 0 elsewhere.
SoftmaxFn hardmax(Node& node) {
  return [&node](const Expr& x, int64_t axis) {
    const TensorType& type = x.tensor_type();
    const auto at = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(type.shape.size()) : axis);
    if (!type.shape[at].is_const()) node.unsupported("the axis has a symbolic extent");
    const Expr index = op::arg_reduce("argmax", x, ir::Ints{axis}, false, false);
    return node.call("one_hot", {index, node.number(1, type.dtype), node.number(0, type.dtype)},
                     {{"depth", type.shape[at].value()}, {"axis", static_cast<int64_t>(at)}, {"dtype", type.dtype}});
  };
}

SoftmaxFn softmax_function(Node& node) {
  if (node.op_type() == "Hardmax") return hardmax(node);
  const bool log = node.op_type() == "LogSoftmax";
  const Span span = node.span();
  return [log, span](Expr x, int64_t axis) {
    return log ? op::log_softmax(std::move(x), axis, span) : op::softmax(std::move(x), axis, span);
  };
}

Exprs softmax13_rule(Node& node) {
  const int64_t axis = axis_of(node, node.i("axis", -1), node.rank(0));
  return {softmax_function(node)(node.input(0), axis)};
}

// Before opset 13 the axes from `axis` on form one.
Exprs softmax1_rule(Node& node) {
  const Shape shape = node.shape(0);
  const int64_t axis = node.i("axis", 1);
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t at = axis == rank ? axis : axis_of(node, axis, shape.size());
  const SoftmaxFn function = softmax_function(node);
  if (at == rank - 1) return {function(node.input(0), at)};
  const Shape flat = {product(Shape(shape.begin(), shape.begin() + at)),
                      product(Shape(shape.begin() + at, shape.end()))};
  return {op::reshape_to(function(op::reshape_to(node.input(0), flat), 1), shape)};
}

}  // namespace

void add_activation_rules(RuleTable& table) {
  table.add("Relu", {6, 13, 14}, relu_rule);
  table.add("Sigmoid", {6, 13}, sigmoid_rule);
  table.add("Tanh", {6, 13}, tanh_rule);
  table.add("LeakyRelu", {6, 16}, leaky_relu_rule);
  table.add("PRelu", {7, 9, 16}, prelu_rule);
  table.add("HardSigmoid", {6, 22}, hard_sigmoid_rule);
  table.add("HardSwish", {14, 22}, hard_swish_rule);
  table.add("Elu", {6, 22}, elu_rule);
  table.add("Selu", {6, 22}, selu_rule);
  table.add("Celu", {12, 28}, celu_rule);
  table.add("ThresholdedRelu", {10, 22}, thresholded_relu_rule);
  table.add("Softplus", {1, 22}, softplus_rule);
  table.add("Softsign", {1, 22}, softsign_rule);
  table.add("Mish", {18, 22}, mish_rule);
  table.add("Gelu", {20}, gelu_rule);
  table.add("Swish", {24}, swish_rule);
  table.add("Shrink", {9}, shrink_rule);
  table.add("Clip", {6}, clip6_rule);
  table.add("Clip", {11, 12, 13}, clip11_rule);
  for (const char* name : {"Softmax", "LogSoftmax", "Hardmax"}) {
    table.add(name, {1, 11}, softmax1_rule);
    table.add(name, {13}, softmax13_rule);
  }
}

}  // namespace treadle::onnx
