// SPDX-License-Identifier: Apache-2.0
// Types and computations of normalisations. All but batch_norm compute sum, mean of squared deviations and result in
// stages of rows:
//
//   sum[r] = sum of x over the row; deviation[r] = sum of (x - sum/n)^2; y = (x - sum/n) * rsqrt(deviation/n + epsilon)
//   * gamma + beta
#include "op/nn/norm.h"

#include <algorithm>

#include "op/nn/window.h"

namespace treadle::op {
namespace {

using loop::Expr;

const TensorType* float_data(ir::Relation& relation) {
  const TensorType* x = relation.tensor(0);
  if (x && !x->dtype.is_float())
    fail(ErrorCode::TypeMismatch, "data is {}, it must be of a float dtype", to_string(x->dtype));
  return x;
}

// Arguments first … last-1 are vectors along axis `axis` of the data.
void channel_vectors(ir::Relation& relation, const TensorType& x, size_t axis, size_t first, size_t last) {
  for (size_t i = first; i < last; ++i) {
    const TensorType* vector = relation.tensor(i);
    if (!vector) {
      relation.set_input(i, tensor_type({x.shape[axis]}, x.dtype));
      continue;
    }
    require_rank(relation, i, 1);
    require_same_dtype(relation, 0, i);
    if (!assume_equal(vector->shape[0], x.shape[axis])) {
      fail(ErrorCode::TypeMismatch, "{} has {} elements but axis {} of the data has {}", relation.op.inputs[i].name,
           to_string(vector->shape[0]), axis, to_string(x.shape[axis]));
    }
  }
}

// ---- batch_norm ----

void batch_norm_relation(ir::Relation& relation) {
  const TensorType* x = float_data(relation);
  if (!x) return;
  const auto axis = static_cast<size_t>(normalise_axis(relation.attrs<BatchNormAttrs>().axis, x->shape.size()));
  channel_vectors(relation, *x, axis, 1, 5);
  const Type vector = tensor_type({x->shape[axis]}, x->dtype);
  relation.set_output(tuple_type({relation.input(0), vector, vector}));
}

// x * s + (beta - mean * s) with s = gamma / sqrt(variance + epsilon): s and the shift are constants of a trained
// model.
ir::Expr batch_norm_decompose(const ir::Call& call) {
  const auto& attrs = attrs_of<BatchNormAttrs>(call);
  const TensorType& x = call.args[0].tensor_type();
  const size_t rank = x.shape.size();
  const int64_t behind = static_cast<int64_t>(rank) - 1 - normalise_axis(attrs.axis, rank);
  const auto along_axis = [&](const ir::Expr& vector) {
    if (behind == 0) return vector;
    return ir::call("expand_dims", {vector}, {{"axis", int64_t{1}}, {"num_newaxis", behind}}, call.span);
  };
  const auto binary = [&](std::string_view op, const ir::Expr& a, const ir::Expr& b) {
    return ir::call(op, {a, b}, {}, call.span);
  };
  const ir::Expr deviation =
      ir::call("sqrt", {binary("add", call.args[4], scalar(attrs.epsilon, x.dtype))}, {}, call.span);
  const ir::Expr factor = binary("divide", attrs.scale ? call.args[1] : scalar(1, x.dtype), deviation);
  const ir::Expr moved = binary("multiply", call.args[3], factor);
  const ir::Expr shift =
      attrs.center ? binary("subtract", call.args[2], moved) : ir::call("negative", {moved}, {}, call.span);
  const ir::Expr y = binary("add", binary("multiply", call.args[0], along_axis(factor)), along_axis(shift));
  return ir::tuple({y, call.args[3], call.args[4]}, call.span);
}

// ---- layer_norm, instance_norm, group_norm ----

// The rows over which mean and variance are taken: what is left of the data's axes, and which axes (with which extents)
// a row has. A channel axis that is divided into groups counts as two.
struct RowPlan {
  std::vector<Expr> rows, extents;
  std::function<Indices(const std::vector<loop::Var>& row, const std::vector<loop::Var>& k)> element;  // of the data
  std::function<Indices(const std::vector<loop::Var>& element)> row;
};

// One row for every position along the axes that are not in `reduced`.
RowPlan axis_rows(const loop::Tensor& x, const std::vector<bool>& reduced) {
  RowPlan plan;
  for (size_t a = 0; a < x.rank(); ++a) (reduced[a] ? plan.extents : plan.rows).push_back(x.shape(a));
  plan.element = [reduced](const std::vector<loop::Var>& row, const std::vector<loop::Var>& k) {
    Indices index;
    size_t r = 0, j = 0;
    for (bool is_reduced : reduced) index.push_back(is_reduced ? k[j++] : row[r++]);
    return index;
  };
  plan.row = [reduced](const std::vector<loop::Var>& element) {
    Indices index;
    for (size_t a = 0; a < reduced.size(); ++a) {
      if (!reduced[a]) index.push_back(element[a]);
    }
    return index;
  };
  return plan;
}

// One row for every (batch, group).
RowPlan group_rows(const loop::Tensor& x, size_t axis, int64_t groups, const Expr& per_group) {
  RowPlan plan;
  plan.rows = {x.shape(0), Expr(groups)};
  for (size_t a = 1; a < x.rank(); ++a) plan.extents.push_back(a == axis ? per_group : x.shape(a));
  plan.element = [axis, per_group](const std::vector<loop::Var>& row, const std::vector<loop::Var>& k) {
    Indices index{row[0]};
    for (size_t a = 1; a <= k.size(); ++a)
      index.push_back(a == axis ? Expr(row[1]) * per_group + k[a - 1] : Expr(k[a - 1]));
    return index;
  };
  plan.row = [axis, per_group](const std::vector<loop::Var>& element) {
    return Indices{element[0], loop::floordiv(element[axis], per_group)};
  };
  return plan;
}

struct Affine {
  double epsilon;
  bool center, scale;
  size_t axis;
};

std::vector<loop::Tensor> normalise(const std::string& name, const std::vector<loop::Tensor>& inputs,
                                    const RowPlan& plan, const Affine& affine) {
  const loop::Tensor& x = inputs[0];
  const DType dtype = accumulator_dtype(x.dtype());
  const auto value = [&](const Indices& index) { return loop::cast(x(index), dtype); };
  Expr count(1);
  for (const Expr& extent : plan.extents) count = count * extent;
  const Expr n = loop::cast(count, dtype);
  const loop::Tensor sum = loop::reduce(
      "row_sum", plan.rows, loop::ReduceOp::Sum, plan.extents,
      [&](const std::vector<loop::Var>& row, const std::vector<loop::Var>& k) { return value(plan.element(row, k)); });
  const loop::Tensor mean = loop::compute(
      "row_mean", plan.rows, [&](const std::vector<loop::Var>& row) { return loop::div(sum(to_indices(row)), n); });
  const loop::Tensor deviation = loop::reduce("row_deviation", plan.rows, loop::ReduceOp::Sum, plan.extents,
                                              [&](const std::vector<loop::Var>& row, const std::vector<loop::Var>& k) {
                                                const Expr d = value(plan.element(row, k)) - mean(to_indices(row));
                                                return d * d;
                                              });
  const loop::Tensor factor = loop::compute("row_factor", plan.rows, [&](const std::vector<loop::Var>& row) {
    return loop::intrinsic(loop::Intrinsic::Rsqrt,
                           {loop::div(deviation(to_indices(row)), n) + loop::constant(affine.epsilon, dtype)});
  });
  return {loop::compute(name, x.shape(), [&](const std::vector<loop::Var>& i) {
    const Indices row = plan.row(i);
    Expr y = (value(to_indices(i)) - mean(row)) * factor(row);
    if (affine.scale) y = y * loop::cast(inputs[1](i[affine.axis]), dtype);
    if (affine.center) y = y + loop::cast(inputs[2](i[affine.axis]), dtype);
    return loop::cast(y, x.dtype());
  })};
}

template <typename A>
Affine affine_of(const ir::Call& call, size_t rank) {
  const A& attrs = attrs_of<A>(call);
  return {attrs.epsilon, attrs.center, attrs.scale, static_cast<size_t>(normalise_axis(attrs.axis, rank))};
}

template <typename A>
void norm_relation(ir::Relation& relation) {
  const TensorType* x = float_data(relation);
  if (!x) return;
  channel_vectors(relation, *x, static_cast<size_t>(normalise_axis(relation.attrs<A>().axis, x->shape.size())), 1, 3);
  relation.set_output(relation.input(0));
}

void instance_norm_relation(ir::Relation& relation) {
  const TensorType* x = relation.tensor(0);
  if (x && x->shape.size() < 3)
    fail(ErrorCode::TypeMismatch, "data {} has rank {}, it must be at least 3", to_string(x->shape), x->shape.size());
  norm_relation<InstanceNormAttrs>(relation);
}

void group_norm_relation(ir::Relation& relation) {
  if (const TensorType* x = relation.tensor(0)) {
    const auto& attrs = relation.attrs<GroupNormAttrs>();
    const int64_t axis = normalise_axis(attrs.axis, x->shape.size());
    if (axis == 0) fail(ErrorCode::TypeAttribute, "axis 0 is the batch");
    const Dim& channels = x->shape[static_cast<size_t>(axis)];
    if (attrs.num_groups < 1 || !assume_divides(attrs.num_groups, channels)) {
      fail(ErrorCode::TypeMismatch, "num_groups={} does not divide the {} channels", attrs.num_groups,
           to_string(channels));
    }
  }
  norm_relation<GroupNormAttrs>(relation);
}

std::vector<loop::Tensor> layer_norm_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const Affine affine = affine_of<LayerNormAttrs>(call, inputs[0].rank());
  std::vector<bool> reduced(inputs[0].rank(), false);
  reduced[affine.axis] = true;
  return normalise("layer_norm", inputs, axis_rows(inputs[0], reduced), affine);
}

std::vector<loop::Tensor> instance_norm_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const Affine affine = affine_of<InstanceNormAttrs>(call, inputs[0].rank());
  std::vector<bool> reduced(inputs[0].rank(), true);
  reduced[0] = reduced[affine.axis] = false;
  return normalise("instance_norm", inputs, axis_rows(inputs[0], reduced), affine);
}

