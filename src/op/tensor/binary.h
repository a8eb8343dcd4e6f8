// SPDX-License-Identifier: Apache-2.0
// Elementwise operators of two tensors, and where. Shapes broadcast as in NumPy (right-aligned, an extent of 1
// stretches); both sides have one dtype.
//
//   add subtract multiply divide floor_divide floor_mod trunc_divide trunc_mod mod power    numbers, y as a
//   maximum minimum                                                     any dtype, y as a; NaN when either is NaN
//   left_shift right_shift                                              integers
//   bitwise_and bitwise_or bitwise_xor                                  integers and bool
//   logical_and logical_or logical_xor                                  bool
//   equal not_equal less less_equal greater greater_equal               any dtype, y bool
//   where(condition, x, y)                                              condition: any dtype, not zero is true
// divide of integers truncates toward zero; mod has the sign of the dividend (floats: C fmod); integers wrap; division
// by the integer 0 gives 0.
// Source: Relay 0.16.
#pragma once

#include "ir/expr.h"

namespace treadle::op {

ir::Expr add(ir::Expr a, ir::Expr b);
ir::Expr subtract(ir::Expr a, ir::Expr b);
ir::Expr multiply(ir::Expr a, ir::Expr b);
ir::Expr divide(ir::Expr a, ir::Expr b);
// The second side as a number of the first's dtype.
ir::Expr add(ir::Expr a, double b);
ir::Expr multiply(ir::Expr a, double b);
ir::Expr where(ir::Expr condition, ir::Expr x, ir::Expr y);

}  // namespace treadle::op
