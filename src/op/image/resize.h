// SPDX-License-Identifier: Apache-2.0
// Resampling of the spatial axes of images: image.resize1d, image.resize2d, image.resize3d.
//
//   x  an image in `layout` (spatial axes W, HW or DHW)      y  the same with the spatial extents `size`
// Position o of y reads x at i, with s = extent of x / extent of y (or 1 / scales):
//   half_pixel            (o + 0.5) s - 0.5
//   pytorch_half_pixel    as half_pixel, 0 for extent 1
//   half_pixel_symmetric  as half_pixel about the middle of x, for scales
//   asymmetric            o s
//   align_corners         o (in - 1) / (out - 1), 0 for extent 1
//   tf_half_pixel_for_nn  (o + 0.5) s
//   tf_crop_and_resize    in the region `roi`; outside of x stands extrapolation_value
// nearest_neighbor rounds i; linear and cubic weigh 2 or 4 neighbours per axis, taps beyond the border read the border.
// When s comes from the extents, positions are exact fractions of integers; otherwise float64.
// Source: Relay 0.16 (image.resize*); ONNX Resize, opset 19 (scales, half_pixel_symmetric); Keys 1981 (cubic weights).
#pragma once

#include <optional>
#include <string>

#include "ir/expr.h"
#include "loop/tensor.h"
#include "type/layout.h"

namespace treadle::op {

struct ResizeAttrs : ir::AttrsOf<ResizeAttrs> {
  Shape size;
  std::optional<ir::Floats> roi;
  std::string layout, method, coordinate_transformation_mode, rounding_method;
  double cubic_alpha;
  int64_t cubic_exclude;
  double extrapolation_value;
  std::optional<DType> out_dtype;
  std::optional<ir::Floats> scales;

  template <typename F>
  static void fields(F& field) {
    field(&ResizeAttrs::size, "size", ir::Required{}, "extents of the spatial axes of the result").at_least(0);
    field(&ResizeAttrs::roi, "roi", std::nullopt,
          "begins, then ends of the region along each spatial axis, 0 to 1, for tf_crop_and_resize");
    field(&ResizeAttrs::layout, "layout", "", "layout of the image; empty: NCW, NCHW or NCDHW");
    field(&ResizeAttrs::method, "method", "linear", "how values are found")
        .one_of({"nearest_neighbor", "linear", "cubic"});
    field(&ResizeAttrs::coordinate_transformation_mode, "coordinate_transformation_mode", "half_pixel",
          "which position is read")
        .one_of({"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_half_pixel_for_nn",
                 "tf_crop_and_resize", "half_pixel_symmetric"});
    field(&ResizeAttrs::rounding_method, "rounding_method", "round",
          "of nearest_neighbor; halves: round and round_prefer_ceil up, round_prefer_floor down; empty: round for "
          "align_corners, else floor; the default is the text's, that of Relay's Python functions is empty")
        .one_of({"", "round", "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
    field(&ResizeAttrs::cubic_alpha, "cubic_alpha", -0.5, "coefficient of the cubic weights");
    field(&ResizeAttrs::cubic_exclude, "cubic_exclude", 0,
          "1: taps beyond the border have weight 0 and the others are scaled up")
        .at_least(0)
        .at_most(1);
    field(&ResizeAttrs::extrapolation_value, "extrapolation_value", 0.0,
          "the value outside of x, for tf_crop_and_resize");
    field(&ResizeAttrs::out_dtype, "out_dtype", std::nullopt, "dtype of the result; None: that of x");
    field(&ResizeAttrs::scales, "scales", std::nullopt,
          "factors of the spatial extents where they are not exactly size / extent of x");
  }
};

// The resampling as tensor expression, for operators that share it. spatial: the letters of the spatial axes, "HW"; to:
// y's shape.
loop::Tensor resize_compute(const loop::Tensor& x, const Shape& from, const Shape& to, const Layout& layout,
                            const std::string& spatial, const ResizeAttrs& attrs);

// By the rank of the image: 3, 4 or 5.
ir::Expr resize(ir::Expr x, std::shared_ptr<ResizeAttrs> attrs);

}  // namespace treadle::op
