// SPDX-License-Identifier: Apache-2.0
// Functions of float32 and float64 as LLVM instructions, for scalars and vectors of any width, without branches and
// without calls of a mathematics library. Subnormal numbers are kept; infinities and NaN follow C's Annex F. Tables:
// tools/derive_math.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <span>
#include <vector>

#include "codegen/llvm/machine.h"
#include "loop/expr.h"

namespace treadle::codegen {

using llvm::Value;

class Math {
 public:
  Math(llvm::IRBuilder<>& builder, llvm::Module& module, const Features& features)
      : b_(builder), module_(module), features_(features) {}

  // `args`: all float32 or all float64, of the same lanes; `is…` give bool. The bounds of the error stand beside each
  // function below, in units in the last place for float32 / float64, and math_test.cc measures them.
  Value* call(loop::Intrinsic function, const std::vector<Value*>& args);

 private:
  // A number as an unevaluated sum of two.
  struct Pair {
    Value* high;
    Value* low;
  };
  // exp(x) = 2^n (1 + m): m is small, n an integer as a float, and in the low bits of `shifted`.
  struct ExpParts {
    Value* m;
    Value* n;
    Value* shifted;
  };
  // log(x) = e log(2) + f + rest: f = significand - 1.
  struct LogParts {
    Value* e;
    Value* f;
    Value* rest;
  };

  // ---- math.cc: building blocks, exponentials, logarithms ----
  Value* constant(const Value* like, double value) { return llvm::ConstantFP::get(like->getType(), value); }
  Value* integer(const Value* like, uint64_t value) { return llvm::ConstantInt::get(like->getType(), value); }
  static bool is_double(const Value* x) { return x->getType()->getScalarType()->isDoubleTy(); }
  llvm::Type* with_element(const Value* like, llvm::Type* element);
  Value* bits(Value* x);
  Value* from_bits(Value* x);
  Value* fma(Value* a, Value* b, Value* c);  // one rounding where the hardware has it, else two
  Value* polynomial(std::span<const double> coefficients, Value* t);
  Value* absolute(Value* x) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); }
  Value* copy_sign(Value* magnitude, Value* sign);
  Value* at_least(Value* x, double low);  // NaN stays NaN
  Value* at_most(Value* x, double high);
  Value* widened(loop::Intrinsic function, const std::vector<Value*>& args);  // computed in float64
  Pair two_sum(Value* a, Value* b);
  Pair two_product(Value* a, Value* b);

  Value* fused(Value* a, Value* b, Value* c);  // exact a*b + c, one rounding, on any target
  Value* odd_sum(Value* a, Value* b);
  Value* rounded(loop::Intrinsic function, Value* x);
  ExpParts exp_parts(Value* x);
  Value* scale(Value* x, const ExpParts& parts, int shift);  // x * 2^(n + shift)
  Value* exp(Value* x, int shift = 0);                       // exp(x) * 2^shift: 1 / 1
  Value* expm1_positive(Value* x);                           // 0 <= x <= 60
  LogParts log_parts(Value* x);
  Value* log_special(Value* x, Value* regular);
  Value* log(Value* x);      // 1 / 1
  Value* log2(Value* x);     // 2 / 2
  Value* log10(Value* x);    // 2 / 2
  Value* log1p(Value* x);    // x > -1
  Value* sigmoid(Value* x);  // 2.5 / 2.5
  Value* tanh(Value* x);     // 2.5 / 2.5

  // ---- math_trigonometry.cc ----
  // The place of x in its quadrant and the quadrant's number; `r` has float64 elements.
  struct Quadrant {
    Value* r;
    Value* r_low;
    Value* number;
  };
  Quadrant quadrant(Value* x);
  Quadrant near_quadrant(Value* x);
  llvm::Function* reduction_function();
  void sin_and_cos(Value* r, Value* r_low, Value*& sine, Value*& cosine);
  Value* sin_or_cos(Value* x, bool cosine);  // 1.5 / 2.5 (1.5 / 1.5 with a fused multiply-add)
  Value* tan(Value* x);                      // 1 / 3
  Value* asin(Value* x);                     // 1 / 2.5
  Value* acos(Value* x);                     // 1 / 2
  Value* atan(Value* x);                     // 1 / 2

  // ---- math_special.cc ----
  Value* sinh_or_cosh(Value* x, bool cosine);  // 1 / 3
  Value* asinh(Value* x);                      // 1 / 3
  Value* acosh(Value* x);                      // 1 / 3
  Value* atanh(Value* x);                      // 1 / 3
  Value* erf(Value* x);                        // 2 / 2
  Value* pow(Value* x, Value* y);              // 1 / 1
  Value* constant_power(Value* x, double exponent);
  Value* positive_power(Value* x, Value* y);
  Pair log_pair(Value* x);

  llvm::IRBuilder<>& b_;
  llvm::Module& module_;
  const Features& features_;
};

}  // namespace treadle::codegen
