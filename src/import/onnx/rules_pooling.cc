// SPDX-License-Identifier: Apache-2.0
// Pools. In ceil mode ONNX drops a last window that would begin in the padding at the end; Treadle's pools keep it.
#include "import/onnx/windows.h"
#include "op/nn/pool.h"
#include "op/tensor/binary.h"
#include "op/tensor/reduce.h"
#include "op/tensor/slice.h"

namespace treadle::onnx {
namespace {

using ir::Expr;
using Exprs = std::vector<Expr>;

// Windows that Treadle counts with ceil_mode, and those that ONNX wants.
struct CeilCount {
  Dim ours, wanted;
};

CeilCount ceil_count(Node& node, const Window& window, const Dim& in, size_t i) {
  const int64_t stride = window.strides[i];
  const Dim room = in + window.pad_begin[i] + window.pad_end[i] - window.span(i);
  const Dim ours = ceildiv(room, stride) + 1;
  // The last window begins at (ours - 1) * stride <= room + stride - 1, which lies before the padding when stride +
  // pad_end <= span.
  if (stride + window.pad_end[i] <= window.span(i)) return {ours, ours};
  if (!in.is_const())
    node.unsupported(fmt::format("ceil_mode of the symbolic extent {} with these pads", to_string(in)));
  const bool drop = (ours.value() - 1) * stride >= in.value() + window.pad_begin[i];
  return {ours, drop ? ours - 1 : ours};
}

Expr pool(Node& node, const std::string& stem, const Expr& data, const Window& window, bool ceil_mode,
          bool count_include_pad) {
  const size_t rank = window.rank();
  ir::AttrMap attrs = {{"pool_size", window.kernel},
                       {"strides", window.strides},
                       {"dilation", window.dilations},
                       {"padding", window.padding()},
                       {"ceil_mode", ceil_mode}};
  if (stem == "nn.avg_pool") attrs["count_include_pad"] = count_include_pad;
  Expr result = node.call(by_rank(node, stem, rank, ""), {data}, attrs);
  if (!ceil_mode) return result;
  Shape begin, end;
  ir::Ints axes;
  const Shape spatial = spatial_shape(node);
  for (size_t i = 0; i < rank; ++i) {
    const CeilCount count = ceil_count(node, window, spatial[i], i);
    if (count.ours == count.wanted) continue;
    begin.emplace_back(0);
    end.push_back(count.wanted);
    axes.push_back(static_cast<int64_t>(i) + 2);
  }
  return axes.empty() ? result : op::strided_slice(result, begin, end, ir::Ints(axes.size(), 1), axes);
}

// auto_pad fixes the output's extents, so that ceil_mode says nothing.
bool read_ceil_mode(Node& node) {
  const bool ceil_mode = node.flag("ceil_mode");
  const std::string mode = node.s("auto_pad", "NOTSET");
  return ceil_mode && (mode == "NOTSET" || mode.empty());
}

Exprs max_pool_rule(Node& node) {
  const Window window = read_window(node, spatial_shape(node));
  if (node.wants(1)) node.unsupported("output Indices");
  node.ignore("storage_order");  // of the indices
  return {pool(node, "nn.max_pool", node.input(0), window, read_ceil_mode(node), false)};
}

Exprs average_pool_rule(Node& node) {
  const Window window = read_window(node, spatial_shape(node));
  const bool include = node.flag("count_include_pad");
  return {pool(node, "nn.avg_pool", node.input(0), window, read_ceil_mode(node), include)};
}

// |x|^p; p is at least 1.
Expr power_of_magnitude(Node& node, const Expr& x, int64_t p) {
  if (p < 1) node.malformed(fmt::format("p is {}, it must be positive", p));
  const Expr magnitude = node.call("abs", {x});
  if (p == 1) return magnitude;
  if (p == 2) return op::multiply(x, x);
  return node.call("power", {magnitude, node.number(static_cast<double>(p), x.tensor_type().dtype)});
}

Expr root(Node& node, const Expr& x, int64_t p) {
  if (p == 1) return x;
  if (p == 2) return node.call("sqrt", {x});
  return node.call("power", {x, node.number(1.0 / static_cast<double>(p), x.tensor_type().dtype)});
}

// (sum of |x|^p over the window)^(1/p): the average with every tap counted, times their number. Taps that ceil_mode
// adds are made part of the padding, so that they are counted too.
Exprs lp_pool_rule(Node& node) {
  Window window = read_window(node, spatial_shape(node));
  const bool ceil_mode = read_ceil_mode(node);
  const int64_t p = node.i("p", 2);
  const Shape spatial = spatial_shape(node);
  double taps = 1;
  for (size_t i = 0; i < window.rank(); ++i) {
    taps *= static_cast<double>(window.kernel[i]);
    if (!ceil_mode) continue;
    const CeilCount count = ceil_count(node, window, spatial[i], i);
    const Dim covered = (count.wanted - 1) * window.strides[i] + window.span(i);
    const Dim more = max(covered - spatial[i] - window.pad_begin[i] - window.pad_end[i], Dim(0));
    if (!more.is_const()) node.unsupported("ceil_mode of a symbolic extent");
    window.pad_end[i] += more.value();
  }
  const Expr powers = power_of_magnitude(node, node.input(0), p);
  const Expr mean = pool(node, "nn.avg_pool", powers, window, false, true);
  return {root(node, op::multiply(mean, taps), p)};
}

ir::Ints spatial_axes(Node& node) {
  ir::Ints axes;
  for (size_t i = 2; i < node.rank(0); ++i) axes.push_back(static_cast<int64_t>(i));
  if (axes.empty()) node.malformed(fmt::format("the data have {} axes, at least 3 are needed", node.rank(0)));
  return axes;
}

Exprs global_average_rule(Node& node) {
  const ir::Ints axes = spatial_axes(node);
  if (axes.size() == 2) return {op::global_avg_pool(node.input(0), 2, node.span())};
  return {op::mean(node.input(0), axes, true)};
}

Exprs global_max_rule(Node& node) {
  const ir::Ints axes = spatial_axes(node);
  if (axes.size() == 2) return {op::global_max_pool(node.input(0), 2, node.span())};
  return {op::reduce("max", node.input(0), axes, true)};
}

Exprs global_lp_rule(Node& node) {
  const int64_t p = node.i("p", 2);
  const Expr powers = power_of_magnitude(node, node.input(0), p);
  return {root(node, op::sum(powers, spatial_axes(node), true), p)};
}

}  // namespace

void add_pooling_rules(RuleTable& table) {
  table.add("MaxPool", {1, 8, 10, 11, 12, 22}, max_pool_rule);
  table.add("AveragePool", {7, 10, 11, 19, 22}, average_pool_rule);
  table.add("LpPool", {2, 11, 18, 22}, lp_pool_rule);
  table.add("GlobalAveragePool", {1, 22}, global_average_rule);
  table.add("GlobalMaxPool", {1, 22}, global_max_rule);
  table.add("GlobalLpPool", {2, 22}, global_lp_rule);
}

}  // namespace treadle::onnx
