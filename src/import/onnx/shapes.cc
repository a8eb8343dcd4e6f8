// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/shapes.h"

#include <algorithm>
#include <limits>

#include "op/tensor/reshape.h"

namespace treadle::onnx {

bool computed_vector(Node& node, size_t i) {
  if (!node.has(i) || node.known(i)) return false;
  const TensorType& type = node.type(i);
  return type.dtype.is_integer() && type.shape.size() == 1 && type.shape[0].is_const();
}

std::optional<ir::Ints> axes_argument(Node& node) {
  if (node.opset() < 13) return node.optional_ints("axes");
  if (!node.has(1)) return std::nullopt;
  return node.ints_input(1, "the axes");
}

Shape squeezed_shape(const Node& node, const Shape& shape, const std::optional<ir::Ints>& axes) {
  Shape result;
  const ir::Ints listed = axes ? axes_of(node, *axes, shape.size()) : ir::Ints();
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool drop =
        axes ? std::find(listed.begin(), listed.end(), static_cast<int64_t>(i)) != listed.end() : shape[i].is(1);
    if (!axes && !shape[i].is_const())
      node.unsupported(fmt::format("without axes, and the extent {} may be 1 or not", to_string(shape[i])));
    if (drop && shape[i].is_const() && !shape[i].is(1))
      node.malformed(fmt::format("axis {} has the extent {}, it must be 1", i, shape[i].value()));
    if (drop && !shape[i].is_const())
      node.unsupported(fmt::format("axis {} has the symbolic extent {}, it must be 1", i, to_string(shape[i])));
    if (!drop) result.push_back(shape[i]);
  }
  return result;
}

Shape unsqueezed_shape(const Node& node, const Shape& shape, const ir::Ints& axes) {
  const size_t rank = shape.size() + axes.size();
  const ir::Ints listed = axes_of(node, axes, rank);
  Shape result;
  size_t next = 0;
  for (size_t i = 0; i < rank; ++i) {
    const bool added = std::find(listed.begin(), listed.end(), static_cast<int64_t>(i)) != listed.end();
    result.push_back(added ? Dim(1) : shape[next++]);
  }
  return result;
}

Shape reshaped_shape(const Node& node, const Shape& shape, const Shape& target, bool allowzero) {
  for (const Dim& dim : target) {
    if (dim.is_const() && dim.value() < -1) node.malformed(fmt::format("the shape holds {}", dim.value()));
  }
  return op::resolve_reshape(shape, target, allowzero);
}

SliceArguments slice_arguments(Node& node) {
  SliceArguments result;
  ir::Ints axes, steps;
  const bool inputs = node.opset() >= 10;
  if (inputs) {
    result.starts = node.dims_input(1, "the starts");
    result.ends = node.dims_input(2, "the ends");
    if (node.has(3)) axes = node.ints_input(3, "the axes");
    if (node.has(4)) steps = node.ints_input(4, "the steps");
  } else {
    result.starts = to_shape(node.ints("starts"));
    result.ends = to_shape(node.ints("ends"));
    axes = node.ints("axes");
  }
  const size_t count = result.starts.size();
  if (!(inputs ? node.has(3) : node.has_attr("axes"))) {
    for (size_t i = 0; i < count; ++i) axes.push_back(static_cast<int64_t>(i));
  }
  if (!(inputs && node.has(4))) steps.assign(count, 1);
  if (result.ends.size() != count || axes.size() != count || steps.size() != count)
    node.malformed(
        fmt::format("{} starts, {} ends, {} axes and {} steps", count, result.ends.size(), axes.size(), steps.size()));
  for (int64_t& step : steps) {
    if (step == 0) node.malformed("a step is 0");
    // A longer step selects the first element only, as any step above the extent.
    constexpr int64_t longest = std::numeric_limits<int32_t>::max();
    step = std::clamp(step, -longest, longest);
  }
  result.axes = axes_of(node, axes, node.rank(0));
  result.steps = std::move(steps);
  return result;
}

PadArguments pad_arguments(Node& node) {
  const size_t rank = node.rank(0);
  const ir::Ints pads = node.opset() < 11 ? node.ints("pads") : node.ints_input(1, "the pads");
  ir::Ints axes;
  if (node.opset() >= 18 && node.has(3)) {
    axes = axes_of(node, node.ints_input(3, "the axes"), rank);
  } else {
    for (size_t i = 0; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  }
  if (pads.size() != 2 * axes.size())
    node.malformed(fmt::format("{} pads for {} axes, twice as many are needed", pads.size(), axes.size()));
  PadArguments result{ir::Ints(rank, 0), ir::Ints(rank, 0)};
  for (size_t i = 0; i < axes.size(); ++i) {
    result.begin[static_cast<size_t>(axes[i])] = pads[i];
    result.end[static_cast<size_t>(axes[i])] = pads[axes.size() + i];
  }
  constexpr int64_t limit = std::numeric_limits<int32_t>::max();
  for (const int64_t pad : pads) {
    if (pad > limit || pad < -limit) node.malformed(fmt::format("a pad of {} elements", pad));
  }
  return result;
}

}  // namespace treadle::onnx
