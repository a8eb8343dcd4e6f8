// SPDX-License-Identifier: Apache-2.0
#include "op/tensor/mask.h"

#include "op/relations.h"

namespace treadle::op {
namespace {

void require_integer(const ir::Relation& relation, size_t i) {
  const TensorType* x = relation.tensor(i);
  if (x && !x->dtype.is_integer())
    fail(ErrorCode::TypeMismatch, "input {} is {}, it must be an integer", i, to_string(x->dtype));
}

// ---- sequence_mask, reverse_sequence ----

void mask_relation(ir::Relation& relation) {
  require_integer(relation, 1);
  require_rank(relation, 1, 1);
  const TensorType *x = relation.tensor(0), *lengths = relation.tensor(1);
  if (!x) return;
  if (x->shape.size() < 2)
    fail(ErrorCode::TypeMismatch, "input has shape {}, time and batch need two axes", to_string(x->shape));
  const Dim& batch = x->shape[1 - relation.attrs<SequenceMaskAttrs>().axis];
  if (lengths && !assume_equal(lengths->shape[0], batch))
    fail(ErrorCode::TypeMismatch, "{} lengths for a batch of {}", to_string(lengths->shape[0]), to_string(batch));
  relation.set_output(relation.input(0));
}

std::vector<loop::Tensor> mask_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const auto& attrs = attrs_of<SequenceMaskAttrs>(call);
  const loop::Tensor& x = inputs[0];
  const loop::Expr mask = saturated_constant(attrs.mask_value, x.dtype());
  return {loop::compute("sequence_mask", x.shape(), [&](const std::vector<loop::Var>& axes) {
    const loop::Expr length = loop::cast(inputs[1](axes[1 - attrs.axis]), dtype::int64_);
    return loop::select(axes[attrs.axis] < length, x(to_indices(axes)), mask);
  })};
}

void reverse_relation(ir::Relation& relation) {
  require_integer(relation, 1);
  require_rank(relation, 1, 1);
  const TensorType *x = relation.tensor(0), *lengths = relation.tensor(1);
  if (!x) return;
  const auto& attrs = relation.attrs<ReverseSequenceAttrs>();
  const int64_t axis = normalise_axis(attrs.seq_axis, x->shape.size(), "seq_axis");
  const int64_t batch_axis = normalise_axis(attrs.batch_axis, x->shape.size(), "batch_axis");
  if (axis == batch_axis) fail(ErrorCode::TypeAttribute, "seq_axis and batch_axis are both {}", axis);
  const Dim& batch = x->shape[batch_axis];
  if (lengths && !assume_equal(lengths->shape[0], batch))
    fail(ErrorCode::TypeMismatch, "{} lengths for a batch of {}", to_string(lengths->shape[0]), to_string(batch));
  relation.set_output(relation.input(0));
}

std::vector<loop::Tensor> reverse_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const auto& attrs = attrs_of<ReverseSequenceAttrs>(call);
  const loop::Tensor& x = inputs[0];
  const int64_t axis = normalise_axis(attrs.seq_axis, x.rank()), batch = normalise_axis(attrs.batch_axis, x.rank());
  return {loop::compute("reverse_sequence", x.shape(), [&](const std::vector<loop::Var>& axes) {
    const loop::Expr length = loop::min(loop::cast(inputs[1](axes[batch]), dtype::int64_), x.shape(axis));
    Indices index = to_indices(axes);
    index[axis] = loop::select(axes[axis] < length, length - loop::int_imm(1) - axes[axis], loop::Expr(axes[axis]));
    return x(index);
  })};
}

// ---- matrix_set_diag, trilu ----

void diagonal_relation(ir::Relation& relation) {
  require_same_dtype(relation, 0, 1);
  const TensorType *x = relation.tensor(0), *diagonal = relation.tensor(1);
  const auto& attrs = relation.attrs<MatrixSetDiagAttrs>();
  if (attrs.k1 > attrs.k2) fail(ErrorCode::TypeAttribute, "k1 {} is above k2 {}", attrs.k1, attrs.k2);
  if (!x) return;
  const size_t rank = x->shape.size();
  if (rank < 2) fail(ErrorCode::TypeMismatch, "input has shape {}, it must be matrices", to_string(x->shape));
  const Dim rows = x->shape[rank - 2] + Dim(std::min<int64_t>(attrs.k2, 0)),
            columns = x->shape[rank - 1] - Dim(std::max<int64_t>(attrs.k1, 0));
  Shape expected(x->shape.begin(), x->shape.end() - 2);
  if (attrs.k1 != attrs.k2) expected.push_back(attrs.k2 - attrs.k1 + 1);
  expected.push_back(min(rows, columns));
  if (expected.back().is_const() && expected.back().value() <= 0)
    fail(ErrorCode::TypeAttribute, "the diagonals {} to {} lie outside of {}", attrs.k1, attrs.k2, to_string(x->shape));
  if (diagonal && !assume_same_shape(diagonal->shape, expected)) {
    fail(ErrorCode::TypeMismatch, "diagonal has shape {}, expected {}", to_string(diagonal->shape),
         to_string(expected));
  }
  relation.set_output(relation.input(0));
}

