// SPDX-License-Identifier: Apache-2.0
// Operators that pick, place, pad or sort elements. An index of run-time data that is out of range reads the nearest
// element.
#include <algorithm>

#include "import/onnx/indices.h"
#include "import/onnx/shapes.h"
#include "op/tensor/binary.h"
#include "op/tensor/creation.h"
#include "op/tensor/gather.h"
#include "op/tensor/join.h"
#include "op/tensor/mask.h"
#include "op/tensor/reshape.h"
#include "op/tensor/scatter.h"
#include "op/tensor/slice.h"
#include "op/tensor/sort.h"
#include "op/tensor/transform.h"
#include "op/tensor/unary.h"

namespace treadle::onnx {
namespace {

using ir::Expr;
using Exprs = std::vector<Expr>;

void need_integer(Node& node, size_t i, const char* what) {
  if (!node.dtype(i).is_integer())
    node.malformed(fmt::format("{} are {}, they must be integers", what, to_string(node.dtype(i))));
}

Exprs gather_rule(Node& node) {
  need_integer(node, 1, "the indices");
  const int64_t axis = axis_of(node, node.i("axis", 0), node.rank(0));
  const Expr indices = wrap_indices(node, node.input(1), node.shape(0)[static_cast<size_t>(axis)]);
  return {node.call("take", {node.input(0), indices}, {{"axis", axis}, {"mode", std::string("clip")}})};
}

Exprs gather_elements_rule(Node& node) {
  need_integer(node, 1, "the indices");
  const int64_t axis = axis_of(node, node.i("axis", 0), node.rank(0));
  const Shape &data = node.shape(0), &indices = node.shape(1);
  if (indices.size() != data.size())
    node.malformed(fmt::format("data have {} axes, indices {}", data.size(), indices.size()));
  Expr x = node.input(0);
  // The indices may cover a part of the other axes.
  Shape begin, end;
  ir::Ints axes;
  for (size_t i = 0; i < data.size(); ++i) {
    if (static_cast<int64_t>(i) == axis || data[i] == indices[i]) continue;
    begin.emplace_back(0);
    end.push_back(indices[i]);
    axes.push_back(static_cast<int64_t>(i));
  }
  if (!axes.empty()) x = op::strided_slice(x, begin, end, ir::Ints(axes.size(), 1), axes);
  return {
      node.call("gather", {x, wrap_indices(node, node.input(1), data[static_cast<size_t>(axis)])}, {{"axis", axis}})};
}

// (…, M) index tuples with each component wrapped by its own extent.
Expr wrap_tuples(Node& node, size_t input, size_t first_axis) {
  const Shape &data = node.shape(0), &shape = node.shape(input);
  if (shape.empty() || !shape.back().is_const()) node.unsupported("index tuples of unknown length");
  const auto length = static_cast<size_t>(shape.back().value());
  if (length < 1 || first_axis + length > data.size())
    node.malformed(fmt::format("index tuples of {} for data of {} axes", length, data.size()));
  const Expr indices = node.input(input);
  const DType dtype = node.dtype(input);
  Exprs extents;
  for (size_t i = 0; i < length; ++i) extents.push_back(op::expand_dims(extent_value(data[first_axis + i], dtype), 0));
  const Expr limits = length == 1 ? extents[0] : op::concatenate(std::move(extents), 0);
  const Expr wrapped =
      op::where(node.call("less", {indices, node.number(0, dtype)}), op::add(indices, limits), indices);
  return tuples_first(wrapped);
}

Exprs gather_nd_rule(Node& node) {
  need_integer(node, 1, "the indices");
  const int64_t batch = node.opset() >= 12 ? node.i("batch_dims", 0) : 0;
  if (batch < 0 || batch >= static_cast<int64_t>(std::min(node.rank(0), node.rank(1))))
    node.malformed(fmt::format("batch_dims is {}", batch));
  return {op::gather_nd(node.input(0), wrap_tuples(node, 1, static_cast<size_t>(batch)), batch)};
}

std::string reduction_name(Node& node) {
  const std::string reduction = node.opset() >= 16 ? node.s("reduction", "none") : "none";
  if (reduction == "none") return "update";
  if (reduction == "add" || reduction == "mul" || (node.opset() >= 18 && (reduction == "max" || reduction == "min")))
    return reduction;
  node.malformed(fmt::format("reduction is \"{}\"", printable(reduction)));
}

Exprs scatter_elements_rule(Node& node) {
  need_integer(node, 1, "the indices");
  const int64_t axis = axis_of(node, node.i("axis", 0), node.rank(0));
  return {op::scatter_elements(node.input(0), node.input(1), node.input(2), axis, reduction_name(node))};
}

Exprs scatter_nd_rule(Node& node) {
  need_integer(node, 1, "the indices");
  return {op::scatter_nd(node.input(0), tuples_first(node.input(1)), node.input(2), reduction_name(node))};
}

Exprs top_k_rule(Node& node) {
  const size_t rank = node.rank(0);
  const int64_t axis = axis_of(node, node.i("axis", -1), rank);
  const int64_t k = node.opset() < 10 ? node.required_i("k") : node.int_input(1, "k");
  const bool largest = node.opset() < 11 || node.flag("largest", true);
  if (node.opset() >= 11) node.ignore("sorted");  // sorted order is one of those allowed
  const Dim& extent = node.shape(0)[static_cast<size_t>(axis)];
  if (k < 0 || (extent.is_const() && k > extent.value()))
    node.malformed(fmt::format("k is {}, the axis has {} elements", k, to_string(extent)));
  const Expr both = op::topk(node.input(0), std::max<int64_t>(k, 1), axis, "both", !largest, dtype::int64_);
  Exprs outputs = {ir::tuple_get(both, 0), ir::tuple_get(both, 1)};
  if (k == 0) {
    for (Expr& output : outputs) output = op::strided_slice(output, {0}, {0}, ir::Ints{1}, ir::Ints{axis});
  }
  return outputs;
}

// An axis that is data picks one of the results along each axis; one outside of the rank that along axis 0.
Rule scan_rule(const char* name) {
  return [name](Node& node) -> Exprs {
    const bool exclusive = node.flag("exclusive"), reverse = node.flag("reverse");
    const auto rank = static_cast<int64_t>(node.rank(0));
    const auto along = [&](int64_t axis) { return op::scan(name, node.input(0), axis, exclusive, reverse); };
    if (rank == 0 || node.known(1)) return {along(axis_of(node, node.int_input(1, "the axis"), node.rank(0)))};
    need_integer(node, 1, "the axis");
    if (!product(node.shape(1)).is(1)) node.malformed(fmt::format("the axis has shape {}", to_string(node.shape(1))));
    // A one at the axis' place among zeros: a scatter refuses a place that does not exist when the model runs.
    const Expr given = op::reshape_to(op::cast(node.input(1), dtype::int64_), {1});
    const Expr zeros = ir::constant(Tensor::from<int64_t>(ir::Ints(static_cast<size_t>(rank), 0)));
    const Expr places = op::scatter_elements(zeros, given, ir::constant(Tensor::from<int64_t>({1})), 0);
    Expr result = node.input(0);
    for (int64_t axis = 0; axis < rank; ++axis) {
      const Expr place = op::take(places, node.number(static_cast<double>(axis), dtype::int64_), 0);
      result = op::where(op::cast(place, dtype::bool_), along(axis), result);
    }
    return {result};
  };
}

Exprs non_zero_rule(Node& node) {
  if (node.rank(0) == 0) node.unsupported("a scalar");
  return {op::cast(op::transpose(node.call("argwhere", {node.input(0)}), ir::Ints{1, 0}), dtype::int64_)};
}

Exprs compress_rule(Node& node) {
  const std::optional<int64_t> axis =
      node.has_attr("axis") ? std::optional(axis_of(node, node.required_i("axis"), node.rank(0))) : std::nullopt;
  if (node.rank(1) != 1) node.malformed("the condition must be a vector");
  const Expr x = axis ? node.input(0) : op::reshape_to(node.input(0), {product(node.shape(0))});
  const Dim extent = axis ? node.shape(0)[static_cast<size_t>(*axis)] : product(node.shape(0)),
            given = node.shape(1)[0];
  if (extent.is_const() && given.is_const() && given.value() > extent.value())
    node.malformed(fmt::format("the condition has {} elements for {}", given.value(), extent.value()));
  return {op::take(x, true_positions(node, node.input(1)), axis.value_or(0))};
}

// values = (off, on); an index outside of -depth … depth-1 gives off everywhere.
Exprs one_hot_rule(Node& node) {
  const double depth_value = node.float_input(1, "the depth");
  const auto depth = static_cast<int64_t>(depth_value);
  if (static_cast<double>(depth) != depth_value || depth < 0 || depth > int64_t{1} << 31)
    node.malformed(fmt::format("the depth is {}", depth_value));
  const auto rank = static_cast<int64_t>(node.rank(0)) + 1;
  const int64_t axis = axis_of(node, node.i("axis", -1), static_cast<size_t>(rank));
  if (node.rank(2) != 1 || !node.shape(2)[0].is(2)) node.malformed("the values must be a vector of 2");
  const Expr raw = op::cast(node.input(0), dtype::int64_);
  const Expr wrapped =
      op::where(node.call("less", {raw, node.number(0, dtype::int64_)}), op::add(raw, static_cast<double>(depth)), raw);
  const auto pick = [&](int64_t i) {
    return op::squeeze(op::strided_slice(node.input(2), {i}, {i + 1}, ir::Ints{1}, ir::Ints{0}), ir::Ints{0});
  };
  return {op::one_hot(wrapped, pick(1), pick(0), depth, axis == rank - 1 ? -1 : axis, node.dtype(2))};
}

Exprs trilu_rule(Node& node) {
  Expr k = node.number(0, dtype::int64_);
  if (node.has(1)) k = node.rank(1) == 0 ? node.input(1) : op::reshape_to(node.input(1), {});
  return {op::trilu(node.input(0), k, node.flag("upper", true))};
}

Exprs reverse_sequence_rule(Node& node) {
  const int64_t batch = node.i("batch_axis", 1), time = node.i("time_axis", 0);
  return {node.call("reverse_sequence", {node.input(0), node.input(1)}, {{"seq_axis", time}, {"batch_axis", batch}})};
}

// In sorted order runs of equal values begin where an element differs from the one before it.
Exprs unique_rule(Node& node) {
  if (node.has_attr("axis")) node.unsupported("attribute \"axis\"");
  const bool sorted = node.flag("sorted", true);
  const Dim count = product(node.shape(0));
  const Expr x = op::reshape_to(node.input(0), {count});
  if (!count.is_const() || count.value() == 0) node.unsupported("an input without elements, or of symbolic shape");
  const int64_t n = count.value();
  const Expr order = op::argsort(x, 0, true, dtype::int64_), ascending = op::take(x, order, 0);
  const auto slice = [](const Expr& v, int64_t from, int64_t to) {
    return op::strided_slice(v, {from}, {to}, ir::Ints{1}, ir::Ints{0});
  };
  Expr begins = ir::constant(Tensor::from<uint8_t>({1}));
  begins = op::cast(begins, dtype::bool_);
  if (n > 1)
    begins = op::concatenate({begins, node.call("not_equal", {slice(ascending, 1, n), slice(ascending, 0, n - 1)})}, 0);
  const Expr places = true_positions(node, begins);
  const Dim groups = places.tensor_type().shape[0];
  Expr values = op::take(ascending, places, 0), first = op::take(order, places, 0);
  const Expr ends = op::concatenate({slice(places, 1, INT32_MAX), ir::constant(Tensor::from<int64_t>({n}))}, 0);
  Expr counts = op::subtract(op::reshape_to(ends, {groups}), places);
  const Expr group = op::add(op::scan("cumsum", op::cast(begins, dtype::int64_), 0), -1.0);
  Expr inverse = op::scatter_elements(op::zeros({count}, dtype::int64_), order, group, 0);
  if (!sorted) {
    const Expr appearance = op::argsort(first, 0, true, dtype::int64_);
    inverse = op::take(op::argsort(appearance, 0, true, dtype::int64_), inverse, 0);
    values = op::take(values, appearance, 0);
    first = op::take(first, appearance, 0);
    counts = op::take(counts, appearance, 0);
  }
  return {values, first, inverse, counts};
}

// ---- Pad ----

Exprs pad_rule(Node& node) {
  const PadArguments pads = pad_arguments(node);
  const std::string mode = node.s("mode", "constant");
  Expr x = node.input(0);
  const DType dtype = node.dtype(0);
  if (mode != "constant" && mode != "edge" && mode != "reflect" && !(mode == "wrap" && node.opset() >= 19))
    node.malformed(fmt::format("mode is \"{}\"", printable(mode)));
  Expr value = node.number(0, dtype);
  if (node.opset() < 11)
    value = node.number(node.f("value", 0), dtype);
  else if (node.has(2))
    value = node.rank(2) == 0 ? node.input(2) : op::reshape_to(node.input(2), {});
  const size_t rank = node.rank(0);
  // Negative pads crop first; what is added then speaks of what is left.
  Shape begin, end;
  ir::Ints axes;
  ir::IntLists widths(rank, {0, 0});
  bool grows = false;
  for (size_t i = 0; i < rank; ++i) {
    const int64_t front = std::max<int64_t>(-pads.begin[i], 0), back = std::max<int64_t>(-pads.end[i], 0);
    const Dim& extent = node.shape(0)[i];
    widths[i] = {std::max<int64_t>(pads.begin[i], 0), std::max<int64_t>(pads.end[i], 0)};
    grows |= widths[i][0] > 0 || widths[i][1] > 0;
    const Dim left = extent - front - back;
    if (left.is_const() && left.value() < 0)
      node.malformed(fmt::format("axis {} has {} elements, {} are cropped", i, extent.value(), front + back));
    if (left.is(0) && mode != "constant" && (widths[i][0] || widths[i][1]))
      node.malformed(fmt::format("axis {} has no elements to take the padding from", i));
    if (front == 0 && back == 0) continue;
    begin.emplace_back(front);
    end.push_back(extent - back);
    axes.push_back(static_cast<int64_t>(i));
  }
  if (!axes.empty()) x = op::strided_slice(x, begin, end, ir::Ints(axes.size(), 1), axes);
  if (!grows) return {x};
  if (mode != "wrap") return {node.call("nn.pad", {x, value}, {{"pad_width", widths}, {"pad_mode", mode}})};
  for (size_t i = 0; i < rank; ++i) {
    const Dim extent = x.tensor_type().shape[i];
    if (widths[i][0] == 0 && widths[i][1] == 0) continue;
    const Expr place = op::arange(Dim(-widths[i][0]), extent + widths[i][1], 1, dtype::int64_);
    x = op::take(x, node.call("floor_mod", {place, extent_value(extent, dtype::int64_)}), static_cast<int64_t>(i));
  }
  return {x};
}

}  // namespace

Expr extent_value(const Dim& extent, DType dtype) {
  if (extent.is_const()) return ir::constant(Tensor::scalar(dtype, static_cast<double>(extent.value())));
  return op::reshape_to(op::arange(extent, extent + 1, 1, dtype), {});
}

Expr wrap_indices(const Node& node, const Expr& indices, const Dim& extent) {
  const DType dtype = indices.tensor_type().dtype;
  const auto* constant = indices.as<ir::Constant>();
  if (!constant || !extent.is_const()) {
    if (dtype.is_uint()) return indices;
    if (constant) {
      bool negative = false;
      for (int64_t i = 0; i < constant->value.size(); ++i) negative |= constant->value.int_at(i) < 0;
      if (!negative) return indices;
    }
    return op::where(node.call("less", {indices, node.number(0, dtype)}), op::add(indices, extent_value(extent, dtype)),
                     indices);
  }
  std::vector<int64_t> values = constant->value.to_ints();
  for (int64_t& value : values) {
    if (value < -extent.value() || value >= extent.value())
      node.malformed(fmt::format("index {} is outside of an axis of extent {}", value, extent.value()));
    if (value < 0) value += extent.value();
  }
  return op::cast(ir::constant(Tensor::from<int64_t>(values, constant->value.shape())), dtype);
}

Expr tuples_first(const Expr& indices) {
  const auto rank = static_cast<int64_t>(indices.tensor_type().shape.size());
  if (rank < 2) return indices;
  ir::Ints order = {rank - 1};
  for (int64_t i = 0; i + 1 < rank; ++i) order.push_back(i);
  return op::transpose(indices, order);
}

Expr true_positions(const Node& node, const Expr& vector) {
  const Expr places = node.call("argwhere", {vector});
  return op::cast(op::reshape_to(places, {places.tensor_type().shape[0]}), dtype::int64_);
}

void add_index_rules(RuleTable& table) {
  table.add("Gather", {1, 11, 13}, gather_rule);
  table.add("GatherElements", {11, 13}, gather_elements_rule);
  table.add("GatherND", {11, 12, 13}, gather_nd_rule);
  table.add("Scatter", {9, 11}, scatter_elements_rule);
  table.add("ScatterElements", {11, 13, 16, 18}, scatter_elements_rule);
  table.add("ScatterND", {11, 13, 16, 18}, scatter_nd_rule);
  table.add("TopK", {1, 10, 11, 24}, top_k_rule);
  table.add("CumSum", {11, 14}, scan_rule("cumsum"));
  table.add("CumProd", {26}, scan_rule("cumprod"));
  table.add("NonZero", {9, 13}, non_zero_rule);
  table.add("Compress", {9, 11, 28}, compress_rule);
  table.add("OneHot", {9, 11, 28}, one_hot_rule);
  table.add("Trilu", {14}, trilu_rule);
  table.add("ReverseSequence", {10, 28}, reverse_sequence_rule);
  table.add("Unique", {11, 28}, unique_rule);
  table.add("Pad", {2, 11, 13, 18, 19, 21, 23, 24, 25}, pad_rule);
}

}  // namespace treadle::onnx
