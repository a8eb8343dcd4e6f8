// SPDX-License-Identifier: Apache-2.0
// Building blocks, rounding, exponentials and logarithms.
//
// exp:  x = n log(2) + r, |r| <= log(2)/2, exp(x) = 2^n (1 + r + r^2 P(r)).
// log:  x = 2^e (1 + f), sqrt(1/2) <= 1 + f < sqrt(2), log(x) = e log(2) + f - f^2/2 + …; float64 by s = f / (2 + f) as
// in
//       P. Tang, Table-driven implementation of the logarithm function (1990), without the table.
#include "codegen/llvm/math.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "base/error.h"
#include "codegen/llvm/math_tables.inc"

namespace treadle::codegen {

using loop::Intrinsic;

llvm::Type* Math::with_element(const Value* like, llvm::Type* element) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(like->getType());
  return vector == nullptr ? element : llvm::FixedVectorType::get(element, vector->getNumElements());
}

Value* Math::bits(Value* x) {
  return b_.CreateBitCast(x, with_element(x, is_double(x) ? b_.getInt64Ty() : b_.getInt32Ty()));
}

Value* Math::from_bits(Value* x) {
  const bool wide = x->getType()->getScalarSizeInBits() == 64;
  return b_.CreateBitCast(x, with_element(x, wide ? b_.getDoubleTy() : b_.getFloatTy()));
}

Value* Math::fma(Value* a, Value* b, Value* c) {
  if (features_.fma) return b_.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
  return b_.CreateFAdd(b_.CreateFMul(a, b), c);
}

Value* Math::polynomial(std::span<const double> coefficients, Value* t) {
  Value* value = constant(t, coefficients.back());
  for (size_t k = coefficients.size() - 1; k-- > 0;) value = fma(value, t, constant(t, coefficients[k]));
  return value;
}

Value* Math::copy_sign(Value* magnitude, Value* sign) {
  return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude, sign);
}

Value* Math::at_least(Value* x, double low) {
  Value* bound = constant(x, low);
  return b_.CreateSelect(b_.CreateFCmpOGT(bound, x), bound, x);
}

Value* Math::at_most(Value* x, double high) {
  Value* bound = constant(x, high);
  return b_.CreateSelect(b_.CreateFCmpOLT(bound, x), bound, x);
}

// D. Knuth, The Art of Computer Programming, vol. 2, 4.2.2.
Math::Pair Math::two_sum(Value* a, Value* b) {
  Value* sum = b_.CreateFAdd(a, b);
  Value* part = b_.CreateFSub(sum, a);
  Value* error = b_.CreateFAdd(b_.CreateFSub(a, b_.CreateFSub(sum, part)), b_.CreateFSub(b, part));
  return {sum, error};
}

// Without a fused multiply-add: T. Dekker, A floating-point technique for extending the available precision (1971).
Math::Pair Math::two_product(Value* a, Value* b) {
  Value* product = b_.CreateFMul(a, b);
  if (features_.fma) return {product, fma(a, b, b_.CreateFNeg(product))};
  const auto halves = [&](Value* x) {
    Value* big = b_.CreateFMul(x, constant(x, is_double(x) ? 0x1p27 + 1 : 0x1p12 + 1));
    Value* high = b_.CreateFSub(big, b_.CreateFSub(big, x));
    return Pair{high, b_.CreateFSub(x, high)};
  };
  const Pair left = halves(a), right = halves(b);
  Value* error = b_.CreateFSub(b_.CreateFMul(left.high, right.high), product);
  error = b_.CreateFAdd(error, b_.CreateFMul(left.high, right.low));
  error = b_.CreateFAdd(error, b_.CreateFMul(left.low, right.high));
  return {product, b_.CreateFAdd(error, b_.CreateFMul(left.low, right.low))};
}