std::vector<loop::Tensor> group_norm_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const Affine affine = affine_of<GroupNormAttrs>(call, inputs[0].rank());
  const int64_t groups = attrs_of<GroupNormAttrs>(call).num_groups;
  const Expr per_group = loop::to_expr(floordiv(input_types(call)[0]->shape[affine.axis], groups));
  return normalise("group_norm", inputs, group_rows(inputs[0], affine.axis, groups, per_group), affine);
}

// ---- l2_normalize, lrn, dropout ----

void l2_normalize_relation(ir::Relation& relation) {
  const TensorType* x = float_data(relation);
  if (!x) return;
  reduction_axes(relation.attrs<L2NormalizeAttrs>().axis, false, x->shape.size());
  relation.set_output(relation.input(0));
}

std::vector<loop::Tensor> l2_normalize_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const auto& attrs = attrs_of<L2NormalizeAttrs>(call);
  const loop::Tensor& x = inputs[0];
  const DType dtype = accumulator_dtype(x.dtype());
  std::vector<bool> reduced(x.rank(), false);
  for (int64_t axis : reduction_axes(attrs.axis, false, x.rank())) reduced[static_cast<size_t>(axis)] = true;
  const RowPlan plan = axis_rows(x, reduced);
  const loop::Tensor squares = loop::reduce("row_squares", plan.rows, loop::ReduceOp::Sum, plan.extents,
                                            [&](const std::vector<loop::Var>& row, const std::vector<loop::Var>& k) {
                                              const Expr v = loop::cast(x(plan.element(row, k)), dtype);
                                              return v * v;
                                            });
  return {loop::compute("l2_normalize", x.shape(), [&](const std::vector<loop::Var>& i) {
    const Expr sum = loop::max(squares(plan.row(i)), loop::constant(attrs.eps, dtype));
    return loop::cast(loop::div(loop::cast(x(to_indices(i)), dtype), loop::intrinsic(loop::Intrinsic::Sqrt, {sum})),
                      x.dtype());
  })};
}

