// SPDX-License-Identifier: Apache-2.0
// Operators that take a part of a tensor, or put one in.
//
//   strided_slice   NumPy's x[begin:end:strides] on `axes` (None: the first ones): negative positions count from the
//                   end, all are cut to the tensor. slice_mode "size": `end` holds lengths (-1: to the end)
//   slice_like      the leading part of x of the extents of `like`
//   strided_set     x with x[begin:end:strides] replaced by v; begin, end and strides are inputs
//   sliding_window  all windows of window_shape over the axes from `axis` on; the windows' axes come last
// Source: Relay 0.16; NumPy basic slicing.
#pragma once

#include <optional>
#include <string>

#include "ir/expr.h"

namespace treadle::op {

struct StridedSliceAttrs : ir::AttrsOf<StridedSliceAttrs> {
  Shape begin, end;
  std::optional<ir::Ints> strides;
  std::string slice_mode;
  std::optional<ir::Ints> axes;

  template <typename F>
  static void fields(F& field) {
    field(&StridedSliceAttrs::begin, "begin", ir::Required{}, "first positions; a symbolic one counts from the front");
    field(&StridedSliceAttrs::end, "end", ir::Required{}, "positions behind the last ones; in mode size the lengths");
    field(&StridedSliceAttrs::strides, "strides", std::nullopt, "steps, not 0; None: 1");
    field(&StridedSliceAttrs::slice_mode, "slice_mode", "end", "what end holds").one_of({"end", "size"});
    field(&StridedSliceAttrs::axes, "axes", std::nullopt, "the axes that are sliced; None: the first ones");
  }
};

struct SliceLikeAttrs : ir::AttrsOf<SliceLikeAttrs> {
  std::optional<ir::Ints> axes;

  template <typename F>
  static void fields(F& field) {
    field(&SliceLikeAttrs::axes, "axes", std::nullopt, "the axes that are cut; None: all");
  }
};

struct SlidingWindowAttrs : ir::AttrsOf<SlidingWindowAttrs> {
  int64_t axis;
  ir::Ints window_shape, strides;

  template <typename F>
  static void fields(F& field) {
    field(&SlidingWindowAttrs::axis, "axis", ir::Required{}, "the first axis that the window moves along");
    field(&SlidingWindowAttrs::window_shape, "window_shape", ir::Required{},
          "extents of the window, one per axis from there on")
        .at_least(1);
    field(&SlidingWindowAttrs::strides, "strides", ir::Required{}, "steps of the window").at_least(1);
  }
};

// One axis of a slice: positions start, start + stride, …, `length` of them.
struct SliceRange {
  Dim start, length;
  int64_t stride = 1;
};
// NumPy's rule for begin:end:stride on an axis of this extent. Errors: TypeAttribute for stride 0.
SliceRange slice_range(const Dim& extent, const Dim& begin, const Dim& end, int64_t stride);

ir::Expr strided_slice(ir::Expr x, const Shape& begin, const Shape& end, const std::optional<ir::Ints>& strides = {},
                       const std::optional<ir::Ints>& axes = {});

}  // namespace treadle::op