std::vector<loop::Tensor> diagonal_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const auto& attrs = attrs_of<MatrixSetDiagAttrs>(call);
  const loop::Tensor &x = inputs[0], &diagonal = inputs[1];
  const size_t rank = x.rank();
  const loop::Expr zero = loop::int_imm(0), low = loop::int_imm(attrs.k1), high = loop::int_imm(attrs.k2);
  const loop::Expr longest = diagonal.shape(diagonal.rank() - 1);
  return {loop::compute("matrix_set_diag", x.shape(), [&](const std::vector<loop::Var>& axes) {
    const loop::Expr row = axes[rank - 2], column = axes[rank - 1], k = column - row;
    const loop::Expr length = loop::min(x.shape(rank - 2) + loop::min(k, zero), x.shape(rank - 1) - loop::max(k, zero));
    const loop::Expr shift = longest - length;
    const loop::Expr above = attrs.super_diag_right_align ? shift : zero,
                     below = attrs.sub_diag_right_align ? shift : zero;
    Indices source(axes.begin(), axes.end() - 2);
    if (attrs.k1 != attrs.k2) source.push_back(high - k);
    source.push_back(loop::min(row, column) + loop::select(k >= zero, above, below));
    return loop::select(k >= low && k <= high, diagonal(source), x(to_indices(axes)));
  })};
}

void trilu_relation(ir::Relation& relation) {
  require_integer(relation, 1);
  require_rank(relation, 1, 0);
  const TensorType* x = relation.tensor(0);
  if (!x) return;
  if (x->shape.size() < 2)
    fail(ErrorCode::TypeMismatch, "input has shape {}, it must be matrices", to_string(x->shape));
  relation.set_output(relation.input(0));
}

std::vector<loop::Tensor> trilu_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const bool upper = attrs_of<TriluAttrs>(call).upper;
  const loop::Tensor& x = inputs[0];
  return {loop::compute("trilu", x.shape(), [&](const std::vector<loop::Var>& axes) {
    const loop::Expr k = loop::cast(inputs[1](Indices{}), dtype::int64_),
                     distance = axes[x.rank() - 1] - axes[x.rank() - 2];
    return loop::select(upper ? distance >= k : distance <= k, x(to_indices(axes)), loop::constant(0, x.dtype()));
  })};
}

}  // namespace

ir::Expr trilu(ir::Expr x, ir::Expr k, bool upper) {
  auto attrs = TriluAttrs::defaults();
  attrs->upper = upper;
  return call_op("trilu", {std::move(x), std::move(k)}, std::move(attrs));
}

void register_tensor_mask(ir::OpRegistry& registry) {
  using ir::FusionKind;
  registry.add<SequenceMaskAttrs>("sequence_mask", "tensor/mask")
      .summary("Positions behind each sequence's length replaced by one value.")
      .source("Relay 0.16")
      .input("x", "time and batch as the first two axes")
      .input("valid_length", "(batch) integers")
      .fusion(FusionKind::Injective)
      .relation(mask_relation)
      .compute(mask_compute);
  registry.add<ReverseSequenceAttrs>("reverse_sequence", "tensor/mask")
      .summary("The leading part of each sequence turned around.")
      .source("Relay 0.16")
      .input("x", "any shape and dtype")
      .input("seq_lengths", "(batch) integers")
      .fusion(FusionKind::Injective)
      .relation(reverse_relation)
      .compute(reverse_compute);
  registry.add<MatrixSetDiagAttrs>("matrix_set_diag", "tensor/mask")
      .summary("Matrices with some diagonals replaced.")
      .source("TensorFlow MatrixSetDiagV3")
      .input("x", "(…, rows, columns)")
      .input("diagonal", "(…, diagonals, longest), or (…, longest) for one")
      .fusion(FusionKind::Injective)
      .relation(diagonal_relation)
      .compute(diagonal_compute);
  registry.add<TriluAttrs>("trilu", "tensor/mask")
      .summary("The upper or lower triangle of matrices, 0 elsewhere.")
      .formula("y[i, j] = j - i >= k ? x[i, j] : 0; lower: j - i <= k")
      .source("Relay 0.16; ONNX Trilu")
      .input("x", "(…, rows, columns)")
      .input("k", "0-d integer")
      .fusion(FusionKind::Elementwise)
      .relation(trilu_relation)
      .compute(trilu_compute);
}

}  // namespace treadle::op
