// SPDX-License-Identifier: Apache-2.0
// What each scalar operation of the loop IR means, for every dtype: the one place that constant folding and the
// interpreter ask.
#pragma once

#include <cstdint>

#include "loop/expr.h"

namespace treadle::loop {

// One value of any dtype: `f` for floats (the value, exact in the dtype), `i` for the others (sign- or zero-extended
// from the dtype's width; uint64: the bits; bool: 0 or 1).
union Scalar {
  int64_t i;
  double f;
};

inline Scalar int_scalar(int64_t value) {
  Scalar s;
  s.i = value;
  return s;
}
inline Scalar float_scalar(double value) {
  Scalar s;
  s.f = value;
  return s;
}

// Unused arguments are ignored.
using ScalarFn = Scalar (*)(Scalar a, Scalar b, Scalar c);

// Null when the operation does not exist for the dtype (arithmetic on bool, shifts of floats, …).
ScalarFn binary_function(BinaryOp op, DType dtype);
ScalarFn not_function(DType dtype);
ScalarFn intrinsic_function(Intrinsic function, DType dtype);
ScalarFn cast_function(DType from, DType to);
// Both of the same width.
ScalarFn reinterpret_function(DType from, DType to);

// The dtype of an operation's result.
DType result_dtype(BinaryOp op, DType operands);
DType result_dtype(Intrinsic function, DType operands);
int arity(Intrinsic function);
// The binary operator that combines two values in this reduction.
BinaryOp combiner(ReduceOp op);
bool is_comparison(BinaryOp op);

// Element `index` of dense memory.
Scalar read_element(DType dtype, const void* data, int64_t index);
void write_element(DType dtype, void* data, int64_t index, Scalar value);

// `value` brought into the range of `dtype`: integers wrap, floats round to nearest even.
int64_t wrap(int64_t value, DType dtype);
double round_to(double value, DType dtype);

}  // namespace treadle::loop
