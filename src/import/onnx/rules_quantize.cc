// SPDX-License-Identifier: Apache-2.0
// Quantisation with simple operators. y = saturate(round_half_to_even(x / scale) + zero_point); x = (y - zero_point) *
// scale.
#include <limits>

#include "import/onnx/products.h"
#include "import/onnx/tensor.h"
#include "import/onnx/windows.h"
#include "op/tensor/binary.h"
#include "op/tensor/reduce.h"
#include "op/tensor/reshape.h"
#include "op/tensor/unary.h"

namespace treadle::onnx {
namespace {

using ir::Expr;
using Exprs = std::vector<Expr>;

// A scalar (or one element), or a vector along `axis` of a tensor with `rank` axes, so that it broadcasts.
Expr along(const Node& node, const Expr& x, int64_t axis, size_t rank) {
  const Shape& shape = x.tensor_type().shape;
  if (shape.empty()) return x;
  if (shape.size() == 1 && shape[0].is(1)) return op::reshape_to(x, {});
  if (shape.size() > 1) node.unsupported("scales in blocks");
  Shape wanted(rank, 1);
  wanted[static_cast<size_t>(axis_of(node, axis, rank))] = shape[0];
  return op::reshape_to(x, wanted);
}

std::pair<double, double> bounds(DType dtype) {
  if (dtype == dtype::uint8_) return {0, 255};
  if (dtype == dtype::int8_) return {-128, 127};
  if (dtype == dtype::uint16_) return {0, 65535};
  if (dtype == dtype::int16_) return {-32768, 32767};
  if (dtype == dtype::int32_) return {-2147483648.0, 2147483647.0};
  fail(ErrorCode::ImportUnsupported, "quantisation to {}", to_string(dtype));
}

// x float32; zero_point undefined: 0.
Expr quantised(const Node& node, const Expr& x, const Expr& scale, const Expr& zero_point, DType dtype) {
  Expr rounded = node.call("round_even", {op::divide(x, scale)});
  if (zero_point.defined()) rounded = op::add(rounded, op::cast(zero_point, x.tensor_type().dtype));
  const auto [low, high] = bounds(dtype);
  return op::cast(op::clip(rounded, low, high), dtype);
}

Exprs quantize_rule(Node& node) {
  const int64_t axis = node.opset() >= 13 ? node.i("axis", 1) : 0;
  node.ignore("saturate");
  if (node.opset() >= 21 && node.i("block_size", 0) != 0) node.unsupported("block_size");
  DType dtype = dtype::uint8_;
  if (node.opset() >= 21 && node.i("output_dtype", 0) != 0) dtype = dtype_of_code(node.i("output_dtype", 0));
  if (node.has(2)) dtype = node.dtype(2);
  const size_t rank = node.rank(0);
  DType compute = dtype::float32_;
  if (node.opset() >= 23 && node.i("precision", 0) != 0) compute = dtype_of_code(node.i("precision", 0));
  const Expr zero = node.has(2) ? along(node, node.input(2), axis, rank) : Expr();
  return {quantised(node, op::cast(node.input(0), compute), op::cast(along(node, node.input(1), axis, rank), compute),
                    zero, dtype)};
}

Exprs dequantize_rule(Node& node) {
  const int64_t axis = node.opset() >= 13 ? node.i("axis", 1) : 0;
  if (node.opset() >= 21 && node.i("block_size", 0) != 0) node.unsupported("block_size");
  const size_t rank = node.rank(0);
  DType out = node.dtype(1);
  if (node.opset() >= 23 && node.i("output_dtype", 0) != 0) out = dtype_of_code(node.i("output_dtype", 0));
  if (!node.dtype(0).is_integer()) node.unsupported(fmt::format("data of {}", to_string(node.dtype(0))));
  Expr x = op::cast(node.input(0), dtype::int32_);
  if (node.has(2)) x = op::subtract(x, op::cast(along(node, node.input(2), axis, rank), dtype::int32_));
  const Expr scale = op::cast(along(node, node.input(1), axis, rank), dtype::float32_);
  return {op::cast(op::multiply(op::cast(x, dtype::float32_), scale), out)};
}

// To uint8, with the range of the data widened to hold 0. Of data that are all 0 the scale is 0; then all of y is the
// zero point.
Exprs dynamic_quantize_rule(Node& node) {
  const Expr x = node.input(0), zero = node.number(0, dtype::float32_);
  if (node.dtype(0) != dtype::float32_) node.malformed("the data must be float32");
  const Expr low = node.call("minimum", {zero, op::reduce("min", x)}),
             high = node.call("maximum", {zero, op::reduce("max", x)});
  const Expr scale = op::divide(op::subtract(high, low), node.number(255, dtype::float32_));
  const Expr divisor = op::where(node.call("equal", {scale, zero}), node.number(1, dtype::float32_), scale);
  const Expr raw = node.call("round_even", {op::clip(op::divide(op::subtract(zero, low), divisor), 0, 255)});
  const Expr zero_point = op::cast(raw, dtype::uint8_);
  return {quantised(node, x, divisor, zero_point, dtype::uint8_), scale, zero_point};
}

// The integers less their zero point, as int32.
Expr centred(Node& node, size_t data, size_t zero_point, const std::function<Expr(const Expr&)>& align) {
  const Expr x = op::cast(node.input(data), dtype::int32_);
  if (!node.has(zero_point)) return x;
  return op::subtract(x, op::cast(align(node.input(zero_point)), dtype::int32_));
}

// A zero point per row of the matrices (M), or one per row of each (…, M, 1).
Expr row_aligned(const Expr& zero) {
  const Shape& shape = zero.tensor_type().shape;
  if (shape.size() == 1 && shape[0].is(1)) return op::reshape_to(zero, {});
  return shape.size() == 1 ? op::expand_dims(zero, 1) : zero;
}

Exprs matmul_integer_rule(Node& node) {
  const Expr a = centred(node, 0, 2, row_aligned), b = centred(node, 1, 3, [](const Expr& zero) { return zero; });
  return {matrix_product(node, a, b)};
}

Expr integer_conv(Node& node, const Expr& x, const Expr& weight, size_t weight_input) {
  ir::Ints kernel;
  for (size_t i = 2; i < node.rank(weight_input); ++i) {
    if (!node.shape(weight_input)[i].is_const()) node.unsupported("the extents of the kernel are not constant");
    kernel.push_back(node.shape(weight_input)[i].value());
  }
  const Window window = read_window(node, spatial_shape(node), kernel);
  return node.call(by_rank(node, "nn.conv", window.rank(), ""), {x, weight},
                   {{"strides", window.strides},
                    {"padding", window.padding()},
                    {"dilation", window.dilations},
                    {"groups", node.i("group", 1)},
                    {"kernel_size", window.kernel}});
}

std::function<Expr(const Expr&)> channel_aligned(Node& node, int64_t axis, size_t rank) {
  return [&node, axis, rank](const Expr& zero) { return along(node, zero, axis, rank); };
}

Exprs conv_integer_rule(Node& node) {
  const size_t rank = node.rank(0);
  const Expr x = centred(node, 0, 2, channel_aligned(node, 1, rank)),
             w = centred(node, 1, 3, channel_aligned(node, 0, rank));
  return {integer_conv(node, x, w, 1)};
}

// sums int32, worth scale_a * scale_b each, to the output's scale and zero point.
Expr requantised(Node& node, const Expr& sums, const Expr& scale, size_t out_scale, size_t out_zero) {
  const Expr wanted = op::reshape_to(op::cast(node.input(out_scale), dtype::float32_), {});
  const Expr zero = op::reshape_to(node.input(out_zero), {});
  return quantised(node, op::multiply(op::cast(sums, dtype::float32_), op::divide(scale, wanted)),
                   node.number(1, dtype::float32_), zero, node.dtype(out_zero));
}

// x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point, bias
Exprs qlinear_conv_rule(Node& node) {
  const size_t rank = node.rank(0);
  const Expr x = centred(node, 0, 2, channel_aligned(node, 1, rank)),
             w = centred(node, 3, 5, channel_aligned(node, 0, rank));
  Expr sums = integer_conv(node, x, w, 3);
  if (node.has(8)) sums = op::add(sums, along(node, node.input(8), 1, rank));
  const Expr scale = op::multiply(along(node, node.input(1), 1, rank), along(node, node.input(4), 1, rank));
  return {requantised(node, sums, scale, 6, 7)};
}

// a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point
Exprs qlinear_matmul_rule(Node& node) {
  const Expr a = centred(node, 0, 2, row_aligned), b = centred(node, 3, 5, [](const Expr& zero) { return zero; });
  const Expr scale =
      op::multiply(op::cast(row_aligned(node.input(1)), dtype::float32_), op::cast(node.input(4), dtype::float32_));
  return {requantised(node, matrix_product(node, a, b), scale, 6, 7)};
}

}  // namespace

void add_quantize_rules(RuleTable& table) {
  table.add("QuantizeLinear", {10, 13, 19, 21, 23, 24, 25, 28}, quantize_rule);
  table.add("DequantizeLinear", {10, 13, 19, 21, 23, 24, 25, 28}, dequantize_rule);
  table.add("DynamicQuantizeLinear", {11}, dynamic_quantize_rule);
  table.add("MatMulInteger", {10}, matmul_integer_rule);
  table.add("ConvInteger", {10}, conv_integer_rule);
  table.add("QLinearConv", {10}, qlinear_conv_rule);
  table.add("QLinearMatMul", {10, 21}, qlinear_matmul_rule);
}

}  // namespace treadle::onnx