// a + b rounded to odd, so that rounding once more to fewer bits errs no further than rounding once.
Value* Math::odd_sum(Value* a, Value* b) {
  const Pair sum = two_sum(a, b);
  Value* word = bits(sum.high);
  Value* even = b_.CreateICmpEQ(b_.CreateAnd(word, integer(word, 1)), integer(word, 0));
  Value* inexact = b_.CreateFCmpONE(sum.low, constant(sum.low, 0));
  Value* away = b_.CreateICmpEQ(b_.CreateFCmpOGT(sum.low, constant(sum.low, 0)),
                                b_.CreateFCmpOGT(sum.high, constant(sum.low, 0)));
  Value* next = b_.CreateSelect(away, b_.CreateAdd(word, integer(word, 1)), b_.CreateSub(word, integer(word, 1)));
  return from_bits(b_.CreateSelect(b_.CreateAnd(even, inexact), next, word));
}

// Without hardware: S. Boldo and G. Melquiond, Emulation of FMA and correctly rounded sums (2008). float64 products
// above 2^996 are rounded twice.
Value* Math::fused(Value* a, Value* b, Value* c) {
  if (features_.fma) return fma(a, b, c);
  if (!is_double(a)) {
    llvm::Type* wide = with_element(a, b_.getDoubleTy());
    Value* product = b_.CreateFMul(b_.CreateFPExt(a, wide), b_.CreateFPExt(b, wide));  // exact
    return b_.CreateFPTrunc(odd_sum(product, b_.CreateFPExt(c, wide)), a->getType());
  }
  const Pair product = two_product(a, b);
  const Pair low = two_sum(c, product.low);
  const Pair high = two_sum(product.high, low.high);
  Value* result = b_.CreateFAdd(high.high, odd_sum(low.low, high.low));
  Value* plain = b_.CreateFAdd(product.high, c);
  Value* broken = b_.CreateFCmpUNO(result, result);  // something was infinite or NaN on the way
  return b_.CreateSelect(broken, plain, result);
}

Value* Math::rounded(Intrinsic function, Value* x) {
  if (function == Intrinsic::RoundAway && !features_.aarch64) {
    Value* magnitude = absolute(x);
    Value* whole = rounded(Intrinsic::Trunc, magnitude);
    Value* up = b_.CreateFCmpOGE(b_.CreateFSub(magnitude, whole), constant(x, 0.5));
    return copy_sign(b_.CreateFAdd(whole, b_.CreateSelect(up, constant(x, 1), constant(x, 0))), x);
  }
  if (features_.rounding) {
    const auto id = function == Intrinsic::Floor       ? llvm::Intrinsic::floor
                    : function == Intrinsic::Ceil      ? llvm::Intrinsic::ceil
                    : function == Intrinsic::Trunc     ? llvm::Intrinsic::trunc
                    : function == Intrinsic::RoundEven ? llvm::Intrinsic::roundeven
                                                       : llvm::Intrinsic::round;
    return b_.CreateUnaryIntrinsic(id, x);
  }
  // Adding and subtracting 2^23 (2^52) rounds to nearest even; larger numbers are whole.
  const double limit = is_double(x) ? 0x1p52 : 0x1p23;
  Value* magnitude = absolute(x);
  Value* big = b_.CreateFCmpUGE(magnitude, constant(x, limit));
  Value* nearest = b_.CreateFSub(b_.CreateFAdd(magnitude, constant(x, limit)), constant(x, limit));
  Value *one = constant(x, 1), *zero = constant(x, 0);
  Value* result = nullptr;
  if (function == Intrinsic::RoundEven) {
    result = copy_sign(nearest, x);
  } else if (function == Intrinsic::Trunc) {
    Value* over = b_.CreateSelect(b_.CreateFCmpOGT(nearest, magnitude), one, zero);
    result = copy_sign(b_.CreateFSub(nearest, over), x);
  } else {
    const bool down = function == Intrinsic::Floor;
    Value* whole = copy_sign(nearest, x);
    Value* wrong = down ? b_.CreateFCmpOGT(whole, x) : b_.CreateFCmpOLT(whole, x);
    Value* step = b_.CreateSelect(wrong, one, zero);
    result = copy_sign(down ? b_.CreateFSub(whole, step) : b_.CreateFAdd(whole, step), x);
  }
  return b_.CreateSelect(big, x, result);
}

