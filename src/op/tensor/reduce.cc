// SPDX-License-Identifier: Apache-2.0
#include "op/tensor/reduce.h"

#include <algorithm>

#include "op/relations.h"

namespace treadle::op {
namespace {

using loop::ReduceOp;

// Which axes of x one call reduces, and how an index of the result and one of the reduced axes make one of x.
struct Plan {
  std::vector<int64_t> axes;
  bool keepdims;
  size_t rank;

  bool reduces(size_t axis) const { return std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(axis)); }
  Indices input_index(const std::vector<loop::Var>& kept, const std::vector<loop::Var>& reduced) const {
    Indices index;
    size_t i = 0, k = 0;
    for (size_t axis = 0; axis < rank; ++axis) {
      if (reduces(axis)) {
        index.push_back(reduced[k++]);
        if (keepdims) ++i;
      } else {
        index.push_back(kept[i++]);
      }
    }
    return index;
  }
  std::vector<loop::Expr> extents(const loop::Tensor& x) const {
    std::vector<loop::Expr> result;
    for (int64_t axis : axes) result.push_back(x.shape(axis));
    return result;
  }
  loop::Expr count(const loop::Tensor& x) const {
    loop::Expr product = loop::int_imm(1);
    for (const loop::Expr& extent : extents(x)) product = product * extent;
    return product;
  }
};

template <typename A>
Plan plan_of(const A& attrs, size_t rank) {
  return {reduction_axes(attrs.axis, attrs.exclude, rank), attrs.keepdims, rank};
}

using Value = std::function<loop::Expr(const Indices& index)>;

// value(index of x) combined over the plan's axes.
loop::Tensor reduce_over(const char* name, const Plan& plan, const Shape& output, const loop::Tensor& x, ReduceOp op,
                         const Value& value) {
  const std::vector<loop::Expr> shape = loop::to_exprs(output);
  if (plan.axes.empty()) {
    return loop::compute(name, shape, [&](const std::vector<loop::Var>& i) { return value(plan.input_index(i, {})); });
  }
  return loop::reduce(
      name, shape, op, plan.extents(x),
      [&](const std::vector<loop::Var>& i, const std::vector<loop::Var>& k) { return value(plan.input_index(i, k)); });
}

loop::Tensor cast_to(const char* name, const loop::Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  return elementwise(name, x, [&](loop::Expr value) { return loop::cast(std::move(value), dtype); });
}

loop::Expr at(const loop::Tensor& x, const Indices& index, DType dtype) { return loop::cast(x(index), dtype); }

// ---- Types ----

enum class Accepts { Number, Bool };

template <typename A>
ir::RelationFn reduce_relation(Accepts accepts, std::optional<DType> output = {}) {
  return [accepts, output](ir::Relation& relation) {
    const TensorType* x = relation.tensor(0);
    if (!x) return;
    if (x->dtype.is_bool() != (accepts == Accepts::Bool) && !output)
      fail(ErrorCode::TypeMismatch, "input is {}, it must be {}", to_string(x->dtype),
           accepts == Accepts::Bool ? "bool" : "a number");
    const Plan plan = plan_of(relation.attrs<A>(), x->shape.size());
    relation.set_output(tensor_type(reduced_shape(x->shape, plan.axes, plan.keepdims), output.value_or(x->dtype)));
  };
}

void arg_relation(ir::Relation& relation) {
  const TensorType* x = relation.tensor(0);
  if (!x) return;
  const Plan plan = plan_of(relation.attrs<ArgReduceAttrs>(), x->shape.size());
  for (int64_t axis : plan.axes) {
    if (!assume_at_most(1, x->shape[axis]))
      fail(ErrorCode::TypeMismatch, "axis {} of {} has no element to choose", axis, to_string(x->shape));
  }
  relation.set_output(tensor_type(reduced_shape(x->shape, plan.axes, plan.keepdims), dtype::int32_));
}

void variance_relation(ir::Relation& relation) {
  const TensorType* x = relation.tensor(0);
  if (!x) return;
  const Plan plan = plan_of(relation.attrs<VarianceAttrs>(), x->shape.size());
  if (const TensorType* mean = relation.tensor(1)) {
    require_same_dtype(relation, 0, 1);
    if (!(broadcast(x->shape, mean->shape) == x->shape))
      fail(ErrorCode::TypeMismatch, "mean of shape {} does not broadcast to {}", to_string(mean->shape),
           to_string(x->shape));
  } else {
    relation.set_input(1, tensor_type(reduced_shape(x->shape, plan.axes, true), x->dtype));
  }
  relation.set_output(tensor_type(reduced_shape(x->shape, plan.axes, plan.keepdims), x->dtype));
}

// ---- Computes ----

ir::ComputeFn reduce_compute(std::string name, ReduceOp op, bool accumulates) {
  return [name = std::move(name), op, accumulates](const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
    const loop::Tensor& x = inputs[0];
    const Plan plan = plan_of(attrs_of<ReduceAttrs>(call), x.rank());
    const DType dtype = accumulates ? accumulator_dtype(x.dtype()) : x.dtype();
    const loop::Tensor y =
        reduce_over(name.c_str(), plan, output_shape(call), x, op, [&](const Indices& i) { return at(x, i, dtype); });
    return std::vector{cast_to(name.c_str(), y, x.dtype())};
  };
}

std::vector<loop::Tensor> mean_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const loop::Tensor& x = inputs[0];
  const Plan plan = plan_of(attrs_of<ReduceAttrs>(call), x.rank());
  const DType dtype = mean_accumulator(x.dtype());
  const loop::Tensor sum =
      reduce_over("sum", plan, output_shape(call), x, ReduceOp::Sum, [&](const Indices& i) { return at(x, i, dtype); });
  const loop::Expr count = loop::cast(plan.count(x), dtype);
  return {elementwise("mean", sum,
                      [&](loop::Expr value) { return loop::cast(loop::div(std::move(value), count), x.dtype()); })};
}

