// SPDX-License-Identifier: Apache-2.0
// Sampling of images at positions that are data.
//
//   image.affine_grid(theta)    theta (N, 2, 3) -> (N, 2, H, W): x and y of each pixel of target_shape (H, W) under the
//                               affine map; coordinates -1 … 1, the corners' centres at -1 and 1
//   image.grid_sample(x, grid)  x (N, C, H, W), grid (N, 2, H', W') with (x, y) along axis 1 -> (N, C, H', W');
//                               NCDHW: grid (N, 3, D', H', W') with (x, y, z)
// grid_sample: align_corners: -1 and 1 are the centres of the corner pixels, else their outer edges. Outside of x:
// zeros, the border's value, or the image reflected at its border. nearest rounds halves to even.
// Source: Relay 0.16; ONNX GridSample, opset 20 (which has the coordinates on the last axis).
#pragma once

#include <string>

#include "ir/expr.h"

namespace treadle::op {

struct AffineGridAttrs : ir::AttrsOf<AffineGridAttrs> {
  Shape target_shape;

  template <typename F>
  static void fields(F& field) {
    field(&AffineGridAttrs::target_shape, "target_shape", ir::Required{}, "height and width of the grid").at_least(1);
  }
};

struct GridSampleAttrs : ir::AttrsOf<GridSampleAttrs> {
  std::string method, layout, padding_mode;
  bool align_corners;

  template <typename F>
  static void fields(F& field) {
    field(&GridSampleAttrs::method, "method", "bilinear", "how values between pixels are found")
        .one_of({"bilinear", "nearest", "bicubic"});
    field(&GridSampleAttrs::layout, "layout", "NCHW", "layout of the image").one_of({"NCHW", "NCDHW"});
    field(&GridSampleAttrs::padding_mode, "padding_mode", "zeros", "what stands outside of the image")
        .one_of({"zeros", "border", "reflection"});
    field(&GridSampleAttrs::align_corners, "align_corners", true, "-1 and 1 are the centres of the corner pixels");
  }
};

ir::Expr grid_sample(ir::Expr x, ir::Expr grid, const std::string& method, const std::string& padding_mode,
                     bool align_corners);

}  // namespace treadle::op
