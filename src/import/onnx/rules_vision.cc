// SPDX-License-Identifier: Apache-2.0
// Sampling of images.
#include "import/onnx/rules.h"
#include "op/tensor/transform.h"

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

}  // namespace

void add_vision_rules(RuleTable& table) { table.add("GridSample", {16, 20, 22}, grid_sample_rule); }

}  // namespace treadle::onnx