std::vector<loop::Tensor> variance_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const auto& attrs = attrs_of<VarianceAttrs>(call);
  const loop::Tensor &x = inputs[0], &mean = inputs[1];
  const std::vector<const TensorType*> types = input_types(call);
  const Plan plan = plan_of(attrs, x.rank());
  const DType dtype = accumulator_dtype(x.dtype());
  const loop::Tensor sum = reduce_over("squares", plan, output_shape(call), x, ReduceOp::Sum, [&](const Indices& i) {
    const loop::Expr distance = at(x, i, dtype) - at(mean, broadcast_index(types[1]->shape, types[0]->shape, i), dtype);
    return distance * distance;
  });
  const loop::Expr count = loop::cast(attrs.unbiased ? plan.count(x) - loop::int_imm(1) : plan.count(x), dtype);
  return {elementwise("variance", sum,
                      [&](loop::Expr value) { return loop::cast(loop::div(std::move(value), count), x.dtype()); })};
}

// In two stages: the extreme value, then the smallest (largest) index at which it stands.
ir::ComputeFn arg_compute(std::string name, ReduceOp op) {
  return [name = std::move(name), op](const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
    const auto& attrs = attrs_of<ArgReduceAttrs>(call);
    const loop::Tensor& x = inputs[0];
    const Shape& output = output_shape(call);
    const Plan plan = plan_of(attrs, x.rank());
    if (plan.axes.empty()) {
      return std::vector{
          loop::compute(name, loop::to_exprs(output), [](const auto&) { return loop::int_imm(0, dtype::int32_); })};
    }
    const loop::Tensor extreme = reduce_over("extreme", plan, output, x, op, [&](const Indices& i) { return x(i); });
    const ReduceOp choose = attrs.select_last_index ? ReduceOp::Max : ReduceOp::Min;
    const loop::Expr none = loop::reduce_identity(choose, dtype::int32_);
    const std::vector<loop::Expr> extents = plan.extents(x);
    return std::vector{loop::reduce(name, loop::to_exprs(output), choose, extents,
                                    [&](const std::vector<loop::Var>& i, const std::vector<loop::Var>& k) {
                                      const loop::Expr value = x(plan.input_index(i, k));
                                      loop::Expr found = value == extreme(to_indices(i));
                                      if (value.dtype().is_float())
                                        found = found || loop::intrinsic(loop::Intrinsic::IsNan, {value});
                                      return loop::select(
                                          found, loop::cast(flat_index(to_indices(k), extents), dtype::int32_), none);
                                    })};
  };
}

