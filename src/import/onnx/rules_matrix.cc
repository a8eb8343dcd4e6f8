// SPDX-License-Identifier: Apache-2.0
// Products of matrices: Gemm, MatMul, Einsum.
#include <algorithm>
#include <cmath>

#include "import/onnx/products.h"
#include "op/nn/dense.h"
#include "op/tensor/binary.h"
#include "op/tensor/einsum.h"
#include "op/tensor/reshape.h"
#include "op/tensor/transform.h"
#include "op/tensor/unary.h"

namespace treadle::onnx {
namespace {

using ir::Expr;
using Exprs = std::vector<Expr>;

// x as a number of `dtype`. Errors: ImportUnsupported when an integer dtype cannot hold it.
Expr scaled(Node& node, const Expr& x, double factor, const char* name) {
  if (factor == 1) return x;
  const DType dtype = x.tensor_type().dtype;
  if (dtype.is_integer() && factor != std::floor(factor))
    node.unsupported(fmt::format("{}={} of integers", name, factor));
  return op::multiply(x, node.number(factor, dtype));
}

// alpha * op(A) * op(B) + beta * C. The product is nn.dense, whose weight is transposed.
Exprs gemm_rule(Node& node) {
  const bool trans_a = node.flag("transA"), trans_b = node.flag("transB");
  const double alpha = node.f("alpha", 1), beta = node.f("beta", 1);
  if (node.rank(0) != 2 || node.rank(1) != 2)
    node.malformed(fmt::format("A has {} axes and B {}, both must be matrices", node.rank(0), node.rank(1)));
  if (node.dtype(0) != node.dtype(1))
    node.malformed(fmt::format("A is {} and B {}", to_string(node.dtype(0)), to_string(node.dtype(1))));
  const Expr a = trans_a ? op::transpose(node.input(0), ir::Ints{1, 0}) : node.input(0);
  const Expr b = trans_b ? node.input(1) : op::transpose(node.input(1), ir::Ints{1, 0});
  const Expr product = scaled(node, node.call("nn.dense", {a, b}), alpha, "alpha");
  if (!node.has(2)) return {product};
  const Expr result = node.call("add", {product, scaled(node, node.input(2), beta, "beta")});
  if (!compatible_shape(result.tensor_type().shape, product.tensor_type().shape))
    node.malformed(
        fmt::format("C {} does not broadcast to {}", to_string(node.shape(2)), to_string(product.tensor_type().shape)));
  return {result};
}

Exprs matmul_rule(Node& node) {
  if (node.dtype(0) != node.dtype(1))
    node.malformed(fmt::format("A is {} and B {}", to_string(node.dtype(0)), to_string(node.dtype(1))));
  return {matrix_product(node, node.input(0), node.input(1))};
}

Exprs einsum_rule(Node& node) {
  std::string equation = node.s("equation", "");
  equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
  if (node.num_inputs() == 0) node.malformed("there is no input");
  return {op::einsum(node.all_inputs(), equation)};
}

// (batch…, M, K) with the batch extents stretched to `batch`, as (product of batch, M, K).
Expr as_batch(const Expr& x, const Shape& batch) {
  const Shape& shape = x.tensor_type().shape;
  Shape wanted = batch;
  wanted.insert(wanted.end(), shape.end() - 2, shape.end());
  const Shape own(shape.begin(), shape.end() - 2);
  Expr wide = own == batch ? x : op::broadcast_to(x, wanted);
  if (batch.size() == 1) return wide;
  return op::reshape_to(wide, {product(batch), wanted[batch.size()], wanted[batch.size() + 1]});
}

}  // namespace

bool compatible_shape(const Shape& a, const Shape& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].is_const() && b[i].is_const() && !(a[i] == b[i])) return false;
  }
  return true;
}

Expr matrix_product(const Node& node, const Expr& a, const Expr& b) {
  const size_t rank_a = a.tensor_type().shape.size(), rank_b = b.tensor_type().shape.size();
  if (rank_a == 0 || rank_b == 0) node.malformed("a scalar has no matrix product");
  if (rank_b == 1) {
    const Expr y = node.call("nn.dense", {rank_a == 1 ? op::expand_dims(a, 0) : a, op::expand_dims(b, 0)});
    return op::squeeze(y, rank_a == 1 ? ir::Ints{0, 1} : ir::Ints{-1});
  }
  if (rank_a == 1) {
    const Expr y = matrix_product(node, op::expand_dims(a, 0), b);
    return op::squeeze(y, ir::Ints{-2});
  }
  if (rank_b == 2) {
    if (b.as<ir::Constant>()) return node.call("nn.dense", {a, op::transpose(b, ir::Ints{1, 0})});
    return node.call("nn.matmul", {a, b});
  }
  const Shape shape_a = a.tensor_type().shape, shape_b = b.tensor_type().shape;
  const Shape batch = broadcast(Shape(shape_a.begin(), shape_a.end() - 2), Shape(shape_b.begin(), shape_b.end() - 2));
  const Expr y = node.call("nn.batch_matmul", {as_batch(a, batch), as_batch(b, batch)},
                           {{"transpose_a", false}, {"transpose_b", false}});
  if (batch.size() == 1) return y;
  Shape out = batch;
  out.push_back(shape_a[shape_a.size() - 2]);
  out.push_back(shape_b.back());
  return op::reshape_to(y, out);
}

void add_matrix_rules(RuleTable& table) {
  table.add("Gemm", {7, 9, 11, 13}, gemm_rule);
  table.add("MatMul", {1, 9, 13}, matmul_rule);
  table.add("Einsum", {12, 28}, einsum_rule);
}

}  // namespace treadle::onnx