void lrn_relation(ir::Relation& relation) {
  const TensorType* x = float_data(relation);
  if (!x) return;
  const auto& attrs = relation.attrs<LrnAttrs>();
  if (attrs.size < 1) fail(ErrorCode::TypeAttribute, "size is {}, it must be at least 1", attrs.size);
  normalise_axis(attrs.axis, x->shape.size());
  relation.set_output(relation.input(0));
}

std::vector<loop::Tensor> lrn_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const auto& attrs = attrs_of<LrnAttrs>(call);
  const loop::Tensor& x = inputs[0];
  const DType dtype = accumulator_dtype(x.dtype());
  const auto axis = static_cast<size_t>(normalise_axis(attrs.axis, x.rank()));
  // What the window holds beyond both ends counts 0, so it need not be looked at.
  const auto reach = [&](int64_t offsets) { return loop::min(Expr(offsets), loop::max(x.shape(axis) - 1, Expr(0))); };
  const Expr before = reach((attrs.size - 1) / 2), behind = reach(attrs.size / 2);
  const loop::Tensor squares = loop::reduce("window_squares", x.shape(), loop::ReduceOp::Sum, {before + behind + 1},
                                            [&](const std::vector<loop::Var>& i, const std::vector<loop::Var>& k) {
                                              Indices index = to_indices(i);
                                              index[axis] = index[axis] + k[0] - before;
                                              const Expr inside = index[axis] >= Expr(0) && index[axis] < x.shape(axis);
                                              const Expr v = loop::cast(x(index), dtype);
                                              return loop::select(inside, v * v, loop::constant(0, dtype));
                                            });
  return {loop::compute("lrn", x.shape(), [&](const std::vector<loop::Var>& i) {
    const Expr base = loop::constant(attrs.bias, dtype) +
                      loop::constant(attrs.alpha / static_cast<double>(attrs.size), dtype) * squares(to_indices(i));
    return loop::cast(loop::div(loop::cast(x(to_indices(i)), dtype),
                                loop::intrinsic(loop::Intrinsic::Pow, {base, loop::constant(attrs.beta, dtype)})),
                      x.dtype());
  })};
}

