// SPDX-License-Identifier: Apache-2.0
// Elementwise operators of one tensor: y has x's shape.
//
//   abs negative sign copy                                      any number dtype, y as x
//   floor ceil trunc round round_even                           any number dtype (integers: themselves), y as x
//   exp fast_exp log log2 log10 sqrt rsqrt sigmoid tanh fast_tanh erf fast_erf
//   sin cos tan asin acos atan sinh cosh asinh acosh atanh      floats, y as x
//   logical_not  bool     bitwise_not  integers and bool        y as x
//   isnan isfinite isinf  any number dtype                      y bool
//   clip cast cast_like reinterpret fixed_point_multiply fixed_point_multiply_per_axis: below
// round takes halves away from zero (as Relay's runtime does), round_even to the even neighbour. fast_exp, fast_tanh
// and fast_erf are names of Relay's approximations; here they are as accurate as the plain ones. Source: Relay 0.16.
#pragma once

#include "ir/expr.h"

namespace treadle::op {

struct ClipAttrs : ir::AttrsOf<ClipAttrs> {
  double a_min, a_max;

  template <typename F>
  static void fields(F& field) {
    field(&ClipAttrs::a_min, "a_min", ir::Required{}, "smallest value of the result");
    field(&ClipAttrs::a_max, "a_max", ir::Required{}, "largest value of the result");
  }
};

struct CastAttrs : ir::AttrsOf<CastAttrs> {
  DType dtype;

  template <typename F>
  static void fields(F& field) {
    field(&CastAttrs::dtype, "dtype", ir::Required{}, "the result's dtype");
  }
};

struct FixedPointMultiplyAttrs : ir::AttrsOf<FixedPointMultiplyAttrs> {
  int64_t multiplier, shift;

  template <typename F>
  static void fields(F& field) {
    field(&FixedPointMultiplyAttrs::multiplier, "multiplier", ir::Required{},
          "the multiplier in Q31: an integer times 2^-31")
        .at_least(-2147483648.0)
        .at_most(2147483647.0);
    field(&FixedPointMultiplyAttrs::shift, "shift", ir::Required{},
          "the power of two beside it; negative: to the right")
        .at_least(-31)
        .at_most(31);
  }
};

struct FixedPointMultiplyPerAxisAttrs : ir::AttrsOf<FixedPointMultiplyPerAxisAttrs> {
  bool is_lshift_required, is_rshift_required;
  ir::Ints axes;

  template <typename F>
  static void fields(F& field) {
    field(&FixedPointMultiplyPerAxisAttrs::is_lshift_required, "is_lshift_required", false,
          "x is shifted left by lshift first");
    field(&FixedPointMultiplyPerAxisAttrs::is_rshift_required, "is_rshift_required", false,
          "the product is shifted right by rshift, beside the 31 places of Q31");
    field(&FixedPointMultiplyPerAxisAttrs::axes, "axes", ir::Ints{}, "the axes of x that the multipliers run along");
  }
};

// y = min(max(x, a_min), a_max); NaN stays. Of integers the bounds are truncated and cut to the dtype's range.
ir::Expr clip(ir::Expr x, double a_min, double a_max);
// Float to integer truncates and saturates; to bool is x != 0; integers wrap. The same dtype: x itself.
ir::Expr cast(ir::Expr x, DType dtype);
// The same bits; dtypes of equal width.
ir::Expr reinterpret(ir::Expr x, DType dtype);

// ---- Activations written with the operators above; they fuse into one kernel. x: float, its type known. ----

// x * P(X <= x): x/2 * (1 + erf(x / sqrt(2))); approximate: x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))).
ir::Expr gelu(ir::Expr x, bool approximate = false);
// x * sigmoid(x)
ir::Expr silu(ir::Expr x);
// max(0, min(1, alpha*x + beta))
ir::Expr hard_sigmoid(ir::Expr x, double alpha = 1.0 / 6, double beta = 0.5);
// x * hard_sigmoid(x, 1/6, 1/2)
ir::Expr hard_swish(ir::Expr x);
// log(1 + exp(x)), without overflow: max(x, 0) + log(1 + exp(-|x|))
ir::Expr softplus(ir::Expr x);

}  // namespace treadle::op
