// SPDX-License-Identifier: Apache-2.0
// Convolutions, and the attributes that they share with pools.
#include <algorithm>

#include "import/onnx/windows.h"
#include "op/nn/dense.h"

namespace treadle::onnx {
namespace {

using ir::Expr;
using Exprs = std::vector<Expr>;

constexpr int64_t kMaxAttribute = 1 << 30;  // of a stride, a dilation, a kernel or padding

// Extents of the weight behind its first two axes. Errors: ImportUnsupported when one is symbolic.
ir::Ints kernel_of(Node& node, size_t input) {
  const Shape& weight = node.shape(input);
  if (weight.size() != node.rank(0))
    node.malformed(fmt::format("the data have {} axes, the weight {}", node.rank(0), weight.size()));
  ir::Ints kernel;
  for (size_t i = 2; i < weight.size(); ++i) {
    if (!weight[i].is_const()) node.unsupported("the extents of the kernel are not constant");
    kernel.push_back(weight[i].value());
  }
  return kernel;
}

Expr add_bias(Node& node, const Expr& y, size_t input) {
  if (!node.has(input)) return y;
  return op::bias_add(y, node.input(input), 1, node.span());
}

Exprs conv_rule(Node& node) {
  const Window window = read_window(node, spatial_shape(node), kernel_of(node, 1));
  const Expr y = node.call(by_rank(node, "nn.conv", window.rank(), ""), {node.input(0), node.input(1)},
                           {{"strides", window.strides},
                            {"padding", window.padding()},
                            {"dilation", window.dilations},
                            {"groups", node.i("group", 1)},
                            {"kernel_size", window.kernel}});
  return {add_bias(node, y, 2)};
}

// Splits what is cut from the full output; total[i] may be negative: then the output is extended at its end.
void split_padding(const ir::Ints& total, bool upper, Window& window, ir::Ints& output_padding) {
  for (size_t i = 0; i < total.size(); ++i) {
    const int64_t cut = std::max<int64_t>(total[i], 0), half = cut / 2;
    window.pad_begin[i] = upper ? half : cut - half;
    window.pad_end[i] = upper ? cut - half : half;
    output_padding[i] += std::max<int64_t>(-total[i], 0);
  }
}

// total = stride * (in - 1) + output_padding + span - out; SAME: out = in * stride. Of an odd total the larger half is
// cut at the end for SAME_UPPER, else at the beginning (ONNX ConvTranspose, formula for output_shape).
Exprs conv_transpose_rule(Node& node) {
  const ir::Ints kernel = kernel_of(node, 1);
  const size_t rank = kernel.size();
  const Shape spatial = spatial_shape(node);
  const std::string mode = node.s("auto_pad", "NOTSET");
  const auto wanted = node.optional_ints("output_shape");
  ir::Ints output_padding = per_axis(node, "output_padding", rank, 0, 0);
  Window window{per_axis(node, "kernel_shape", rank, 0, 0),
                per_axis(node, "strides", rank, 1, 1),
                per_axis(node, "dilations", rank, 1, 1),
                {},
                {}};
  if (node.has_attr("kernel_shape") && window.kernel != kernel) node.malformed("kernel_shape is not the weight's");
  window.kernel = kernel;
  const ir::Ints pads = per_axis(node, "pads", 2 * rank, 0, -kMaxAttribute);
  window.pad_begin.assign(pads.begin(), pads.begin() + static_cast<int64_t>(rank));
  window.pad_end.assign(pads.begin() + static_cast<int64_t>(rank), pads.end());
  const bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  if (!same && mode != "NOTSET" && mode != "VALID" && !mode.empty())
    node.malformed(fmt::format("auto_pad is \"{}\"", printable(mode)));
  if (mode == "VALID") window.pad_begin = window.pad_end = ir::Ints(rank, 0);
  if (wanted || same) {
    ir::Ints out = wanted.value_or(ir::Ints());
    if (wanted && out.size() == rank + 2) out.erase(out.begin(), out.begin() + 2);
    if (wanted && out.size() != rank)
      node.malformed(fmt::format("output_shape has {} values for {} axes", out.size(), rank));
    ir::Ints total;
    for (size_t i = 0; i < rank; ++i) {
      const Dim &in = spatial[i], full = Dim(window.strides[i]) * (in - 1) + output_padding[i] + window.span(i);
      const Dim rest = full - (wanted ? Dim(out[i]) : in * window.strides[i]);
      if (!rest.is_const()) node.unsupported("output_shape with a symbolic extent");
      total.push_back(rest.value());
    }
    split_padding(total, mode == "SAME_UPPER", window, output_padding);
  }
  // A negative padding extends the output: at the end that is output_padding.
  for (size_t i = 0; i < rank; ++i) {
    if (window.pad_begin[i] < 0) node.unsupported("negative padding at the beginning");
    if (window.pad_end[i] < 0) {
      output_padding[i] -= window.pad_end[i];
      window.pad_end[i] = 0;
    }
  }
  const int64_t groups = node.i("group", 1);
  const Expr y = node.call(by_rank(node, "nn.conv", rank, "_transpose"), {node.input(0), node.input(1)},
                           {{"strides", window.strides},
                            {"padding", window.padding()},
                            {"dilation", window.dilations},
                            {"output_padding", output_padding},
                            {"groups", groups},
                            {"kernel_size", window.kernel}});
  return {add_bias(node, y, 2)};
}

}  // namespace

ir::Ints Window::padding() const {
  ir::Ints result = pad_begin;
  result.insert(result.end(), pad_end.begin(), pad_end.end());
  return result;
}

ir::Ints per_axis(Node& node, const char* name, size_t rank, int64_t default_value, int64_t least) {
  const ir::Ints values = node.ints(name, ir::Ints(rank, default_value));
  if (values.size() != rank) node.malformed(fmt::format("{} has {} values, {} are needed", name, values.size(), rank));
  for (const int64_t value : values) {
    if (value < least || value > kMaxAttribute)
      node.malformed(
          fmt::format("{} holds {}, it must be {} at least and {} at most", name, value, least, kMaxAttribute));
  }
  return values;
}

Shape spatial_shape(Node& node) {
  const Shape& data = node.shape(0);
  if (data.size() < 3) node.malformed(fmt::format("the data have {} axes, at least 3 are needed", data.size()));
  return Shape(data.begin() + 2, data.end());
}

std::string by_rank(const Node& node, const std::string& stem, size_t rank, const std::string& tail) {
  if (rank > 3) node.unsupported(fmt::format("{} spatial axes; at most 3 are supported", rank));
  return fmt::format("{}{}d{}", stem, rank, tail);
}

Window read_window(Node& node, const Shape& spatial, const ir::Ints& kernel) {
  const size_t rank = spatial.size();
  Window window;
  if (kernel.empty() && !node.has_attr("kernel_shape")) node.malformed("attribute \"kernel_shape\" is missing");
  window.kernel = per_axis(node, "kernel_shape", rank, 1, kernel.empty() ? 1 : 0);
  if (!kernel.empty()) {
    if (node.has_attr("kernel_shape") && window.kernel != kernel) node.malformed("kernel_shape is not the weight's");
    window.kernel = kernel;
  }
  window.strides = per_axis(node, "strides", rank, 1, 1);
  window.dilations = per_axis(node, "dilations", rank, 1, 1);
  const ir::Ints pads = per_axis(node, "pads", 2 * rank, 0, 0);
  window.pad_begin.assign(pads.begin(), pads.begin() + static_cast<int64_t>(rank));
  window.pad_end.assign(pads.begin() + static_cast<int64_t>(rank), pads.end());
  const std::string mode = node.s("auto_pad", "NOTSET");
  if (mode == "NOTSET" || mode.empty()) return window;
  window.pad_begin = window.pad_end = ir::Ints(rank, 0);
  if (mode == "VALID") return window;
  if (mode != "SAME_UPPER" && mode != "SAME_LOWER") node.malformed(fmt::format("auto_pad is \"{}\"", printable(mode)));
  for (size_t i = 0; i < rank; ++i) {
    const int64_t stride = window.strides[i];
    const Dim total = max((ceildiv(spatial[i], stride) - 1) * stride + window.span(i) - spatial[i], Dim(0));
    if (!total.is_const())
      node.unsupported(
          fmt::format("auto_pad {} of the symbolic extent {} with stride {}", mode, to_string(spatial[i]), stride));
    const int64_t half = total.value() / 2;
    window.pad_begin[i] = mode == "SAME_UPPER" ? half : total.value() - half;
    window.pad_end[i] = total.value() - window.pad_begin[i];
  }
  return window;
}

void add_convolution_rules(RuleTable& table) {
  table.add("Conv", {1, 11, 22}, conv_rule);
  table.add("ConvTranspose", {1, 11, 22}, conv_transpose_rule);
}

}  // namespace treadle::onnx