Math::ExpParts Math::exp_parts(Value* x) {
  const bool wide = is_double(x);
  // Adding 1.5 * 2^23 (2^52) puts the nearest integer into the low bits of the significand.
  Value* magic = constant(x, wide ? 0x1.8p52 : 0x1.8p23);
  Value* shifted = fma(x, constant(x, kLog2OfE[0]), magic);
  Value* n = b_.CreateFSub(shifted, magic);
  const std::span<const double> ln2 = wide ? std::span<const double>(kLn2Double) : std::span<const double>(kLn2Float);
  Value* r = fma(n, constant(x, -ln2[0]), x);
  r = fma(n, constant(x, -ln2[1]), r);
  Value* tail = wide ? polynomial(kExpDouble, r) : polynomial(kExpFloat, r);
  return {fma(b_.CreateFMul(r, r), tail, r), n, shifted};
}

Value* Math::scale(Value* x, const ExpParts& parts, int shift) {
  const bool wide = is_double(x);
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  const unsigned width = vector == nullptr ? 0 : vector->getNumElements() * (wide ? 64 : 32);
  if (features_.avx512 && (width == 512 || width == 256)) {  // VSCALEF does it in one
    const auto id =
        width == 512
            ? (wide ? llvm::Intrinsic::x86_avx512_mask_scalef_pd_512 : llvm::Intrinsic::x86_avx512_mask_scalef_ps_512)
            : (wide ? llvm::Intrinsic::x86_avx512_mask_scalef_pd_256 : llvm::Intrinsic::x86_avx512_mask_scalef_ps_256);
    Value* n = shift == 0 ? parts.n : b_.CreateFAdd(parts.n, constant(x, shift));
    Value* all = llvm::Constant::getAllOnesValue(b_.getIntNTy(std::max(8u, vector->getNumElements())));
    std::vector<Value*> args{x, n, x, all};
    if (width == 512) args.push_back(b_.getInt32(4));  // the current rounding mode
    return b_.CreateIntrinsic(id, {}, args);
  }
  // 2^n in two factors, so that neither overflows and a subnormal result is rounded once.
  Value* word = bits(parts.shifted);
  const uint64_t magic = wide ? 0x4338000000000000u : 0x4b400000u;
  Value* n = b_.CreateSub(word, integer(word, magic - static_cast<uint64_t>(static_cast<int64_t>(shift))));
  Value* first = b_.CreateAShr(n, integer(n, 1));
  Value* second = b_.CreateSub(n, first);
  const auto power = [&](Value* exponent) {
    return from_bits(b_.CreateShl(b_.CreateAdd(exponent, integer(n, wide ? 1023 : 127)), integer(n, wide ? 52 : 23)));
  };
  return b_.CreateFMul(b_.CreateFMul(x, power(first)), power(second));
}

Value* Math::exp(Value* x, int shift) {
  const bool wide = is_double(x);
  Value* inside = at_most(at_least(x, wide ? -746 : -104), wide ? 711 : 90);
  const ExpParts parts = exp_parts(inside);
  return scale(b_.CreateFAdd(parts.m, constant(x, 1)), parts, shift);
}

Value* Math::expm1_positive(Value* x) {
  const ExpParts parts = exp_parts(x);
  Value* word = bits(parts.shifted);
  const bool wide = is_double(x);
  Value* n = b_.CreateSub(word, integer(word, wide ? 0x4338000000000000u : 0x4b400000u));
  Value* power = from_bits(b_.CreateShl(b_.CreateAdd(n, integer(n, wide ? 1023 : 127)), integer(n, wide ? 52 : 23)));
  return fma(power, parts.m, b_.CreateFSub(power, constant(x, 1)));
}

