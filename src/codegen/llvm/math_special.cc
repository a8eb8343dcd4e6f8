// SPDX-License-Identifier: Apache-2.0
// Hyperbolic functions and their inverses, the error function, powers.
#include <llvm/IR/Intrinsics.h>

#include <limits>

#include "codegen/llvm/math.h"
#include "codegen/llvm/math_tables.inc"

namespace treadle::codegen {

// With h = exp(|x|) / 2: h ± 1 / (4 h); sinh below 1 by its own polynomial.
Value* Math::sinh_or_cosh(Value* x, bool cosine) {
  Value* magnitude = absolute(x);
  Value* h = exp(magnitude, -1);
  Value* inverse = b_.CreateFDiv(constant(x, 0.25), h);
  if (cosine) return b_.CreateFAdd(h, inverse);
  Value* z = b_.CreateFMul(x, x);
  Value* small = fma(b_.CreateFMul(magnitude, z), polynomial(kSinhDouble, z), magnitude);
  Value* is_small = b_.CreateFCmpOLT(magnitude, constant(x, 1));
  return copy_sign(b_.CreateSelect(is_small, small, b_.CreateFSub(h, inverse)), x);
}

// log(|x| + sqrt(x^2 + 1)) = log1p(|x| + x^2 / (1 + sqrt(x^2 + 1))); from 2^28 on log(2 |x|).
Value* Math::asinh(Value* x) {
  Value* magnitude = absolute(x);
  Value* one = constant(x, 1);
  Value* square = b_.CreateFMul(x, x);
  Value* root = b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, b_.CreateFAdd(square, one));
  Value* near = b_.CreateFAdd(magnitude, b_.CreateFDiv(square, b_.CreateFAdd(one, root)));
  Value* large = b_.CreateFCmpOGT(magnitude, constant(x, 0x1p28));
  Value* result = log1p(b_.CreateSelect(large, b_.CreateFSub(magnitude, one), near));
  Value* shifted = b_.CreateFAdd(result, constant(x, kLn2Double[0] + kLn2Double[1]));
  return copy_sign(b_.CreateSelect(large, shifted, result), x);
}

// With t = x - 1: log1p(t + sqrt(2 t + t^2)).
Value* Math::acosh(Value* x) {
  Value* one = constant(x, 1);
  Value* t = b_.CreateFSub(x, one);
  Value* root = b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, fma(t, t, b_.CreateFAdd(t, t)));
  Value* large = b_.CreateFCmpOGT(x, constant(x, 0x1p28));
  Value* result = log1p(b_.CreateSelect(large, t, b_.CreateFAdd(t, root)));
  Value* shifted = b_.CreateFAdd(result, constant(x, kLn2Double[0] + kLn2Double[1]));
  Value* defined = b_.CreateFCmpOGE(x, one);
  return b_.CreateSelect(defined, b_.CreateSelect(large, shifted, result), llvm::ConstantFP::getNaN(x->getType()));
}

// log1p(2 x / (1 - x)) / 2.
Value* Math::atanh(Value* x) {
  Value* magnitude = absolute(x);
  Value* ratio = b_.CreateFDiv(b_.CreateFAdd(magnitude, magnitude), b_.CreateFSub(constant(x, 1), magnitude));
  Value* result = b_.CreateFMul(log1p(ratio), constant(x, 0.5));
  return copy_sign(result, x);
}

