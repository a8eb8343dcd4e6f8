// SPDX-License-Identifier: Apache-2.0
#include "op/vision/nms.h"

#include <bit>
#include <limits>

#include "op/relations.h"

namespace treadle::op {
namespace {

void require_one(const ir::Relation& relation, size_t i, const char* what) {
  const TensorType* x = relation.tensor(i);
  if (x && x->shape.size() > 1)
    fail(ErrorCode::TypeMismatch, "{} has shape {}, it must be a number", what, to_string(x->shape));
  if (x && !x->shape.empty() && !assume_equal(x->shape[0], 1))
    fail(ErrorCode::TypeMismatch, "{} has {} elements, not 1", what, to_string(x->shape[0]));
}

void require_equal(const Dim& a, const Dim& b, const char* what) {
  if (!assume_equal(a, b))
    fail(ErrorCode::TypeMismatch, "boxes and scores have {} and {} {}", to_string(a), to_string(b), what);
}

void nms_relation(ir::Relation& relation) {
  require_rank(relation, 0, 3);
  require_rank(relation, 1, 3);
  require_one(relation, 2, "max_output_boxes_per_class");
  require_one(relation, 3, "iou_threshold");
  require_one(relation, 4, "score_threshold");
  const TensorType *boxes = relation.tensor(0), *scores = relation.tensor(1);
  for (const TensorType* x : {boxes, scores}) {
    if (x && !x->dtype.is_float())
      fail(ErrorCode::TypeMismatch, "boxes and scores must be floats, not {}", to_string(x->dtype));
  }
  if (boxes && !assume_equal(boxes->shape[2], 4))
    fail(ErrorCode::TypeMismatch, "boxes have shape {}, their last extent must be 4", to_string(boxes->shape));
  if (!boxes || !scores) return;
  require_equal(boxes->shape[0], scores->shape[0], "batches");
  require_equal(boxes->shape[1], scores->shape[2], "boxes");
  const auto& attrs = relation.attrs<AllClassNmsAttrs>();
  const Dim room = attrs.room_per_class < 0 ? scores->shape[2] : min(scores->shape[2], Dim(attrs.room_per_class));
  relation.set_output(tuple_type(
      {tensor_type({scores->shape[0] * scores->shape[1] * room, 3}, dtype::int64_), tensor_type({1}, dtype::int64_)}));
}

ir::RuntimeCall nms_runtime(const ir::Call& call) {
  const auto& attrs = attrs_of<AllClassNmsAttrs>(call);
  // The three numbers are inputs, which stand before these defaults.
  const int64_t nan = std::bit_cast<int64_t>(std::numeric_limits<double>::quiet_NaN());
  return {"non_max_suppression", {-1, std::bit_cast<int64_t>(0.0), nan, attrs.center_point_box}, {}, {}};
}

}  // namespace

ir::Expr all_class_non_max_suppression(ir::Expr boxes, ir::Expr scores, ir::Expr max_output_boxes_per_class,
                                       ir::Expr iou_threshold, ir::Expr score_threshold, bool center_point_box,
                                       int64_t room_per_class) {
  auto attrs = AllClassNmsAttrs::defaults();
  attrs->center_point_box = center_point_box;
  attrs->room_per_class = room_per_class;
  return call_op("vision.all_class_non_max_suppression",
                 {std::move(boxes), std::move(scores), std::move(max_output_boxes_per_class), std::move(iou_threshold),
                  std::move(score_threshold)},
                 std::move(attrs));
}

void register_vision_nms(ir::OpRegistry& registry) {
  registry.add<AllClassNmsAttrs>("vision.all_class_non_max_suppression", "vision/nms")
      .summary("The best boxes of each class that do not overlap too much, and how many they are.")
      .formula(
          "rows (batch, class, box) by falling score; a box whose IoU with a better one that was kept is above "
          "iou_threshold is dropped")
      .source("Relay 0.16; ONNX NonMaxSuppression")
      .input("boxes", "(N, B, 4) floats")
      .input("scores", "(N, C, B) floats")
      .input("max_output_boxes_per_class", "a number; negative: none")
      .input("iou_threshold", "a number")
      .input("score_threshold", "a number; NaN: no box is dropped for its score")
      .outputs(2)
      .relation(nms_relation)
      .runtime(nms_runtime);
}

}  // namespace treadle::op
