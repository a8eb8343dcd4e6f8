// SPDX-License-Identifier: Apache-2.0
// The geometry of windowed pools: what type relations, computes and gradients share.
#pragma once

#include "op/nn/pool.h"
#include "op/nn/window.h"

namespace treadle::op {

struct PoolShape {
  std::string spatial, letters;  // "HW", "NCHW"
  Layout layout;
  Shape data, out;  // in the order of the letters

  loop::Expr in_extent(size_t s) const { return loop::to_expr(data[2 + s]); }
  size_t axis(size_t s) const { return static_cast<size_t>(layout.index_of(spatial[s])); }
};

struct WindowShape : PoolShape {
  ir::Ints kernel, strides, dilation;
  Padding padding;        // as declared
  Padding filled;         // what must be there for the last window to stay inside
  bool may_miss = false;  // all taps of a window may lie in the padding
};

// Layout and data extents. Errors: TypeMismatch, TypeAttribute.
PoolShape pool_data(const std::string& layout, const std::string& out_layout, size_t rank, const TensorType& data);
// The type of a tensor of the data's layout, channel split included, with the spatial extents of `shape.out`.
Type pooled_type(const PoolShape& shape, const TensorType& data);
// Errors: TypeMismatch, TypeAttribute.
WindowShape window_shape(const PoolFields& fields, size_t rank, const TensorType& data);
// Number of taps of the window at position `p` of spatial axis s that count in an average; a constant when no window
// crosses the border.
loop::Expr tap_count(const WindowShape& shape, size_t s, bool include_pad, const loop::Expr& p);

}  // namespace treadle::op