// ---- Layout: reduced axes must not be split, or all of them go with their parts ----

template <typename A>
ir::LayoutAnswer reduce_layout(const ir::LayoutRequest& request) {
  ir::LayoutAnswer answer = original_layout(request);
  if (request.wanted.size() != 1 || !request.wanted[0].defined()) return answer;
  const Layout& layout = request.wanted[0];
  const auto& attrs = attrs_of<A>(request.call);
  const TensorType* x = input_types(request.call)[0];
  const Plan plan = plan_of(attrs, x->shape.size());
  if (layout.primal().rank() != plan.rank) return answer;
  ir::Ints axes;
  std::string kept;
  for (size_t i = 0; i < layout.rank(); ++i) {
    const Layout::Axis& axis = layout.axes()[i];
    const size_t primal = layout.primal().index_of(axis.primal_name());
    const bool reduced = plan.reduces(primal);
    if (reduced && unsplit_axis(layout, static_cast<int64_t>(primal)) < 0) {
      // A padded block or a kept axis of extent 1 would change the values or the shape.
      if (plan.keepdims || !exact_divide(x->shape[primal], layout.block_of(axis.primal_name()))) return answer;
      if constexpr (std::is_same_v<A, ArgReduceAttrs>) return answer;  // the order of the elements counts
    }
    if (reduced) axes.push_back(static_cast<int64_t>(i));
    if (!reduced || plan.keepdims) kept += (axis.primal() ? std::string() : std::to_string(axis.factor)) + axis.name;
  }
  auto changed = std::make_shared<A>(attrs);
  changed->axis = axes;
  changed->exclude = false;
  if (axes.empty()) return answer;
  answer.inputs = {layout};
  answer.outputs = {kept.empty() ? Layout() : Layout(kept)};
  answer.attrs = changed;
  return answer;
}

template <typename A>
ir::OpBuilder add_reduction(ir::OpRegistry& registry, const char* name, const char* summary, const char* formula) {
  return registry.add<A>(name, "tensor/reduce")
      .summary(summary)
      .formula(formula)
      .source("Relay 0.16")
      .input("x", "any shape")
      .fusion(ir::FusionKind::Reduction)
      .layout(reduce_layout<A>);
}

ir::Expr call_reduce(std::string_view name, ir::Expr x, const std::optional<ir::Ints>& axis, bool keepdims,
                     bool exclude) {
  auto attrs = ReduceAttrs::defaults();
  if (axis && !axis->empty()) attrs->axis = axis;
  attrs->keepdims = keepdims;
  attrs->exclude = exclude;
  return call_op(name, {std::move(x)}, std::move(attrs));
}

}  // namespace

ir::Expr reduce(std::string_view name, ir::Expr x, const std::optional<ir::Ints>& axis, bool keepdims, bool exclude) {
  return call_reduce(name, std::move(x), axis, keepdims, exclude);
}

ir::Expr sum(ir::Expr x, const std::optional<ir::Ints>& axis, bool keepdims) {
  return call_reduce("sum", std::move(x), axis, keepdims, false);
}

ir::Expr mean(ir::Expr x, const std::optional<ir::Ints>& axis, bool keepdims) {
  return call_reduce("mean", std::move(x), axis, keepdims, false);
}

ir::Expr arg_reduce(std::string_view name, ir::Expr x, const std::optional<ir::Ints>& axis, bool keepdims,
                    bool select_last_index) {
  auto attrs = ArgReduceAttrs::defaults();
  attrs->axis = axis;
  attrs->keepdims = keepdims;
  attrs->select_last_index = select_last_index;
  return call_op(name, {std::move(x)}, std::move(attrs));
}

