// SPDX-License-Identifier: Apache-2.0
// Trigonometric functions and their inverses.
//
// x = n pi/2 + r: pi/2 is taken in parts of 53 bits with a fused multiply-add and of 33 bits without (W. Cody and W.
// Waite, Software Manual for the Elementary Functions, 1980). The reduction is right for |x| < 2^30 with a fused
// multiply-add and for |x| < 10^6 without; results for larger |x| are within [-1, 1] but mean nothing. float32 is
// reduced in float64.
#include <llvm/IR/Intrinsics.h>

#include "codegen/llvm/math.h"
#include "codegen/llvm/math_tables.inc"

namespace treadle::codegen {

Math::Quadrant Math::quadrant(Value* x) {
  Value* magic = constant(x, 0x1.8p52);
  Value* shifted = fma(x, constant(x, 0x1.45f306dc9c883p-1), magic);  // 2/pi
  Value* n = b_.CreateFSub(shifted, magic);
  Value* minus_n = b_.CreateFNeg(n);
  Value* r = x;
  Value* before = nullptr;
  Value* step = nullptr;
  const std::span<const double> parts =
      features_.fma ? std::span<const double>(kHalfPi) : std::span<const double>(kHalfPiShort);
  for (size_t k = 0; k < parts.size(); ++k) {
    before = r;
    step = constant(x, parts[k]);
    r = fma(minus_n, step, r);
  }
  // What the last subtraction lost, to first order.
  Value* low = fma(minus_n, step, b_.CreateFSub(before, r));
  return {r, low, bits(shifted)};
}

// For |r| <= pi/4 and a small r_low (null: none).
void Math::sin_and_cos(Value* r, Value* r_low, Value*& sine, Value*& cosine) {
  const bool wide = is_double(r);
  Value* z = b_.CreateFMul(r, r);
  Value* odd = wide ? polynomial(kSinDouble, z) : polynomial(kSinFloat, z);
  Value* even = wide ? polynomial(kCosDouble, z) : polynomial(kCosFloat, z);
  Value* cube = b_.CreateFMul(z, r);
  sine = fma(cube, odd, r);
  Value* half = b_.CreateFMul(z, constant(r, 0.5));
  Value* near_one = b_.CreateFSub(constant(r, 1), half);
  Value* lost = b_.CreateFSub(b_.CreateFSub(constant(r, 1), near_one), half);
  Value* tail = fma(b_.CreateFMul(z, z), even, lost);
  if (r_low != nullptr) {
    sine = b_.CreateFAdd(fma(cube, odd, r_low), r);
    tail = b_.CreateFSub(tail, b_.CreateFMul(r, r_low));
  }
  cosine = b_.CreateFAdd(near_one, tail);
}

Value* Math::sin_or_cos(Value* x, bool cosine) {
  const bool wide = is_double(x);
  Value* argument = wide ? x : b_.CreateFPExt(x, with_element(x, b_.getDoubleTy()));
  const Quadrant place = quadrant(argument);
  Value *s = nullptr, *c = nullptr, *number = place.number;
  if (wide) {
    sin_and_cos(place.r, place.r_low, s, c);
  } else {
    sin_and_cos(b_.CreateFPTrunc(place.r, x->getType()), nullptr, s, c);
    number = b_.CreateTrunc(number, with_element(x, b_.getInt32Ty()));
  }
  if (cosine) number = b_.CreateAdd(number, integer(number, 1));
  Value* odd = b_.CreateICmpNE(b_.CreateAnd(number, integer(number, 1)), integer(number, 0));
  Value* chosen = b_.CreateSelect(odd, c, s);
  Value* sign = b_.CreateShl(b_.CreateAnd(number, integer(number, 2)), integer(number, wide ? 62 : 30));
  return from_bits(b_.CreateXor(bits(chosen), sign));
}

Value* Math::tan(Value* x) {
  const Quadrant place = quadrant(x);
  Value *s = nullptr, *c = nullptr;
  sin_and_cos(place.r, place.r_low, s, c);
  Value* odd = b_.CreateICmpNE(b_.CreateAnd(place.number, integer(place.number, 1)), integer(place.number, 0));
  return b_.CreateFDiv(b_.CreateSelect(odd, b_.CreateFNeg(c), s), b_.CreateSelect(odd, s, c));
}

// asin x = x + x^3 P(x^2) up to 1/2; above, pi/2 - 2 asin sqrt((1 - x) / 2).
Value* Math::asin(Value* x) {
  Value* magnitude = absolute(x);
  Value* big = b_.CreateFCmpOGT(magnitude, constant(x, 0.5));
  Value* half = b_.CreateFMul(b_.CreateFSub(constant(x, 1), magnitude), constant(x, 0.5));
  Value* z = b_.CreateSelect(big, half, b_.CreateFMul(x, x));
  Value* s = b_.CreateSelect(big, b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, half), magnitude);
  Value* angle = fma(b_.CreateFMul(s, z), polynomial(kAsinDouble, z), s);
  Value* doubled = b_.CreateFAdd(angle, angle);
  Value* folded = b_.CreateFSub(constant(x, kHalfPi[0]), b_.CreateFSub(doubled, constant(x, kHalfPi[1])));
  return copy_sign(b_.CreateSelect(big, folded, angle), x);
}