// |x| < 1: x + x P(x^2). Above, 1 - erfc: float32 exp(-x Q(x)), float64 exp(-x^2) G(u), u = (x - 2.5) / (x + 2.5).
Value* Math::erf(Value* x) {
  const bool wide = is_double(x);
  Value* magnitude = at_most(absolute(x), wide ? 6 : 3.95);
  Value* square = b_.CreateFMul(magnitude, magnitude);
  Value* small = fma(magnitude, wide ? polynomial(kErfDouble, square) : polynomial(kErfFloat, square), magnitude);
  Value* exponent = wide ? square : b_.CreateFMul(magnitude, polynomial(kErfTailFloat, magnitude));
  const ExpParts parts = exp_parts(b_.CreateFNeg(exponent));
  // 2^n: n is at least -52, so one factor is enough.
  Value* word = bits(parts.shifted);
  Value* biased = b_.CreateSub(word, integer(word, wide ? 0x4338000000000000u - 1023 : 0x4b400000u - 127));
  Value* power = from_bits(b_.CreateShl(biased, integer(word, wide ? 52 : 23)));
  Value* complement = fma(power, parts.m, power);
  if (wide) {
    Value* middle = constant(x, 2.5);
    Value* u = b_.CreateFDiv(b_.CreateFSub(magnitude, middle), b_.CreateFAdd(magnitude, middle));
    complement = b_.CreateFMul(complement, polynomial(kErfcDouble, u));
  }
  Value* is_small = b_.CreateFCmpOLT(magnitude, constant(x, 1));
  return copy_sign(b_.CreateSelect(is_small, small, b_.CreateFSub(constant(x, 1), complement)), x);
}

// log(x) to about 2^-66 for normal and subnormal x: 2 s + 2/3 s^3 in pairs, the rest of the series plain.
Math::Pair Math::log_pair(Value* x) {
  const LogParts parts = log_parts(x);
  Value* f = parts.f;
  const Pair denominator = two_sum(constant(x, 2), f);
  Value* s = b_.CreateFDiv(f, denominator.high);
  const Pair back = two_product(s, denominator.high);
  Value* rest = b_.CreateFSub(b_.CreateFSub(b_.CreateFSub(f, back.high), back.low), b_.CreateFMul(s, denominator.low));
  Value* s_low = b_.CreateFDiv(rest, denominator.high);
  const Pair z = two_product(s, s);
  Value* z_low = fma(b_.CreateFAdd(s, s), s_low, z.low);
  const Pair cube = two_product(z.high, s);
  Value* cube_low = fma(z.high, s_low, fma(z_low, s, cube.low));
  const double two_thirds = 2.0 / 3.0, two_thirds_low = 0x1.5555555555555p-55;  // 2/3 minus its float64
  const Pair third = two_product(cube.high, constant(x, two_thirds));
  Value* third_low = fma(cube.high, constant(x, two_thirds_low), fma(cube_low, constant(x, two_thirds), third.low));
  Value* series = b_.CreateFMul(b_.CreateFMul(cube.high, z.high), polynomial(kPowDouble, z.high));
  Value* twice = b_.CreateFAdd(s, s);
  const Pair head = two_sum(twice, third.high);
  Value* low = b_.CreateFAdd(b_.CreateFAdd(head.low, b_.CreateFAdd(s_low, s_low)), b_.CreateFAdd(third_low, series));
  // e log(2): the high part is exact.
  const Pair sum = two_sum(b_.CreateFMul(parts.e, constant(x, kLn2Double[0])), head.high);
  low = b_.CreateFAdd(b_.CreateFAdd(sum.low, low), b_.CreateFMul(parts.e, constant(x, kLn2Double[1])));
  const Pair result = two_sum(sum.high, low);
  return result;
}

// x^y for finite x > 0 and finite y.
Value* Math::positive_power(Value* x, Value* y) {
  const Pair logarithm = log_pair(x);
  const Pair product = two_product(y, logarithm.high);
  Value* low = fma(y, logarithm.low, product.low);
  Value* high = at_most(at_least(product.high, -746), 711);
  Value* inside = b_.CreateFCmpOEQ(high, product.high);
  const ExpParts parts = exp_parts(high);
  Value* base = b_.CreateFAdd(parts.m, constant(x, 1));
  Value* correction = b_.CreateSelect(inside, low, constant(x, 0));
  Value* lost = b_.CreateFSub(parts.m, b_.CreateFSub(base, constant(x, 1)));
  return scale(b_.CreateFAdd(base, fma(base, correction, lost)), parts, 0);
}

