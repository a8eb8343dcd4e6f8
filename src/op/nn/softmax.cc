// SPDX-License-Identifier: Apache-2.0
#include "op/nn/softmax.h"

#include "op/nn/window.h"

namespace treadle::op {
namespace {

using loop::Expr;

void softmax_relation(ir::Relation& relation) {
  const TensorType* x = relation.tensor(0);
  if (!x) return;
  if (!x->dtype.is_float())
    fail(ErrorCode::TypeMismatch, "data is {}, it must be of a float dtype", to_string(x->dtype));
  normalise_axis(relation.attrs<SoftmaxAttrs>().axis, x->shape.size());
  relation.set_output(relation.input(0));
}

Indices without(const std::vector<loop::Var>& axes, size_t axis) {
  Indices result = to_indices(axes);
  result.erase(result.begin() + static_cast<ptrdiff_t>(axis));
  return result;
}

Indices with(const std::vector<loop::Var>& axes, size_t axis, const Expr& index) {
  Indices result = to_indices(axes);
  result.insert(result.begin() + static_cast<ptrdiff_t>(axis), index);
  return result;
}

// Four stages over rows along the axis: maximum, exponentials, their sum, and the quotient (or the logarithm of it).
std::vector<loop::Tensor> softmax_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs,
                                          bool logarithm) {
  const loop::Tensor& x = inputs[0];
  const DType dtype = accumulator_dtype(x.dtype());
  const auto axis = static_cast<size_t>(normalise_axis(attrs_of<SoftmaxAttrs>(call).axis, x.rank()));
  std::vector<Expr> rows = x.shape();
  rows.erase(rows.begin() + static_cast<ptrdiff_t>(axis));
  const Expr extent = x.shape(axis);
  const auto value = [&](const Indices& index) { return loop::cast(x(index), dtype); };

  const loop::Tensor most = loop::reduce(
      "row_max", rows, loop::ReduceOp::Max, {extent},
      [&](const std::vector<loop::Var>& i, const std::vector<loop::Var>& k) { return value(with(i, axis, k[0])); });
  const loop::Tensor exponentials = loop::compute("exponentials", x.shape(), [&](const std::vector<loop::Var>& i) {
    return loop::intrinsic(loop::Intrinsic::Exp, {value(to_indices(i)) - most(without(i, axis))});
  });
  const loop::Tensor sum = loop::reduce("row_sum", rows, loop::ReduceOp::Sum, {extent},
                                        [&](const std::vector<loop::Var>& i, const std::vector<loop::Var>& k) {
                                          return exponentials(with(i, axis, k[0]));
                                        });
  return {loop::compute(logarithm ? "log_softmax" : "softmax", x.shape(), [&](const std::vector<loop::Var>& i) {
    const Expr total = sum(without(i, axis));
    if (!logarithm) return loop::cast(loop::div(exponentials(to_indices(i)), total), x.dtype());
    return loop::cast(value(to_indices(i)) - most(without(i, axis)) - loop::intrinsic(loop::Intrinsic::Log, {total}),
                      x.dtype());
  })};
}

ir::Expr make(std::string_view name, ir::Expr x, int64_t axis, Span span) {
  auto attrs = SoftmaxAttrs::defaults();
  attrs->axis = axis;
  return ir::call(&ir::OpRegistry::instance().get(name), {std::move(x)}, std::move(attrs), std::move(span));
}

ir::OpBuilder add_softmax(ir::OpRegistry& registry, const std::string& name, bool logarithm) {
  ir::OpBuilder builder = registry.add<SoftmaxAttrs>(name, "nn/softmax");
  builder
      .formula(logarithm ? "y = x - max(x) - log(sum(exp(x - max(x))))" : "y = exp(x - max(x)) / sum(exp(x - max(x)))")
      .source("Relay 0.16")
      .input("data", "any shape, float")
      .fusion(ir::FusionKind::OutFusable)
      .mixed_precision(ir::MixedPrecision::Never)
      .relation(softmax_relation)
      .compute([logarithm](const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
        return softmax_compute(call, inputs, logarithm);
      })
      .layout(original_layout);
  return builder;
}

}  // namespace

ir::Expr softmax(ir::Expr x, int64_t axis, Span span) {
  return make("nn.softmax", std::move(x), axis, std::move(span));
}
ir::Expr log_softmax(ir::Expr x, int64_t axis, Span span) {
  return make("nn.log_softmax", std::move(x), axis, std::move(span));
}

void register_nn_softmax(ir::OpRegistry& registry) {
  add_softmax(registry, "nn.softmax", false).summary("Exponentials along an axis, scaled to sum 1.");
  add_softmax(registry, "nn.fast_softmax", false).summary("The same as nn.softmax; Relay's name of its approximation.");
  add_softmax(registry, "nn.log_softmax", true).summary("Logarithm of softmax along an axis.");
}

}  // namespace treadle::op
