// SPDX-License-Identifier: Apache-2.0
// Selection of boxes that do not overlap too much, class by class: a kernel of the runtime.
//   boxes (N, B, 4), scores (N, C, B): floats; max_output_boxes_per_class (integer), iou_threshold, score_threshold
//   (floats): one element each
// For each batch and class the boxes are taken by falling score (of equal scores the lower box first) and kept unless
// their intersection over union with a kept one is above iou_threshold; only scores above score_threshold (NaN: all)
// take part. Result: rows (batch, class, box) of int64, sorted by batch, class and falling score, in the first rows of
// (room, 3), and their number (1).
// Source: Relay 0.16 (output_format "onnx"); ONNX NonMaxSuppression, opset 11.
#pragma once

#include <string>

#include "ir/expr.h"

namespace treadle::op {

struct AllClassNmsAttrs : ir::AttrsOf<AllClassNmsAttrs> {
  std::string output_format;
  bool center_point_box;
  int64_t room_per_class;

  template <typename F>
  static void fields(F& field) {
    field(&AllClassNmsAttrs::output_format, "output_format", "onnx", "how the result is laid out").one_of({"onnx"});
    field(&AllClassNmsAttrs::center_point_box, "center_point_box", false,
          "a box is (x, y) of its centre, width, height, and not two opposite corners (y, x, y, x)");
    field(&AllClassNmsAttrs::room_per_class, "room_per_class", -1,
          "room for so many rows of each batch and class, at least what max_output_boxes_per_class gives; negative: "
          "for all boxes");
  }
};

// A tuple of the rows (N*C*room, 3) and their number (1), both int64.
ir::Expr all_class_non_max_suppression(ir::Expr boxes, ir::Expr scores, ir::Expr max_output_boxes_per_class,
                                       ir::Expr iou_threshold, ir::Expr score_threshold, bool center_point_box = false,
                                       int64_t room_per_class = -1);

}  // namespace treadle::op