Math::LogParts Math::log_parts(Value* x) {
  const bool wide = is_double(x);
  const double smallest = wide ? 0x1p-1022 : 0x1p-126, lift = wide ? 0x1p54 : 0x1p24;
  Value* subnormal = b_.CreateFCmpOLT(x, constant(x, smallest));
  Value* normal = b_.CreateSelect(subnormal, b_.CreateFMul(x, constant(x, lift)), x);
  Value* word = bits(normal);
  const uint64_t root_half = wide ? 0x3fe6a09e667f3bcdu : 0x3f3504f3u;  // sqrt(1/2)
  const unsigned fraction = wide ? 52 : 23;
  Value* exponent = b_.CreateAShr(b_.CreateSub(word, integer(word, root_half)), integer(word, fraction));
  Value* significand = from_bits(b_.CreateSub(word, b_.CreateShl(exponent, integer(word, fraction))));
  Value* narrow = wide ? b_.CreateTrunc(exponent, with_element(x, b_.getInt32Ty())) : exponent;  // converts faster
  Value* e = b_.CreateSIToFP(narrow, x->getType());
  e = b_.CreateFAdd(e, b_.CreateSelect(subnormal, constant(x, wide ? -54 : -24), constant(x, 0)));
  Value* f = b_.CreateFSub(significand, constant(x, 1));
  Value* rest = nullptr;
  if (wide) {
    Value* s = b_.CreateFDiv(f, b_.CreateFAdd(f, constant(x, 2)));
    Value* z = b_.CreateFMul(s, s);
    Value* half_square = b_.CreateFMul(b_.CreateFMul(f, f), constant(x, 0.5));
    Value* series = b_.CreateFMul(z, polynomial(kLogDouble, z));
    rest = fma(s, b_.CreateFAdd(half_square, series), b_.CreateFNeg(half_square));
  } else {
    Value* bend = fma(f, polynomial(kLogFloat, f), constant(x, -0.5));
    rest = b_.CreateFMul(b_.CreateFMul(f, f), bend);
  }
  return {e, f, rest};
}

// The logarithm of 0, of negative numbers, of infinity and NaN.
Value* Math::log_special(Value* x, Value* regular) {
  const double infinity = std::numeric_limits<double>::infinity();
  Value* zero = constant(x, 0);
  Value* special = b_.CreateSelect(b_.CreateFCmpOEQ(x, zero), constant(x, -infinity), x);
  special = b_.CreateSelect(b_.CreateFCmpOLT(x, zero), llvm::ConstantFP::getNaN(x->getType()), special);
  Value* ordinary = b_.CreateAnd(b_.CreateFCmpOGT(x, zero), b_.CreateFCmpOLT(x, constant(x, infinity)));
  return b_.CreateSelect(ordinary, regular, special);
}

Value* Math::log(Value* x) {
  const LogParts parts = log_parts(x);
  const std::span<const double> ln2 =
      is_double(x) ? std::span<const double>(kLn2Double) : std::span<const double>(kLn2Float);
  Value* low = fma(parts.e, constant(x, ln2[1]), parts.rest);
  return log_special(x, fma(parts.e, constant(x, ln2[0]), b_.CreateFAdd(low, parts.f)));
}

Value* Math::log2(Value* x) {
  const LogParts parts = log_parts(x);
  const std::span<const double> factor =
      is_double(x) ? std::span<const double>(kLog2OfE) : std::span<const double>(kLog2OfEFloat);
  Value* low = fma(parts.f, constant(x, factor[1]), b_.CreateFMul(parts.rest, constant(x, factor[0])));
  return log_special(x, b_.CreateFAdd(parts.e, fma(parts.f, constant(x, factor[0]), low)));
}

Value* Math::log10(Value* x) {
  const LogParts parts = log_parts(x);
  const bool wide = is_double(x);
  const std::span<const double> factor =
      wide ? std::span<const double>(kLog10OfE) : std::span<const double>(kLog10OfEFloat);
  const std::span<const double> two =
      wide ? std::span<const double>(kLog10Of2Double) : std::span<const double>(kLog10Of2Float);
  Value* low = fma(parts.e, constant(x, two[1]), b_.CreateFMul(parts.rest, constant(x, factor[0])));
  low = fma(parts.f, constant(x, factor[1]), low);
  return log_special(x, fma(parts.e, constant(x, two[0]), fma(parts.f, constant(x, factor[0]), low)));
}

// log(1 + x) = log(w) + what was lost in w = 1 + x.
Value* Math::log1p(Value* x) {
  Value* one = constant(x, 1);
  Value* w = b_.CreateFAdd(x, one);
  Value* lost_small = b_.CreateFSub(x, b_.CreateFSub(w, one));
  Value* lost_big = b_.CreateFSub(one, b_.CreateFSub(w, x));
  Value* lost = b_.CreateSelect(b_.CreateFCmpOLT(absolute(x), one), lost_small, lost_big);
  Value* correction = b_.CreateFDiv(lost, w);
  Value* usable = b_.CreateFCmpOLT(absolute(correction), one);
  return b_.CreateFAdd(log(w), b_.CreateSelect(usable, correction, constant(x, 0)));
}

