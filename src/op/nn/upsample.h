// SPDX-License-Identifier: Apache-2.0
// nn.upsampling and nn.upsampling3d: every spatial axis becomes round(extent * scale) long.
//
//   source coordinate  asymmetric o*in/out;  align_corners o*(in-1)/(out-1), 0 when out is 1;
//                      half_pixel (o + 0.5)*in/out - 0.5
//   nearest_neighbor   the element at the coordinate rounded down (align_corners: to the nearest, halves up)
//   bilinear, trilinear  linear between neighbours;  bicubic  Keys' kernel with a = -0.5
// Positions outside take the border element: image.resize, whose formulas these are. nn.upsampling is asymmetric unless
// align_corners. Source: Relay 0.16.
#pragma once

#include <string>

#include "ir/expr.h"

namespace treadle::op {

struct UpsamplingAttrs : ir::AttrsOf<UpsamplingAttrs> {
  double scale_h, scale_w;
  std::string layout, method;
  bool align_corners;

  template <typename F>
  static void fields(F& field) {
    field(&UpsamplingAttrs::scale_h, "scale_h", 1.0, "factor of the height").at_least(0);
    field(&UpsamplingAttrs::scale_w, "scale_w", 1.0, "factor of the width").at_least(0);
    field(&UpsamplingAttrs::layout, "layout", "NCHW", "order and split of the data's axes");
    field(&UpsamplingAttrs::method, "method", "nearest_neighbor", "interpolation")
        .one_of({"nearest_neighbor", "bilinear", "bicubic"});
    field(&UpsamplingAttrs::align_corners, "align_corners", false, "corner elements keep their places");
  }
};

struct Upsampling3DAttrs : ir::AttrsOf<Upsampling3DAttrs> {
  double scale_d, scale_h, scale_w;
  std::string layout, method, coordinate_transformation_mode;

  template <typename F>
  static void fields(F& field) {
    using A = Upsampling3DAttrs;
    field(&A::scale_d, "scale_d", 1.0, "factor of the depth").at_least(0);
    field(&A::scale_h, "scale_h", 1.0, "factor of the height").at_least(0);
    field(&A::scale_w, "scale_w", 1.0, "factor of the width").at_least(0);
    field(&A::layout, "layout", "NCDHW", "order and split of the data's axes");
    field(&A::method, "method", "nearest_neighbor", "interpolation").one_of({"nearest_neighbor", "trilinear"});
    field(&A::coordinate_transformation_mode, "coordinate_transformation_mode", "half_pixel",
          "how output positions map to the input")
        .one_of({"half_pixel", "align_corners", "asymmetric"});
  }
};

// Errors: TypeMismatch, TypeAttribute.
ir::Expr upsampling(ir::Expr data, double scale_h, double scale_w, std::string method, std::string layout = "NCHW",
                    bool align_corners = false, Span span = nullptr);

}  // namespace treadle::op
