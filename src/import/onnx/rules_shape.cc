// SPDX-License-Identifier: Apache-2.0
// Operators that change shapes, or join and cut tensors.
#include <algorithm>
#include <limits>
#include <numeric>

#include "import/onnx/rules.h"
#include "import/onnx/shapes.h"
#include "import/onnx/tensor.h"
#include "op/tensor/binary.h"
#include "op/tensor/dynamic.h"
#include "op/tensor/join.h"
#include "op/tensor/reshape.h"
#include "op/tensor/slice.h"
#include "op/tensor/transform.h"
#include "op/tensor/unary.h"

namespace treadle::onnx {
namespace {

using ir::Expr;
using Exprs = std::vector<Expr>;

Exprs identity_rule(Node& node) { return {node.input(0)}; }

// 0: the input's extent (unless allowzero), -1: what remains.
Exprs reshape_rule(Node& node) {
  if (computed_vector(node, 1)) return {op::dynamic_reshape(node.input(0), node.input(1), node.flag("allowzero"))};
  const Shape target = node.dims_input(1, "the shape");
  return {op::reshape_to(node.input(0), reshaped_shape(node, node.shape(0), target, node.flag("allowzero")))};
}

Exprs flatten_rule(Node& node) {
  const Shape& shape = node.shape(0);
  const int64_t axis = node.i("axis", 1), rank = static_cast<int64_t>(shape.size());
  const int64_t at = axis == rank ? axis : axis_of(node, axis, shape.size());
  return {op::reshape_to(node.input(0), {product(Shape(shape.begin(), shape.begin() + at)),
                                         product(Shape(shape.begin() + at, shape.end()))})};
}

Exprs transpose_rule(Node& node) {
  const size_t rank = node.rank(0);
  ir::Ints axes(rank);
  for (size_t i = 0; i < rank; ++i) axes[i] = static_cast<int64_t>(rank - 1 - i);
  if (const auto given = node.optional_ints("perm")) axes = axes_of(node, *given, rank);
  if (axes.size() != rank) node.malformed(fmt::format("perm has {} values for {} axes", axes.size(), rank));
  if (rank == 0 || std::is_sorted(axes.begin(), axes.end())) return {node.input(0)};
  return {node.call("transpose", {node.input(0)}, {{"axes", axes}})};
}

Exprs squeeze_rule(Node& node) {
  const std::optional<ir::Ints> axes = axes_argument(node);
  return {op::reshape_to(node.input(0), squeezed_shape(node, node.shape(0), axes))};
}

Exprs unsqueeze_rule(Node& node) {
  const std::optional<ir::Ints> axes = axes_argument(node);
  if (!axes) node.malformed("the axes are missing");
  return {op::reshape_to(node.input(0), unsqueezed_shape(node, node.shape(0), *axes))};
}

// Broadcasting both ways: an extent 1 of the target keeps the input's.
Exprs expand_rule(Node& node) {
  if (computed_vector(node, 1)) return {op::dynamic_broadcast_to(node.input(0), node.input(1))};
  const Shape target = broadcast(node.shape(0), node.dims_input(1, "the shape"));
  for (const Dim& dim : target) {
    if (dim.is_const() && dim.value() < 0) node.malformed(fmt::format("the shape holds {}", dim.value()));
  }
  if (target == node.shape(0)) return {node.input(0)};
  return {node.call("broadcast_to", {node.input(0)}, {{"shape", target}})};
}

Exprs concat_rule(Node& node) {
  if (node.num_inputs() == 0) node.malformed("there is no input");
  const int64_t axis = axis_of(node, node.required_i("axis"), node.rank(0));
  Exprs inputs = node.all_inputs();
  if (inputs.size() == 1) return inputs;
  return {node.call("concatenate", {ir::tuple(std::move(inputs))}, {{"axis", axis}})};
}

Exprs fields_of(Node& node, const Expr& tuple, size_t count) {
  Exprs fields;
  for (size_t i = 0; i < count; ++i) fields.push_back(ir::tuple_get(tuple, static_cast<int>(i), node.span()));
  return fields;
}

// Cuts an axis into parts of these sizes.
Exprs split_into(Node& node, int64_t axis, const ir::Ints& sizes) {
  ir::Ints positions;
  int64_t at = 0;
  const Dim& extent = node.shape(0)[static_cast<size_t>(axis)];
  for (const int64_t size : sizes) {
    if (size < 0 || size > std::numeric_limits<int32_t>::max())
      node.malformed(fmt::format("a part has {} elements", size));
    at += size;
    positions.push_back(at);
  }
  if (extent.is_const() && extent.value() != at)
    node.malformed(fmt::format("the parts have {} elements together, the axis {}", at, extent.value()));
  positions.pop_back();
  Exprs parts = sizes.size() == 1 ? Exprs{node.input(0)}
                                  : fields_of(node, op::split(node.input(0), positions, axis), sizes.size());
  if (!extent.is_const()) {
    // The last part has what is behind the others; that it is as much as it should be is checked when the model runs.
    Shape shape = parts.back().tensor_type().shape;
    shape[static_cast<size_t>(axis)] = sizes.back();
    parts.back() = op::reshape_to(parts.back(), shape);
  }
  return parts;
}

// Without sizes: as many parts as outputs (or num_outputs) of ceil(extent / count) elements, the last with what
// remains. A symbolic extent is cut into equal parts, and one that does not divide is refused when the model runs.
Exprs split_rule(Node& node) {
  const int64_t axis = axis_of(node, node.i("axis", 0), node.rank(0));
  std::optional<ir::Ints> sizes;
  if (node.opset() < 13)
    sizes = node.optional_ints("split");
  else if (node.has(1))
    sizes = node.ints_input(1, "the sizes");
  int64_t count = static_cast<int64_t>(node.num_outputs());
  if (node.opset() >= 18 && node.has_attr("num_outputs")) {
    if (sizes) node.malformed("both sizes and num_outputs are given");
    count = node.i("num_outputs", count);
    if (count != static_cast<int64_t>(node.num_outputs()))
      node.malformed(fmt::format("num_outputs is {}, the node has {} outputs", count, node.num_outputs()));
  }
  if (sizes) {
    if (static_cast<int64_t>(sizes->size()) != count)
      node.malformed(fmt::format("{} sizes for {} outputs", sizes->size(), count));
    return split_into(node, axis, *sizes);
  }
  const Dim& extent = node.shape(0)[static_cast<size_t>(axis)];
  if (count == 1) return {node.input(0)};
  if (count < 1) node.malformed("the node has no output");
  if (!extent.is_const()) return fields_of(node, op::split(node.input(0), count, axis), static_cast<size_t>(count));
  if (node.opset() < 18 && extent.value() % count != 0)
    node.malformed(fmt::format("{} elements do not divide into {} equal parts", extent.value(), count));
  const int64_t part = (extent.value() + count - 1) / count;
  ir::Ints parts(static_cast<size_t>(count), part);
  parts.back() = extent.value() - part * (count - 1);
  if (parts.back() < 0)
    node.malformed(fmt::format("{} elements cannot be cut into {} parts of {}", extent.value(), count, part));
  return split_into(node, axis, parts);
}

// Bounds that are data; the axes must be known.
Exprs dynamic_slice(Node& node) {
  const Shape& starts = node.shape(1);
  if (starts.size() != 1 || !starts[0].is_const()) node.unsupported("starts of unknown length");
  ir::Ints axes;
  if (node.has(3)) {
    axes = axes_of(node, node.ints_input(3, "the axes"), node.rank(0));
  } else {
    for (int64_t i = 0; i < starts[0].value(); ++i) axes.push_back(axis_of(node, i, node.rank(0)));
  }
  Expr steps = ir::constant(Tensor::from<int64_t>(ir::Ints(axes.size(), 1)));
  if (node.has(4)) steps = node.input(4);
  const auto wide = [](const Expr& x) { return op::cast(x, dtype::int64_); };
  return {op::dynamic_strided_slice(node.input(0), wide(node.input(1)), wide(node.input(2)), wide(steps), axes)};
}

Exprs slice_rule(Node& node) {
  if (node.opset() >= 10 && (computed_vector(node, 1) || computed_vector(node, 2))) return dynamic_slice(node);
  const SliceArguments slice = slice_arguments(node);
  if (slice.axes.empty()) return {node.input(0)};
  return {op::strided_slice(node.input(0), slice.starts, slice.ends, slice.steps, slice.axes)};
}

Exprs tile_rule(Node& node) {
  const Shape reps = node.dims_input(1, "the repeats");
  if (reps.size() != node.rank(0)) node.malformed(fmt::format("{} repeats for {} axes", reps.size(), node.rank(0)));
  if (reps.empty()) return {node.input(0)};
  return {node.call("tile", {node.input(0)}, {{"reps", reps}})};
}

// Identity when not training; the mask is all true.
Exprs dropout_rule(Node& node) {
  node.ignore("ratio");
  node.ignore("seed");
  if (node.has(1)) node.ignore_input(1);
  if (node.has(2)) {
    const Known* training = node.known(2);
    if (!training || !training->is_const() || training->values.size() != 1)
      node.unsupported("training_mode is computed from data");
    if (training->values[0].number() != 0) node.unsupported("training_mode is true");
  }
  Exprs outputs = {node.input(0)};
  if (node.wants(1)) {
    const DType dtype = node.opset() < 10 ? node.dtype(0) : dtype::bool_;
    outputs.push_back(op::broadcast_to(node.number(1, dtype), node.shape(0)));
  }
  return outputs;
}

Exprs depth_to_space_rule(Node& node) {
  const std::string mode = node.opset() >= 11 ? node.s("mode", "DCR") : "DCR";
  if (mode != "DCR" && mode != "CRD") node.malformed(fmt::format("mode is \"{}\"", printable(mode)));
  const int64_t block = node.required_i("blocksize");
  const Shape s = node.shape(0);
  if (s.size() != 4 || block < 1 || !s[1].is_const() || block > 1 << 15 || s[1].value() % (block * block) != 0)
    node.malformed(fmt::format("data {} do not divide into blocks of {}", to_string(s), block));
  const Dim c = s[1].value() / (block * block);
  const Shape split =
      mode == "DCR" ? Shape{s[0], block, block, c, s[2], s[3]} : Shape{s[0], c, block, block, s[2], s[3]};
  const ir::Ints order = mode == "DCR" ? ir::Ints{0, 3, 4, 1, 5, 2} : ir::Ints{0, 1, 4, 2, 5, 3};
  const Expr moved = op::transpose(op::reshape_to(node.input(0), split), order);
  return {op::reshape_to(moved, {s[0], c, s[2] * block, s[3] * block})};
}

Exprs space_to_depth_rule(Node& node) {
  const int64_t block = node.required_i("blocksize");
  const Shape s = node.shape(0);
  if (s.size() != 4 || block < 1 || block > 1 << 15)
    node.malformed(fmt::format("data {} do not divide into blocks of {}", to_string(s), block));
  const auto h = exact_divide(s[2], block), w = exact_divide(s[3], block);
  if (!h || !w) node.unsupported(fmt::format("data {} do not provably divide into blocks of {}", to_string(s), block));
  const std::string mode = node.opset() >= 28 ? node.s("mode", "DCR") : "DCR";
  if (mode != "DCR" && mode != "CRD") node.malformed(fmt::format("mode is \"{}\"", printable(mode)));
  const Expr split = op::reshape_to(node.input(0), {s[0], s[1], *h, block, *w, block});
  return {op::reshape_to(op::transpose(split, mode == "DCR" ? ir::Ints{0, 3, 5, 1, 2, 4} : ir::Ints{0, 1, 3, 5, 2, 4}),
                         {s[0], s[1] * (block * block), *h, *w})};
}

// NumPy's cast: to bool is not 0. `saturate` speaks of 8-bit floats only.
Exprs cast_rule(Node& node) {
  node.ignore("saturate");
  return {op::cast(node.input(0), dtype_of_code(node.required_i("to")))};
}

Exprs cast_like_rule(Node& node) {
  node.ignore("saturate");
  return {op::cast(node.input(0), node.dtype(1))};
}

Exprs bit_cast_rule(Node& node) {
  const DType to = dtype_of_code(node.required_i("to"));
  if (to.bits != node.dtype(0).bits || to.is_bool() || node.dtype(0).is_bool())
    node.unsupported("dtypes of other widths, or bool");
  return {op::reinterpret(node.input(0), to)};
}

}  // namespace

void add_shape_rules(RuleTable& table) {
  table.add("Identity", {1, 13, 14, 16, 19, 21, 23, 24, 25}, identity_rule);
  table.add("Reshape", {5, 13, 14, 19, 21, 23, 24, 25}, reshape_rule);
  table.add("Flatten", {1, 9, 11, 13, 21, 23, 24, 25}, flatten_rule);
  table.add("Transpose", {1, 13, 21, 23, 24, 25}, transpose_rule);
  table.add("Squeeze", {1, 11, 13, 21, 23, 24, 25}, squeeze_rule);
  table.add("Unsqueeze", {1, 11, 13, 21, 23, 24, 25}, unsqueeze_rule);
  table.add("Expand", {8, 13}, expand_rule);
  table.add("Concat", {4, 11, 13}, concat_rule);
  table.add("Split", {2, 11, 13, 18}, split_rule);
  table.add("Slice", {1, 10, 11, 13}, slice_rule);
  table.add("Tile", {6, 13}, tile_rule);
  table.add("Dropout", {7, 10, 12, 13, 22}, dropout_rule);
  table.add("DepthToSpace", {1, 11, 13, 28}, depth_to_space_rule);
  table.add("SpaceToDepth", {1, 13, 28}, space_to_depth_rule);
  table.add("Cast", {6, 9, 13, 19, 21, 23, 24, 25, 28}, cast_rule);
  table.add("CastLike", {15, 19, 21, 23, 24, 25}, cast_like_rule);
  table.add("BitCast", {26}, bit_cast_rule);
}

}  // namespace treadle::onnx
