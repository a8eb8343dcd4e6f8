// SPDX-License-Identifier: Apache-2.0
// Sampling of images, and the choice of boxes.
#include <algorithm>
#include <limits>

#include "import/onnx/rules.h"
#include "op/tensor/creation.h"
#include "op/tensor/dynamic.h"
#include "op/tensor/transform.h"
#include "op/vision/nms.h"

namespace treadle::onnx {
namespace {

using ir::Expr;
using Exprs = std::vector<Expr>;

// ONNX has the coordinates on the last axis of the grid, Treadle on axis 1.
Exprs grid_sample_rule(Node& node) {
  const size_t rank = node.rank(0);
  if (rank != 4 && rank != 5) node.unsupported(fmt::format("data of {} axes", rank));
  if (node.rank(1) != rank) node.malformed(fmt::format("data have {} axes, the grid {}", rank, node.rank(1)));
  std::string mode = node.s("mode", node.opset() < 20 ? "bilinear" : "linear");
  if (mode == "linear") mode = "bilinear";
  if (mode == "cubic") mode = "bicubic";
  if (mode != "bilinear" && mode != "bicubic" && mode != "nearest")
    node.malformed(fmt::format("mode is \"{}\"", printable(mode)));
  const std::string padding = node.s("padding_mode", "zeros");
  if (padding != "zeros" && padding != "border" && padding != "reflection")
    node.malformed(fmt::format("padding_mode is \"{}\"", printable(padding)));
  ir::Ints order = {0, static_cast<int64_t>(rank) - 1};
  for (int64_t i = 1; i + 1 < static_cast<int64_t>(rank); ++i) order.push_back(i);
  return {node.call("image.grid_sample", {node.input(0), op::transpose(node.input(1), order)},
                    {{"method", mode},
                     {"layout", std::string(rank == 4 ? "NCHW" : "NCDHW")},
                     {"padding_mode", padding},
                     {"align_corners", node.flag("align_corners")}})};
}

// Without a number of boxes, or with 0, none is chosen; without a score threshold none is left out. How many rows there
// are is known when the operator ran; a known number of boxes bounds them.
Exprs non_max_suppression_rule(Node& node) {
  const int64_t center = node.i("center_point_box", 0);
  if (center != 0 && center != 1) node.malformed(fmt::format("center_point_box is {}", center));
  if (node.has(2) && !node.dtype(2).is_integer()) node.malformed("the number of boxes must be an integer");
  const Known* most = node.has(2) ? node.known(2) : nullptr;
  const bool is_known = most && most->is_const() && most->values.size() == 1;
  const int64_t limit = is_known ? static_cast<int64_t>(most->values[0].number()) : -1;
  const auto number = [&](size_t i, double otherwise) {
    return node.has(i) ? node.input(i) : node.number(otherwise, dtype::float32_);
  };
  const Expr boxes = node.input(0), scores = node.input(1), iou = number(3, 0),
             least = number(4, std::numeric_limits<double>::quiet_NaN());
  const Expr wanted = node.has(2) ? node.input(2) : node.number(0, dtype::int64_);
  const Expr both = op::all_class_non_max_suppression(boxes, scores, wanted, iou, least, center == 1,
                                                      is_known ? std::max<int64_t>(limit, 0) : -1);
  if (!node.has(2) || (is_known && limit <= 0)) return {op::zeros({0, 3}, dtype::int64_)};
  const auto vector = [](int64_t value) { return ir::constant(Tensor::from<int64_t>({value})); };
  return {op::dynamic_strided_slice(ir::tuple_get(both, 0), vector(0), ir::tuple_get(both, 1), vector(1), {0})};
}

}  // namespace

void add_vision_rules(RuleTable& table) {
  table.add("GridSample", {16, 20, 22}, grid_sample_rule);
  table.add("NonMaxSuppression", {10, 11}, non_max_suppression_rule);
}

}  // namespace treadle::onnx