Value* Math::acos(Value* x) {
  Value* magnitude = absolute(x);
  Value* big = b_.CreateFCmpOGT(magnitude, constant(x, 0.5));
  Value* half = b_.CreateFMul(b_.CreateFSub(constant(x, 1), magnitude), constant(x, 0.5));
  Value* z = b_.CreateSelect(big, half, b_.CreateFMul(x, x));
  Value* s = b_.CreateSelect(big, b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, half), x);
  Value* angle = fma(b_.CreateFMul(s, z), polynomial(kAsinDouble, z), s);
  Value* doubled = b_.CreateFAdd(angle, angle);
  Value* middle = b_.CreateFSub(constant(x, kHalfPi[0]), b_.CreateFSub(angle, constant(x, kHalfPi[1])));
  Value* negative = b_.CreateFSub(constant(x, 2 * kHalfPi[0]), b_.CreateFSub(doubled, constant(x, 2 * kHalfPi[1])));
  Value* outside = b_.CreateSelect(b_.CreateFCmpOLT(x, constant(x, 0)), negative, doubled);
  return b_.CreateSelect(big, outside, middle);
}

// atan |x| = c + atan t: t = x, (x - 1) / (x + 1) or -1 / x by the size of x, so that |t| <= tan(pi/8).
Value* Math::atan(Value* x) {
  Value* magnitude = absolute(x);
  Value* beyond_first = b_.CreateFCmpOGT(magnitude, constant(x, 0x1.a827999fcef32p-2));   // tan(pi/8)
  Value* beyond_second = b_.CreateFCmpOGT(magnitude, constant(x, 0x1.3504f333f9de6p+1));  // tan(3 pi/8)
  Value* one = constant(x, 1);
  const auto choose = [&](Value* small, Value* middle, Value* large) {
    return b_.CreateSelect(beyond_second, large, b_.CreateSelect(beyond_first, middle, small));
  };
  Value* top = choose(magnitude, b_.CreateFSub(magnitude, one), constant(x, -1));
  Value* bottom = choose(one, b_.CreateFAdd(magnitude, one), magnitude);
  Value* t = b_.CreateFDiv(top, bottom);
  Value* z = b_.CreateFMul(t, t);
  Value* zero = constant(x, 0);
  Value* low = choose(zero, constant(x, kHalfPi[1] / 2), constant(x, kHalfPi[1]));
  Value* high = choose(zero, constant(x, kHalfPi[0] / 2), constant(x, kHalfPi[0]));
  Value* rest = fma(b_.CreateFMul(z, t), polynomial(kAtanDouble, z), low);
  return copy_sign(b_.CreateFAdd(high, b_.CreateFAdd(rest, t)), x);
}

}  // namespace treadle::codegen
