// SPDX-License-Identifier: Apache-2.0
// nn.softmax, nn.log_softmax, nn.fast_softmax along one axis, shifted by the maximum so that no exponential overflows.
//
//   softmax      y = exp(x - max) / sum(exp(x - max))
//   log_softmax  y = x - max - log(sum(exp(x - max)))
// fast_softmax is Relay's name of an approximation; here it is as accurate as softmax. x any shape of at least one
// axis, float; y as x; 16-bit floats are computed in float32. Source: Relay 0.16.
#pragma once

#include "ir/expr.h"

namespace treadle::op {

struct SoftmaxAttrs : ir::AttrsOf<SoftmaxAttrs> {
  int64_t axis;

  template <typename F>
  static void fields(F& field) {
    field(&SoftmaxAttrs::axis, "axis", -1, "axis along which the exponentials sum to 1");
  }
};

// Errors: TypeMismatch when x is no float tensor; TypeAttribute when the axis is out of range.
ir::Expr softmax(ir::Expr x, int64_t axis = -1, Span span = nullptr);
ir::Expr log_softmax(ir::Expr x, int64_t axis = -1, Span span = nullptr);

}  // namespace treadle::op