ir::Expr variance(ir::Expr x, const std::optional<ir::Ints>& axis, bool keepdims, bool exclude, bool unbiased,
                  ir::Expr with_mean) {
  if (!with_mean.defined()) with_mean = call_reduce("mean", x, axis, true, exclude);
  auto attrs = VarianceAttrs::defaults();
  attrs->axis = axis;
  attrs->keepdims = keepdims;
  attrs->exclude = exclude;
  attrs->unbiased = unbiased;
  return call_op("variance", {std::move(x), std::move(with_mean)}, std::move(attrs));
}

ir::Expr standard_deviation(ir::Expr x, const std::optional<ir::Ints>& axis, bool keepdims, bool exclude,
                            bool unbiased) {
  return call_op("sqrt", {variance(std::move(x), axis, keepdims, exclude, unbiased)});
}

ir::Expr logsumexp(ir::Expr x, const std::optional<ir::Ints>& axis, bool keepdims) {
  const DType dtype = x.tensor_type().dtype;
  // An infinite maximum is not taken away: inf - inf would be NaN.
  const ir::Expr highest = call_reduce("max", x, axis, true, false);
  const ir::Expr shift = call_op("where", {call_op("isfinite", {highest}), highest, scalar(0, dtype)});
  const ir::Expr sum = call_reduce("sum", call_op("exp", {call_op("subtract", {x, shift})}), axis, true, false);
  const ir::Expr result = call_op("add", {call_op("log", {sum}), shift});
  // Summing over one value gives the shape without the axes.
  return keepdims ? result : call_reduce("sum", result, axis, false, false);
}

void register_tensor_reduce(ir::OpRegistry& registry) {
  const auto add = [&](const char* name, ReduceOp op, Accepts accepts, const char* summary, const char* formula) {
    add_reduction<ReduceAttrs>(registry, name, summary, formula)
        .relation(reduce_relation<ReduceAttrs>(accepts))
        .compute(reduce_compute(name, op, op == ReduceOp::Sum || op == ReduceOp::Prod));
  };
  add("all", ReduceOp::All, Accepts::Bool, "True when all values are.", "y = and over the axes of x");
  add("any", ReduceOp::Any, Accepts::Bool, "True when any value is.", "y = or over the axes of x");
  add("max", ReduceOp::Max, Accepts::Number, "Largest value.", "y = max over the axes of x");
  add("min", ReduceOp::Min, Accepts::Number, "Smallest value.", "y = min over the axes of x");
  add("prod", ReduceOp::Prod, Accepts::Number, "Product.", "y = product over the axes of x");
  add("sum", ReduceOp::Sum, Accepts::Number, "Sum.", "y = sum over the axes of x");
  add_reduction<ReduceAttrs>(registry, "mean", "Arithmetic mean; of integers truncated.",
                             "y = sum over the axes of x / number of values")
      .mixed_precision(ir::MixedPrecision::Never)
      .relation(reduce_relation<ReduceAttrs>(Accepts::Number))
      .compute(mean_compute);
  add_reduction<ArgReduceAttrs>(registry, "argmax", "Index of the largest value.", "y = argmax over the axes of x")
      .relation(arg_relation)
      .compute(arg_compute("argmax", ReduceOp::Max));
  add_reduction<ArgReduceAttrs>(registry, "argmin", "Index of the smallest value.", "y = argmin over the axes of x")
      .relation(arg_relation)
      .compute(arg_compute("argmin", ReduceOp::Min));
  add_reduction<VarianceAttrs>(registry, "variance", "Mean squared distance from the mean.",
                               "y = sum((x - mean)^2) / n; unbiased: / (n - 1)")
      .input("mean", "x reduced, the reduced axes with extent 1")
      .mixed_precision(ir::MixedPrecision::Never)
      .layout(original_layout)
      .relation(variance_relation)
      .compute(variance_compute);
}

}  // namespace treadle::op
