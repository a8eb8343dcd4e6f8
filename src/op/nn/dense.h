// SPDX-License-Identifier: Apache-2.0
// Products of matrices: nn.dense, nn.matmul, nn.batch_matmul, nn.contrib_dense_pack; and nn.bias_add, nn.batch_flatten.
//
//   nn.dense               y[…, u] = sum over k of x[…, k] * w[u, k]                   x (…, K)   w (U, K)
//   nn.contrib_dense_pack  the same with w (ceil(U/t), K, t), weight_layout "NC{t}n"; rows behind U are padding
//   nn.matmul              y = op(a) * op(b), op transposes the last two axes          a (…, M, K)   b (K, U)
//   nn.batch_matmul        the same for every element of a batch; an extent 1 of the batch stretches
// Sums are formed in out_dtype, for 16-bit floats in float32. Source: Relay 0.16.
#pragma once

#include <optional>

#include "ir/expr.h"

namespace treadle::op {

struct DenseAttrs : ir::AttrsOf<DenseAttrs> {
  std::optional<int64_t> units;
  std::optional<DType> out_dtype;

  template <typename F>
  static void fields(F& field) {
    field(&DenseAttrs::units, "units", std::nullopt, "number of output features; None: as the weight has").at_least(0);
    field(&DenseAttrs::out_dtype, "out_dtype", std::nullopt, "dtype of sums and output; None: as the data's");
  }
};

struct DensePackAttrs : ir::AttrsOf<DensePackAttrs> {
  std::optional<int64_t> units;
  std::optional<DType> out_dtype;
  std::string weight_layout;

  template <typename F>
  static void fields(F& field) {
    field(&DensePackAttrs::units, "units", std::nullopt, "number of output features; None: all rows of the weight")
        .at_least(0);
    field(&DensePackAttrs::out_dtype, "out_dtype", std::nullopt, "dtype of sums and output; None: as the data's");
    field(&DensePackAttrs::weight_layout, "weight_layout", "NC",
          "layout of the weight (U, K): NC8n has blocks of 8 rows");
  }
};

struct MatmulAttrs : ir::AttrsOf<MatmulAttrs> {
  std::optional<int64_t> units;
  std::optional<DType> out_dtype;
  bool transpose_a, transpose_b;

  template <typename F>
  static void fields(F& field) {
    field(&MatmulAttrs::units, "units", std::nullopt, "number of columns of the result; None: as tensor_b has")
        .at_least(0);
    field(&MatmulAttrs::out_dtype, "out_dtype", std::nullopt, "dtype of sums and output; None: as tensor_a's");
    field(&MatmulAttrs::transpose_a, "transpose_a", false, "swap the last two axes of tensor_a");
    field(&MatmulAttrs::transpose_b, "transpose_b", false, "swap the last two axes of tensor_b");
  }
};

struct BatchMatmulAttrs : ir::AttrsOf<BatchMatmulAttrs> {
  std::optional<DType> out_dtype;
  bool transpose_a, transpose_b;

  template <typename F>
  static void fields(F& field) {
    field(&BatchMatmulAttrs::out_dtype, "out_dtype", std::nullopt, "dtype of sums and output; None: as tensor_a's");
    field(&BatchMatmulAttrs::transpose_a, "transpose_a", false, "swap the last two axes of tensor_a");
    field(&BatchMatmulAttrs::transpose_b, "transpose_b", false,
          "swap the last two axes of tensor_b; Python's default is True");
  }
};

struct BiasAddAttrs : ir::AttrsOf<BiasAddAttrs> {
  int64_t axis;

  template <typename F>
  static void fields(F& field) {
    field(&BiasAddAttrs::axis, "axis", 1, "axis of the data that the bias belongs to");
  }
};

// Errors of all: TypeMismatch, TypeAttribute as the type relations find.
ir::Expr dense(ir::Expr data, ir::Expr weight, std::optional<int64_t> units = {}, std::optional<DType> out_dtype = {},
               Span span = nullptr);
ir::Expr matmul(ir::Expr a, ir::Expr b, bool transpose_a = false, bool transpose_b = false, Span span = nullptr);
ir::Expr batch_matmul(ir::Expr a, ir::Expr b, bool transpose_a, bool transpose_b, Span span = nullptr);
ir::Expr bias_add(ir::Expr data, ir::Expr bias, int64_t axis = 1, Span span = nullptr);
ir::Expr batch_flatten(ir::Expr data, Span span = nullptr);

}  // namespace treadle::op
