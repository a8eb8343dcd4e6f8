// SPDX-License-Identifier: Apache-2.0
// The operator that CONTRIBUTING.md adds as an example.
//
//   y = x - bias where x > lambd,  x + bias where x < -lambd,  0 elsewhere (so of NaN too)
//   x  any shape, float      y  as x
// Source: ONNX Shrink, opset 9.
#pragma once

#include "ir/op.h"

namespace treadle::op {

struct ShrinkAttrs : ir::AttrsOf<ShrinkAttrs> {
  double lambd, bias;

  template <typename F>
  static void fields(F& field) {
    field(&ShrinkAttrs::lambd, "lambd", 0.5, "half the width of the band that becomes 0").at_least(0);
    field(&ShrinkAttrs::bias, "bias", 0.0, "what is taken from the magnitude outside of the band");
  }
};

// Errors: TypeMismatch when x is no float tensor.
ir::Expr shrink(ir::Expr x, double lambd, double bias);

void register_example_shrink(ir::OpRegistry& registry);

}  // namespace treadle::op
