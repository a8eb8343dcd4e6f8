// SPDX-License-Identifier: Apache-2.0
#include "op/nn/correlation.h"

#include "op/nn/window.h"

namespace treadle::op {
namespace {

using loop::Expr;

void correlation_relation(ir::Relation& relation) {
  const auto& attrs = relation.attrs<CorrelationAttrs>();
  const TensorType* a = relation.tensor(0);
  if (!a) return;
  require_rank(relation, 0, 4);
  if (relation.tensor(1)) {
    require_same_dtype(relation, 0, 1);
    if (!assume_same(relation.input(0), relation.input(1))) {
      fail(ErrorCode::TypeMismatch, "data1 has shape {}, data2 {}", to_string(a->shape),
           to_string(relation.tensor(1)->shape));
    }
  } else {
    relation.set_input(1, relation.input(0));
  }
  if (attrs.kernel_size % 2 != 1)
    fail(ErrorCode::TypeAttribute, "kernel_size is {}, it must be odd", attrs.kernel_size);
  if (attrs.max_displacement > 1 << 15 || attrs.kernel_size > 1 << 15)
    fail(ErrorCode::TypeAttribute, "kernel_size or max_displacement is too large");
  const Padding padding = normalise_padding(attrs.padding, 2);
  const int64_t radius = attrs.max_displacement / attrs.stride2,
                border = attrs.max_displacement + (attrs.kernel_size - 1) / 2;
  Shape out{a->shape[0], (2 * radius + 1) * (2 * radius + 1)};
  for (size_t s = 0; s < 2; ++s) {
    const Dim extent = a->shape[2 + s] + padding.begin[s] + padding.end[s] - 2 * border;
    if (extent.is_const() && extent.value() < 0) {
      fail(ErrorCode::TypeMismatch, "axis {} has {} elements with padding, fewer than the border of {} on both sides",
           2 + s, extent.value() + 2 * border, border);
    }
    out.push_back(ceildiv(extent, attrs.stride1));
  }
  relation.set_output(tensor_type(std::move(out), a->dtype));
}

std::vector<loop::Tensor> correlation_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const auto& attrs = attrs_of<CorrelationAttrs>(call);
  const DType dtype = accumulator_dtype(inputs[0].dtype());
  const Padding padding = normalise_padding(attrs.padding, 2);
  const Layout layout("NCHW");
  const Expr zero = loop::constant(0, inputs[0].dtype());
  const loop::Tensor a = pad_spatial(inputs[0], layout, "HW", padding, zero),
                     b = pad_spatial(inputs[1], layout, "HW", padding, zero);
  const int64_t radius = attrs.max_displacement / attrs.stride2;
  const Expr side = 2 * radius + 1, kernel = attrs.kernel_size, stride = attrs.stride1;
  const loop::Tensor sum = loop::reduce(
      "correlation_sum", loop::to_exprs(output_shape(call)), loop::ReduceOp::Sum, {a.shape(1), kernel, kernel},
      [&](const std::vector<loop::Var>& i, const std::vector<loop::Var>& k) {
        const Expr y = i[2] * stride + attrs.max_displacement + k[1], x = i[3] * stride + attrs.max_displacement + k[2];
        const Expr dy = (loop::floordiv(i[1], side) - radius) * attrs.stride2,
                   dx = (loop::floormod(i[1], side) - radius) * attrs.stride2;
        const Expr left = loop::cast(a(i[0], k[0], y, x), dtype),
                   right = loop::cast(b(i[0], k[0], y + dy, x + dx), dtype);
        return attrs.is_multiply ? left * right : loop::intrinsic(loop::Intrinsic::Abs, {left - right});
      });
  return {loop::compute("correlation", sum.shape(), [&](const std::vector<loop::Var>& i) {
    return loop::cast(loop::div(sum(to_indices(i)), loop::cast(kernel * kernel * a.shape(1), dtype)),
                      inputs[0].dtype());
  })};
}

}  // namespace

void register_nn_correlation(ir::OpRegistry& registry) {
  registry.add<CorrelationAttrs>("nn.correlation", "nn/correlation")
      .summary("Mean product (or difference) of patches of one tensor and displaced patches of another.")
      .formula(
          "y[n, q, i, j] = mean over c, u, v of a[n, c, i*s1 + m + u, j*s1 + m + v] * b[n, c, i*s1 + m + dy + u, j*s1 "
          "+ m + dx + v]")
      .source("Relay 0.16; Dosovitskiy and others 2015")
      .input("data1", "(N, C, H, W)")
      .input("data2", "(N, C, H, W)")
      .fusion(ir::FusionKind::OutFusable)
      .relation(correlation_relation)
      .compute(correlation_compute)
      .layout(original_layout);
}

}  // namespace treadle::op