void dropout_relation(ir::Relation& relation) {
  if (relation.tensor(0)) relation.set_output(tuple_type({relation.input(0), relation.input(0)}));
}

template <typename A>
ir::Expr make(std::string_view name, std::vector<ir::Expr> args, std::shared_ptr<A> attrs, Span span) {
  return ir::call(&ir::OpRegistry::instance().get(name), std::move(args), std::move(attrs), std::move(span));
}

template <typename A>
std::shared_ptr<A> norm_attrs(double epsilon, int64_t axis) {
  auto attrs = A::defaults();
  attrs->epsilon = epsilon;
  attrs->axis = axis;
  return attrs;
}

}  // namespace

ir::Expr batch_norm(ir::Expr data, ir::Expr gamma, ir::Expr beta, ir::Expr mean, ir::Expr variance, double epsilon,
                    int64_t axis, Span span) {
  return make("nn.batch_norm",
              {std::move(data), std::move(gamma), std::move(beta), std::move(mean), std::move(variance)},
              norm_attrs<BatchNormAttrs>(epsilon, axis), std::move(span));
}

ir::Expr layer_norm(ir::Expr data, ir::Expr gamma, ir::Expr beta, double epsilon, int64_t axis, Span span) {
  return make("nn.layer_norm", {std::move(data), std::move(gamma), std::move(beta)},
              norm_attrs<LayerNormAttrs>(epsilon, axis), std::move(span));
}

ir::Expr instance_norm(ir::Expr data, ir::Expr gamma, ir::Expr beta, double epsilon, Span span) {
  return make("nn.instance_norm", {std::move(data), std::move(gamma), std::move(beta)},
              norm_attrs<InstanceNormAttrs>(epsilon, 1), std::move(span));
}

ir::Expr group_norm(ir::Expr data, ir::Expr gamma, ir::Expr beta, int64_t num_groups, double epsilon, Span span) {
  auto attrs = norm_attrs<GroupNormAttrs>(epsilon, 1);
  attrs->num_groups = num_groups;
  return make("nn.group_norm", {std::move(data), std::move(gamma), std::move(beta)}, std::move(attrs), std::move(span));
}

ir::Expr l2_normalize(ir::Expr data, double eps, std::optional<ir::Ints> axis, Span span) {
  auto attrs = L2NormalizeAttrs::defaults();
  attrs->eps = eps;
  attrs->axis = std::move(axis);
  return make("nn.l2_normalize", {std::move(data)}, std::move(attrs), std::move(span));
}

