// SPDX-License-Identifier: Apache-2.0
// Normalisations, written with simple operators; per-channel numbers that are constant are folded later.
#include "import/onnx/rules.h"
#include "op/tensor/binary.h"
#include "op/tensor/reduce.h"
#include "op/tensor/reshape.h"
#include "op/tensor/unary.h"

namespace treadle::onnx {
namespace {

using ir::Expr;
using Exprs = std::vector<Expr>;

// (C) as (C, 1, …), to be broadcast along axis 1 of a tensor with `rank` axes.
Expr per_channel(const Expr& x, size_t rank) {
  return rank > 2 ? op::expand_dims(x, 1, static_cast<int64_t>(rank) - 2) : x;
}

Expr reciprocal_root(Node& node, const Expr& variance, double epsilon) {
  const DType dtype = variance.tensor_type().dtype;
  return op::divide(node.number(1, dtype), node.call("sqrt", {op::add(variance, epsilon)}));
}

// (x - mean) * rsqrt(variance + epsilon) over the axes, in float32 at least.
Expr standardised(Node& node, const Expr& x, const ir::Ints& axes, double epsilon) {
  const Expr centred = op::subtract(x, op::mean(x, axes, true));
  const Expr variance = op::mean(op::multiply(centred, centred), axes, true);
  return op::multiply(centred, reciprocal_root(node, variance, epsilon));
}

DType wide(DType dtype) { return dtype.is_half() ? dtype::float32_ : dtype; }

ir::Ints axes_from(size_t first, size_t rank) {
  ir::Ints axes;
  for (size_t i = first; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  return axes;
}

// y = (x - mean) / sqrt(var + epsilon) * scale + bias, as x * a + b with one a and b per channel.
Exprs batch_norm_rule(Node& node) {
  const double epsilon = node.f("epsilon", 1e-5);
  node.ignore("momentum");
  if (node.i("spatial", 1) == 0) node.unsupported("spatial=0");
  if (node.flag("training_mode")) node.unsupported("training_mode=1");
  for (size_t i = 1; i < 5; ++i) {
    if (node.wants(i)) node.unsupported("outputs of training");
    if (node.rank(i) != 1) node.malformed(fmt::format("input {} has {} axes, it must have one", i, node.rank(i)));
  }
  const size_t rank = node.rank(0);
  if (rank < 2) node.malformed(fmt::format("the data have {} axes, at least 2 are needed", rank));
  const DType dtype = node.dtype(0), compute = wide(node.dtype(3));
  const auto param = [&](size_t i) { return op::cast(node.input(i), compute); };
  const Expr a = op::multiply(param(1), reciprocal_root(node, param(4), epsilon));
  const Expr b = op::subtract(param(2), op::multiply(param(3), a));
  const Expr scaled = node.call("multiply", {node.input(0), per_channel(op::cast(a, dtype), rank)});
  return {node.call("add", {scaled, per_channel(op::cast(b, dtype), rank)})};
}

Exprs instance_norm_rule(Node& node) {
  const size_t rank = node.rank(0);
  if (rank < 3) node.malformed(fmt::format("the data have {} axes, at least 3 are needed", rank));
  const DType dtype = node.dtype(0), compute = wide(dtype);
  const Expr x = op::cast(node.input(0), compute);
  const Expr y = standardised(node, x, axes_from(2, rank), node.f("epsilon", 1e-5));
  const Expr scaled = op::multiply(y, per_channel(op::cast(node.input(1), compute), rank));
  return {op::cast(op::add(scaled, per_channel(op::cast(node.input(2), compute), rank)), dtype)};
}

// Over all axes from `axis` on; outputs 1 and 2 are mean and 1/sqrt(variance + epsilon).
Exprs layer_norm_rule(Node& node) {
  const size_t rank = node.rank(0);
  const auto axis = static_cast<size_t>(axis_of(node, node.i("axis", -1), rank));
  const double epsilon = node.f("epsilon", 1e-5);
  const int64_t stash = node.i("stash_type", 1);
  if (stash != 1 && stash != 16) node.unsupported(fmt::format("stash_type {}", stash));
  const DType dtype = node.dtype(0), compute = wide(dtype);
  const ir::Ints axes = axes_from(axis, rank);
  const Expr x = op::cast(node.input(0), compute);
  const Expr mean = op::mean(x, axes, true);
  const Expr centred = op::subtract(x, mean);
  const Expr deviation = reciprocal_root(node, op::mean(op::multiply(centred, centred), axes, true), epsilon);
  Expr y = op::multiply(op::cast(op::multiply(centred, deviation), dtype), node.input(1));
  if (node.has(2)) y = op::add(y, node.input(2));
  const DType stashed = stash == 1 ? dtype::float32_ : dtype::bfloat16_;
  return {y, op::cast(mean, stashed), op::cast(deviation, stashed)};
}

Exprs rms_norm_rule(Node& node) {
  const size_t rank = node.rank(0);
  const auto axis = static_cast<size_t>(axis_of(node, node.i("axis", -1), rank));
  const double epsilon = node.f("epsilon", 1e-5);
  if (node.i("stash_type", 1) != 1) node.unsupported("stash_type other than FLOAT");
  const DType dtype = node.dtype(0);
  const Expr x = op::cast(node.input(0), wide(dtype));
  const Expr scale = reciprocal_root(node, op::mean(op::multiply(x, x), axes_from(axis, rank), true), epsilon);
  return {op::multiply(op::cast(op::multiply(x, scale), dtype), node.input(1))};
}

// Channels in groups. Version 18 has one scale and bias per group, 21 one per channel.
Exprs group_norm_rule(Node& node) {
  const Shape shape = node.shape(0);
  const int64_t groups = node.required_i("num_groups");
  const double epsilon = node.f("epsilon", 1e-5);
  if (node.i("stash_type", 1) != 1) node.unsupported("stash_type other than FLOAT");
  if (shape.size() < 3 || !shape[1].is_const()) node.unsupported("fewer than 3 axes, or a symbolic number of channels");
  if (groups < 1 || shape[1].value() % groups != 0)
    node.malformed(fmt::format("{} channels do not divide into {} groups", shape[1].value(), groups));
  const DType dtype = node.dtype(0), compute = wide(dtype);
  const int64_t inner = shape[1].value() / groups;
  Shape split = {shape[0], groups, inner};
  split.insert(split.end(), shape.begin() + 2, shape.end());
  const Expr x = op::reshape_to(op::cast(node.input(0), compute), split);
  Expr y = op::cast(standardised(node, x, axes_from(2, split.size()), epsilon), dtype);
  const auto params = [&](size_t i) {
    if (node.rank(i) != 1) node.malformed(fmt::format("input {} must have one axis", i));
    const Expr p = node.input(i);
    return node.opset() < 21 ? op::expand_dims(p, 1, static_cast<int64_t>(split.size()) - 2)
                             : per_channel(p, shape.size());
  };
  if (node.opset() >= 21) y = op::reshape_to(y, shape);
  y = op::add(op::multiply(y, params(1)), params(2));
  return {op::reshape_to(y, shape)};
}

// (x - mean) / (sqrt(mean of squares - square of mean) + 1e-9)
Exprs mean_variance_rule(Node& node) {
  const ir::Ints axes = axes_of(node, node.ints("axes", {0, 2, 3}), node.rank(0));
  const Expr x = node.input(0), mean = op::mean(x, axes, true);
  const Expr centred = op::subtract(x, mean);
  const Expr deviation = node.call("sqrt", {op::mean(op::multiply(centred, centred), axes, true)});
  return {op::divide(centred, op::add(deviation, 1e-9))};
}

// Division by 0 gives 0.
Exprs lp_normalization_rule(Node& node) {
  const int64_t p = node.i("p", 2);
  if (p != 1 && p != 2) node.unsupported(fmt::format("p={}", p));
  const ir::Ints axis = {axis_of(node, node.i("axis", -1), node.rank(0))};
  const Expr x = node.input(0), zero = node.number(0, node.dtype(0));
  const Expr norm = p == 1 ? op::sum(node.call("abs", {x}), axis, true)
                           : node.call("sqrt", {op::sum(op::multiply(x, x), axis, true)});
  return {op::where(node.call("equal", {norm, zero}), zero, op::divide(x, norm))};
}

Exprs lrn_rule(Node& node) {
  return {node.call("nn.lrn", {node.input(0)},
                    {{"size", node.required_i("size")},
                     {"axis", int64_t{1}},
                     {"bias", node.f("bias", 1)},
                     {"alpha", node.f("alpha", 1e-4)},
                     {"beta", node.f("beta", 0.75)}})};
}

}  // namespace

void add_normalization_rules(RuleTable& table) {
  table.add("BatchNormalization", {7, 9, 14, 15}, batch_norm_rule);
  table.add("InstanceNormalization", {6, 22}, instance_norm_rule);
  table.add("LayerNormalization", {17}, layer_norm_rule);
  table.add("RMSNormalization", {23}, rms_norm_rule);
  table.add("GroupNormalization", {18, 21}, group_norm_rule);
  table.add("MeanVarianceNormalization", {9, 13}, mean_variance_rule);
  table.add("LpNormalization", {1, 22}, lp_normalization_rule);
  table.add("LRN", {1, 13}, lrn_rule);
}

}  // namespace treadle::onnx
