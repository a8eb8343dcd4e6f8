// SPDX-License-Identifier: Apache-2.0
// Operators that make tensors: constants, ranges, shapes.
#include <cmath>

#include "import/onnx/shapes.h"
#include "import/onnx/tensor.h"
#include "op/tensor/binary.h"
#include "op/tensor/creation.h"
#include "op/tensor/dynamic.h"
#include "op/tensor/reshape.h"
#include "op/tensor/transform.h"
#include "op/tensor/unary.h"

namespace treadle::onnx {
namespace {

using ir::Expr;
using Exprs = std::vector<Expr>;

// Exactly one of its attributes holds the value.
Exprs constant_rule(Node& node) {
  if (node.attributes().size() != 1)
    node.malformed(fmt::format("{} attributes, exactly one must hold the value", node.attributes().size()));
  const std::string& name = node.attributes().begin()->first;
  if (name == "value") return {ir::constant(*node.tensor("value"), node.span())};
  if (name == "value_float")
    return {ir::constant(Tensor::from<float>({static_cast<float>(node.f(name, 0))}, {}), node.span())};
  if (name == "value_int") return {ir::constant(Tensor::from<int64_t>({node.i(name, 0)}, {}), node.span())};
  if (name == "value_ints") return {ir::constant(Tensor::from<int64_t>(node.ints(name)), node.span())};
  if (name == "value_floats") {
    const std::vector<double> values = node.floats(name);
    return {ir::constant(Tensor::from<float>(std::vector<float>(values.begin(), values.end())), node.span())};
  }
  if (name == "value_string" || name == "value_strings") node.unsupported("strings");
  if (name == "sparse_value") node.unsupported("sparse tensors");
  node.malformed(fmt::format("attribute \"{}\" holds no value", printable(name)));
}

Expr fill_value(Node& node) {
  const auto value = node.tensor("value");
  if (value && value->size() != 1)
    node.malformed(fmt::format("the value has {} elements, it must have one", value->size()));
  return value ? ir::constant(value->reshaped({})) : node.number(0, dtype::float32_);
}

Exprs constant_of_shape_rule(Node& node) {
  if (computed_vector(node, 0)) return {op::dynamic_full(fill_value(node), node.input(0))};
  const Shape shape = node.dims_input(0, "the shape");
  for (const Dim& dim : shape) {
    if (dim.is_const() && dim.value() < 0) node.malformed(fmt::format("the shape holds {}", dim.value()));
  }
  return {op::full(fill_value(node), shape)};
}

// The extents from `start` to `end` (opset 15).
Exprs shape_rule(Node& node) {
  Expr shape = op::shape_of(node.input(0), dtype::int64_);
  if (node.opset() >= 15 && (node.has_attr("start") || node.has_attr("end")))
    node.unsupported("a part of the shape of this input");
  return {shape};
}

Exprs size_rule(Node& node) { return {node.call("ndarray_size", {node.input(0)}, {{"dtype", dtype::int64_}})}; }

// Numbers that are known; of integers they may be symbolic.
Exprs range_rule(Node& node) {
  const DType dtype = node.dtype(0);
  if (node.dtype(1) != dtype || node.dtype(2) != dtype) node.malformed("start, limit and delta must have one dtype");
  const auto scalar = [&](size_t i) { return node.rank(i) == 0 ? node.input(i) : op::reshape_to(node.input(i), {}); };
  const auto data = [&](size_t i) {
    const Known* known = node.known(i);
    return known ? !dtype.is_integer() && !known->is_const() : !node.input(i).as<ir::Constant>();
  };
  if (data(0) || data(1) || data(2)) {
    if (node.opset() >= 27) node.ignore("stash_type");
    return {op::dynamic_arange(scalar(0), scalar(1), scalar(2))};
  }
  if (dtype.is_integer()) {
    const Shape start = node.dims_input(0, "start"), limit = node.dims_input(1, "limit");
    const int64_t delta = node.int_input(2, "delta");
    if (start.size() != 1 || limit.size() != 1) node.malformed("start and limit must be scalars");
    if (delta == 0) node.malformed("delta is 0");
    return {op::arange(start[0], limit[0], delta, dtype)};
  }
  if (node.opset() >= 27) node.ignore("stash_type");  // places are computed in double
  const double start = node.float_input(0, "start"), limit = node.float_input(1, "limit"),
               delta = node.float_input(2, "delta");
  if (delta == 0) node.malformed("delta is 0");
  if (!std::isfinite(start) || !std::isfinite(limit) || !std::isfinite(delta)) node.malformed("a bound is not finite");
  return {op::arange(start, limit, delta, dtype)};
}

// 1 on diagonal k, else 0.
Exprs eye_like_rule(Node& node) {
  const Shape shape = node.shape(0);
  if (shape.size() != 2) node.malformed(fmt::format("the input has {} axes, it must have 2", shape.size()));
  const DType dtype = node.has_attr("dtype") ? dtype_of_code(node.required_i("dtype")) : node.dtype(0);
  const int64_t k = node.i("k", 0);
  const Expr rows =
      node.call("expand_dims", {op::arange(Dim(k), shape[0] + k, 1, dtype::int64_)}, {{"axis", int64_t{1}}});
  const Expr columns = op::arange(Dim(0), shape[1], 1, dtype::int64_);
  return {op::cast(node.call("equal", {rows, columns}), dtype)};
}

}  // namespace

void add_creation_rules(RuleTable& table) {
  table.add("Constant", {1, 9, 11, 12, 13, 19, 21, 23, 24, 25}, constant_rule);
  table.add("ConstantOfShape", {9, 20, 21, 23, 24, 25}, constant_of_shape_rule);
  table.add("Shape", {1, 13, 15, 19, 21, 23, 24, 25}, shape_rule);
  table.add("Size", {1, 13, 19, 21, 23, 24, 25}, size_rule);
  table.add("Range", {11, 27}, range_rule);
  table.add("EyeLike", {9, 22}, eye_like_rule);
}

}  // namespace treadle::onnx
