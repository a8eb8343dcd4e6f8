// SPDX-License-Identifier: Apache-2.0
#include "op/nn/pool_shape.h"

#include <algorithm>

namespace treadle::op {

using loop::Expr;

PoolShape pool_data(const std::string& layout, const std::string& out_layout, size_t rank, const TensorType& data) {
  PoolShape shape;
  shape.spatial = spatial_letters(static_cast<int>(rank));
  shape.letters = "NC" + shape.spatial;
  shape.layout = parse_layout(layout, shape.letters, "layout");
  if (!out_layout.empty() && out_layout != layout) {
    fail(ErrorCode::TypeAttribute, "out_layout \"{}\" differs from layout \"{}\"", out_layout, layout);
  }
  shape.data = primal_shape(shape.layout, data.shape, shape.letters, "data");
  return shape;
}

Type pooled_type(const PoolShape& shape, const TensorType& data) {
  Shape out = data.shape;
  for (size_t s = 0; s < shape.spatial.size(); ++s) out[shape.axis(s)] = shape.out[2 + s];
  return tensor_type(std::move(out), data.dtype);
}

WindowShape window_shape(const PoolFields& fields, size_t rank, const TensorType& data) {
  WindowShape shape;
  static_cast<PoolShape&>(shape) = pool_data(fields.layout, fields.out_layout, rank, data);
  shape.kernel = normalise_per_axis(fields.pool_size, rank, "pool_size");
  shape.strides = normalise_per_axis(fields.strides, rank, "strides");
  // TVM's records of pool gradients hold an empty dilation.
  shape.dilation = fields.dilation.empty() ? ir::Ints(rank, 1) : normalise_per_axis(fields.dilation, rank, "dilation");
  for (const ir::Ints* values : {&shape.kernel, &shape.strides, &shape.dilation}) {
    for (int64_t value : *values) {
      if (value < 1)
        fail(ErrorCode::TypeAttribute, "pool_size, strides and dilation must be at least 1, one is {}", value);
    }
  }
  shape.padding = shape.filled = normalise_padding(fields.padding, rank);
  shape.out = {shape.data[0], shape.data[1]};
  for (size_t s = 0; s < rank; ++s) {
    const Dim& in = shape.data[2 + s];
    const Dim span = dilated_extent(shape.kernel[s], shape.dilation[s]);
    const int64_t begin = shape.padding.begin[s], end = shape.padding.end[s];
    const Dim count = window_count(in, begin, end, span, shape.strides[s], fields.ceil_mode, shape.spatial[s]);
    shape.out.push_back(count);
    int64_t overhang = fields.ceil_mode ? shape.strides[s] - 1 : 0;
    const Dim reach = (count - 1) * shape.strides[s] + span - in - begin - end;
    if (reach.is_const()) overhang = std::min(overhang, std::max<int64_t>(0, reach.value()));
    shape.filled.end[s] = end + overhang;
    const bool gaps = shape.dilation[s] > 1 && (begin > 0 || shape.filled.end[s] > 0);
    shape.may_miss |= gaps || begin >= span.value() || shape.filled.end[s] >= span.value();
  }
  return shape;
}

Expr tap_count(const WindowShape& shape, size_t s, bool include_pad, const Expr& p) {
  const int64_t begin = shape.padding.begin[s], end = shape.padding.end[s];
  const bool crosses = include_pad ? shape.filled.end[s] > end : begin > 0 || shape.filled.end[s] > 0;
  if (!crosses) return Expr(shape.kernel[s]);
  const Expr start = p * shape.strides[s] - begin;
  const int64_t dilation = shape.dilation[s];
  // Taps j with low <= start + j*dilation < high; ceil(a / d) = floor((a + d - 1) / d).
  const Expr high = include_pad ? shape.in_extent(s) + end : shape.in_extent(s);
  const Expr last = loop::min(loop::floordiv(high - start + (dilation - 1), Expr(dilation)), Expr(shape.kernel[s]));
  if (include_pad) return loop::max(last, Expr(0));
  const Expr first = loop::max(loop::floordiv(Expr(dilation - 1) - start, Expr(dilation)), Expr(0));
  return loop::max(last - first, Expr(0));
}

}  // namespace treadle::op