// By exp(-|x|), which cannot overflow: 1 / (1 + e) for x >= 0 and e / (1 + e) below, so that small results keep their
// precision.
Value* Math::sigmoid(Value* x) {
  Value* e = exp(b_.CreateFNeg(absolute(x)));
  Value* positive = b_.CreateFCmpOGE(x, constant(x, 0));
  return b_.CreateFDiv(b_.CreateSelect(positive, constant(x, 1), e), b_.CreateFAdd(e, constant(x, 1)));
}

// tanh |x| = t / (t + 2), t = exp(2 |x|) - 1.
Value* Math::tanh(Value* x) {
  Value* magnitude = at_most(absolute(x), is_double(x) ? 20 : 9.5);
  Value* t = expm1_positive(b_.CreateFAdd(magnitude, magnitude));
  return copy_sign(b_.CreateFDiv(t, b_.CreateFAdd(t, constant(x, 2))), x);
}

// Functions that are seldom used get float32 by way of float64.
Value* Math::widened(Intrinsic function, const std::vector<Value*>& args) {
  std::vector<Value*> wide;
  for (Value* arg : args) wide.push_back(b_.CreateFPExt(arg, with_element(arg, b_.getDoubleTy())));
  return b_.CreateFPTrunc(call(function, wide), args[0]->getType());
}

Value* Math::call(Intrinsic function, const std::vector<Value*>& args) {
  Value* x = args[0];
  Value* infinity = llvm::ConstantFP::getInfinity(x->getType());
  switch (function) {
    case Intrinsic::Abs:
      return absolute(x);
    case Intrinsic::Sqrt:
      return b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x);
    case Intrinsic::Rsqrt:
      return b_.CreateFDiv(constant(x, 1), b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x));
    case Intrinsic::Fma:
      return fused(x, args[1], args[2]);
    case Intrinsic::IsNan:
      return b_.CreateFCmpUNO(x, x);
    case Intrinsic::IsInf:
      return b_.CreateFCmpOEQ(absolute(x), infinity);
    case Intrinsic::IsFinite:
      return b_.CreateFCmpONE(absolute(x), infinity);
    case Intrinsic::Ceil:
    case Intrinsic::Floor:
    case Intrinsic::RoundAway:
    case Intrinsic::RoundEven:
    case Intrinsic::Trunc:
      return rounded(function, x);
    case Intrinsic::Exp:
      return exp(x);
    case Intrinsic::Log:
      return log(x);
    case Intrinsic::Log2:
      return log2(x);
    case Intrinsic::Log10:
      return log10(x);
    case Intrinsic::Sigmoid:
      return sigmoid(x);
    case Intrinsic::Tanh:
      return tanh(x);
    case Intrinsic::Erf:
      return erf(x);
    case Intrinsic::Sin:
      return sin_or_cos(x, false);
    case Intrinsic::Cos:
      return sin_or_cos(x, true);
    case Intrinsic::Pow:
      return pow(x, args[1]);
    default:
      break;
  }
  if (!is_double(x)) return widened(function, args);
  switch (function) {
    case Intrinsic::Tan:
      return tan(x);
    case Intrinsic::Asin:
      return asin(x);
    case Intrinsic::Acos:
      return acos(x);
    case Intrinsic::Atan:
      return atan(x);
    case Intrinsic::Sinh:
      return sinh_or_cosh(x, false);
    case Intrinsic::Cosh:
      return sinh_or_cosh(x, true);
    case Intrinsic::Asinh:
      return asinh(x);
    case Intrinsic::Acosh:
      return acosh(x);
    case Intrinsic::Atanh:
      return atanh(x);
    default:
      break;
  }
  fail(ErrorCode::CodegenUnsupported, "{} of floats", loop::name_of(function));
}

}  // namespace treadle::codegen
