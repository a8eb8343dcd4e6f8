// SPDX-License-Identifier: Apache-2.0
// nn.relu, nn.leaky_relu, nn.prelu. y has x's shape and dtype; NaN stays NaN.
//
//   relu        y = max(x, 0)
//   leaky_relu  y = x where x > 0, alpha*x elsewhere; float
//   prelu       the same with one alpha for each position along `axis`; float
// Source: Relay 0.16. leaky_relu's default is that of Relay's text format, 0.25; its Python function has 0.01.
#pragma once

#include "ir/expr.h"

namespace treadle::op {

struct LeakyReluAttrs : ir::AttrsOf<LeakyReluAttrs> {
  double alpha;

  template <typename F>
  static void fields(F& field) {
    field(&LeakyReluAttrs::alpha, "alpha", 0.25, "slope for negative values");
  }
};

struct PReluAttrs : ir::AttrsOf<PReluAttrs> {
  int64_t axis;

  template <typename F>
  static void fields(F& field) {
    field(&PReluAttrs::axis, "axis", 1, "axis of the data that alpha belongs to");
  }
};

// Errors of all: TypeMismatch, TypeAttribute as the type relations find.
ir::Expr relu(ir::Expr x, Span span = nullptr);
ir::Expr leaky_relu(ir::Expr x, double alpha, Span span = nullptr);
ir::Expr prelu(ir::Expr x, ir::Expr alpha, int64_t axis = 1, Span span = nullptr);

}  // namespace treadle::op