static void register_affine_norms(ir::OpRegistry& registry, const std::string& family) {
  const auto describe = [](ir::OpBuilder builder, const std::string& rows) {
    builder.formula("y = (x - mean) / sqrt(variance + epsilon) * gamma + beta, mean and variance " + rows)
        .input("data", "any shape, float")
        .input("gamma", "(C), C the extent of `axis`; ignored when scale is False")
        .input("beta", "(C); ignored when center is False")
        .fusion(ir::FusionKind::OutFusable)
        .layout(original_layout);
    return builder;
  };
  describe(registry.add<LayerNormAttrs>("nn.layer_norm", family), "along `axis`")
      .summary("Normalises along one axis, then scales and shifts.")
      .source("Relay 0.16; Ba, Kiros, Hinton 2016")
      .mixed_precision(ir::MixedPrecision::Never)
      .relation(norm_relation<LayerNormAttrs>)
      .compute(layer_norm_compute);
  describe(registry.add<InstanceNormAttrs>("nn.instance_norm", family), "over all axes but 0 and `axis`")
      .summary("Normalises every channel of every sample, then scales and shifts.")
      .source("Relay 0.16")
      .relation(instance_norm_relation)
      .compute(instance_norm_compute);
  describe(registry.add<GroupNormAttrs>("nn.group_norm", family),
           "over the channels of a group and all axes but 0 and `axis`")
      .summary("Normalises groups of channels, then scales and shifts.")
      .source("Relay 0.16, but axes before the channel axis count too; Wu, He 2018")
      .relation(group_norm_relation)
      .compute(group_norm_compute);
}

void register_nn_norm(ir::OpRegistry& registry) {
  const std::string family = "nn/norm";
  registry.add<BatchNormAttrs>("nn.batch_norm", family)
      .summary("Normalises with moving statistics, then scales and shifts; gives the statistics too, unchanged.")
      .formula("y = (x - moving_mean[c]) / sqrt(moving_var[c] + epsilon) * gamma[c] + beta[c]")
      .source("Relay 0.16; Ioffe, Szegedy 2015")
      .input("data", "any shape, float")
      .input("gamma", "(C), C the extent of `axis`; ignored when scale is False")
      .input("beta", "(C); ignored when center is False")
      .input("moving_mean", "(C)")
      .input("moving_var", "(C)")
      .outputs(3)
      .fusion(ir::FusionKind::OutFusable)
      .relation(batch_norm_relation)
      .decompose(batch_norm_decompose)
      .layout(original_layout);
  register_affine_norms(registry, family);
  registry.add<L2NormalizeAttrs>("nn.l2_normalize", family)
      .summary("Divides by the Euclidean norm along axes.")
      .formula("y = x / sqrt(max(sum of x^2, eps))")
      .source("Relay 0.16")
      .input("data", "any shape, float")
      .fusion(ir::FusionKind::OutFusable)
      .mixed_precision(ir::MixedPrecision::Never)
      .relation(l2_normalize_relation)
      .compute(l2_normalize_compute)
      .layout(original_layout);
  registry.add<LrnAttrs>("nn.lrn", family)
      .summary("Local response normalisation over neighbouring channels.")
      .formula("y = x / (bias + alpha/size * sum of x^2 over channels c - (size-1)/2 ... c + size/2)^beta")
      .source("Relay 0.16; even sizes as in ONNX LRN")
      .input("data", "any shape, float")
      .fusion(ir::FusionKind::OutFusable)
      .relation(lrn_relation)
      .compute(lrn_compute)
      .layout(original_layout);
  registry.add<DropoutAttrs>("nn.dropout", family)
      .summary("Nothing at inference: gives the data, and a mask of ones.")
      .formula("y = x, mask = 1")
      .source("Relay 0.16")
      .input("data", "any shape")
      .outputs(2)
      .fusion(ir::FusionKind::Opaque)
      .relation(dropout_relation)
      .decompose([](const ir::Call& call) {
        return ir::tuple({call.args[0], ir::call("ones_like", {call.args[0]}, {}, call.span)}, call.span);
      })
      .layout(original_layout);
}

}  // namespace treadle::op