// Exponents that models are full of; null for all others.
Value* Math::constant_power(Value* x, double exponent) {
  if (exponent == 0) return constant(x, 1);
  if (exponent == 1) return x;
  if (exponent == -1) return b_.CreateFDiv(constant(x, 1), x);
  if (exponent == 2) return b_.CreateFMul(x, x);
  if (exponent != 0.5) return nullptr;
  // Unlike a square root, the power takes -0 to 0 and -infinity to infinity.
  Value* root = b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, b_.CreateFAdd(x, constant(x, 0)));
  const double infinity = std::numeric_limits<double>::infinity();
  return b_.CreateSelect(b_.CreateFCmpOEQ(x, constant(x, -infinity)), constant(x, infinity), root);
}

// C's Annex F.10.4.4 for zeros, infinities, NaN and negative bases. float32 is computed in float64.
Value* Math::pow(Value* x, Value* y) {
  if (auto* fixed = llvm::dyn_cast<llvm::Constant>(y)) {
    if (fixed->getType()->isVectorTy()) fixed = fixed->getSplatValue();
    if (const auto* number = llvm::dyn_cast_or_null<llvm::ConstantFP>(fixed)) {
      llvm::APFloat exponent = number->getValueAPF();
      bool inexact = false;
      exponent.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &inexact);
      if (Value* simple = constant_power(x, exponent.convertToDouble())) return simple;
    }
  }
  const double infinity = std::numeric_limits<double>::infinity();
  llvm::Type* narrow = is_double(x) ? nullptr : x->getType();
  if (narrow != nullptr) {
    llvm::Type* wide = with_element(x, b_.getDoubleTy());
    x = b_.CreateFPExt(x, wide);
    y = b_.CreateFPExt(y, wide);
  }
  Value *zero = constant(x, 0), *one = constant(x, 1), *infinite = constant(x, infinity);
  Value* base = absolute(x);
  // Zero, infinite and NaN operands: exp(y log x) without tricks gives what is wanted.
  Value* plain = exp(b_.CreateFMul(y, log(base)));
  Value* result = plain;
  if (narrow == nullptr) {
    Value* ordinary = b_.CreateAnd(b_.CreateFCmpOGT(base, zero), b_.CreateFCmpOLT(base, infinite));
    ordinary = b_.CreateAnd(ordinary, b_.CreateFCmpOLT(absolute(y), constant(x, 0x1p80)));
    result = b_.CreateSelect(ordinary, positive_power(base, y), plain);
  }
  Value* whole = b_.CreateFCmpOEQ(rounded(loop::Intrinsic::Trunc, y), y);
  Value* half = b_.CreateFMul(y, constant(x, 0.5));
  Value* odd = b_.CreateAnd(whole, b_.CreateFCmpONE(rounded(loop::Intrinsic::Trunc, half), half));
  Value* word = bits(x);
  Value* negative = b_.CreateICmpSLT(word, integer(word, 0));
  result = b_.CreateSelect(b_.CreateAnd(negative, odd), b_.CreateFNeg(result), result);
  Value* below_zero = b_.CreateAnd(b_.CreateFCmpOLT(x, zero), b_.CreateFCmpOGT(x, constant(x, -infinity)));
  Value* undefined = b_.CreateAnd(below_zero, b_.CreateNot(whole));
  result = b_.CreateSelect(undefined, llvm::ConstantFP::getNaN(x->getType()), result);
  Value* one_of_minus_one = b_.CreateAnd(b_.CreateFCmpOEQ(base, one), b_.CreateFCmpOEQ(absolute(y), infinite));
  Value* is_one = b_.CreateOr(b_.CreateFCmpOEQ(x, one), b_.CreateFCmpOEQ(y, zero));
  result = b_.CreateSelect(b_.CreateOr(is_one, one_of_minus_one), one, result);
  return narrow == nullptr ? result : b_.CreateFPTrunc(result, narrow);
}

}  // namespace treadle::codegen
