// SPDX-License-Identifier: Apache-2.0
// non_max_suppression as ONNX defines it (opset 11): for each batch and class, boxes by falling score, each kept unless
// it overlaps a kept one with intersection over union above the threshold.
//   inputs   boxes (N, B, 4), scores (N, C, B), any floats; then any of max_output_boxes_per_class, iou_threshold,
//   score_threshold
//            as tensors of one element, which stand for the parameter of that name; one without elements does not
//   outputs  rows (room, 3) of (batch, class, box), any integers; optionally the number of rows (1), then unused rows
//   are zero params   max_output_boxes_per_class (negative: all), iou_threshold, score_threshold (bits of a double; a
//   box is dropped unless its
//            score is above it; NaN: none is dropped), center_point_box (0: two opposite corners (y, x, y, x); 1: (x,
//            y) of the centre, width, height)
//   results  number of rows
// Rows are ordered by batch, class, falling score; of equal scores the lower box comes first. Computed in float32.
#include <algorithm>
#include <bit>

#include "runtime/kernels/kernel.h"

namespace treadle::kernels {
namespace {

struct Box {
  float y0, x0, y1, x1;  // y0 <= y1, x0 <= x1
  float area() const { return (y1 - y0) * (x1 - x0); }
};

Box make_box(const float* b, bool center) {
  if (center) return {b[1] - b[3] / 2, b[0] - b[2] / 2, b[1] + b[3] / 2, b[0] + b[2] / 2};
  return {std::min(b[0], b[2]), std::min(b[1], b[3]), std::max(b[0], b[2]), std::max(b[1], b[3])};
}

// Intersection over union above the threshold; boxes without area overlap nothing.
bool overlaps(const Box& a, const Box& b, float threshold) {
  const float height = std::min(a.y1, b.y1) - std::max(a.y0, b.y0), width = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
  if (!(height > 0) || !(width > 0)) return false;
  const float intersection = height * width, united = a.area() + b.area() - intersection;
  return a.area() > 0 && b.area() > 0 && united > 0 && intersection / united > threshold;
}

struct Options {
  int64_t max_boxes;
  float iou_threshold, score_threshold;
};

std::vector<int64_t> select(const Box* boxes, const float* scores, int64_t count, const Options& options) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < count; ++i) {
    if (std::isnan(options.score_threshold) || scores[i] > options.score_threshold) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), IndexOrder<float>{scores, descending<float>});
  std::vector<int64_t> kept;
  for (int64_t candidate : order) {
    if (options.max_boxes >= 0 && static_cast<int64_t>(kept.size()) >= options.max_boxes) break;
    auto suppressed = [&](int64_t other) { return overlaps(boxes[candidate], boxes[other], options.iou_threshold); };
    if (std::none_of(kept.begin(), kept.end(), suppressed)) kept.push_back(candidate);
  }
  return kept;
}

std::vector<float> to_floats(const TensorArg& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.size()));
  visit_element(tensor.dtype(), [&]<typename T>() {
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(tensor.data<T>()[i]);
  });
  return values;
}

Options read_options(const Call& call) {
  auto given = [&](size_t i) { return i < call.inputs.size() && call.input(i).size() > 0; };
  auto number = [&](size_t input, size_t param) {
    return static_cast<float>(given(input) ? call.input(input).at(0) : std::bit_cast<double>(call.param(param)));
  };
  Options options{call.param(0), number(3, 1), number(4, 2)};
  if (given(2)) {
    const double count = call.input(2).at(0);
    options.max_boxes = count >= 0 && count < 9e18 ? static_cast<int64_t>(count) : count < 0 ? 0 : INT64_MAX;
  }
  return options;
}

}  // namespace

TREADLE_DEFINE_RUNTIME_KERNEL(non_max_suppression) {
  const TensorArg boxes = call.input(0), scores = call.input(1), output = call.output(0);
  TREADLE_KERNEL_REQUIRE(boxes.shape().size() == 3 && boxes.shape()[2] == 4 && scores.shape().size() == 3,
                         "boxes must be (N, B, 4) and scores (N, C, B)");
  const int64_t batches = boxes.shape()[0], count = boxes.shape()[1], classes = scores.shape()[1];
  TREADLE_KERNEL_REQUIRE(scores.shape()[0] == batches && scores.shape()[2] == count,
                         "scores are ({}, {}, {}), boxes ({}, {}, 4)", scores.shape()[0], classes, scores.shape()[2],
                         batches, count);
  const Options options = read_options(call);
  const bool center = call.param(3) != 0;
  const std::vector<float> corners = to_floats(boxes), score = to_floats(scores);
  std::vector<Box> all(static_cast<size_t>(batches * count));
  for (size_t i = 0; i < all.size(); ++i) all[i] = make_box(&corners[4 * i], center);

  std::vector<std::vector<int64_t>> kept(static_cast<size_t>(batches * classes));
  for_rows(call.ctx, batches * classes, count * 16, [&](int64_t row) {
    kept[row] = select(all.data() + row / classes * count, score.data() + row * count, count, options);
  });
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < batches * classes; ++row) {
    for (int64_t box : kept[row]) rows.insert(rows.end(), {row / classes, row % classes, box});
  }
  const auto num_rows = static_cast<int64_t>(rows.size() / 3);
  TREADLE_KERNEL_REQUIRE(output.size() >= static_cast<int64_t>(rows.size()), "the output has no room for {} rows",
                         num_rows);
  call.set_result(0, num_rows);
  if (call.has_output(1)) {
    call.output(1).store_ints({&num_rows, 1});
    rows.resize(static_cast<size_t>(output.size()), 0);
  }
  output.store_ints(rows);
}

}  // namespace treadle::kernels
