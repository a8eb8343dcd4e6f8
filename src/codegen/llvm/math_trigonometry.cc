// SPDX-License-Identifier: Apache-2.0
// Trigonometric functions and their inverses.
//
// x = n pi/2 + r: pi/2 is taken in parts of 53 bits with a fused multiply-add and of 33 bits without (W. Cody and W.
// Waite, Software Manual for the Elementary Functions, 1980), which is right up to 2^28 and 10^6. If a lane is larger,
// all lanes go by a private function that multiplies with the digits of 2/pi that matter (M. Payne and R. Hanek, Radian
// reduction for trigonometric functions, 1983), so every finite x gets its value. float32 is reduced in float64.
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/MDBuilder.h>

#include "codegen/llvm/math.h"
#include "codegen/llvm/math_tables.inc"

namespace treadle::codegen {

Math::Quadrant Math::near_quadrant(Value* x) {
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

Math::Quadrant Math::quadrant(Value* x) {
  const Quadrant near = near_quadrant(x);
  Value* magnitude = absolute(x);
  Value* large = b_.CreateAnd(b_.CreateFCmpOGT(magnitude, constant(x, features_.fma ? 0x1p28 : 1e6)),
                              b_.CreateFCmpOLT(magnitude, llvm::ConstantFP::getInfinity(x->getType())));
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  Value* any = vector == nullptr ? large : b_.CreateOrReduce(large);
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::BasicBlock* slow = llvm::BasicBlock::Create(b_.getContext(), "large", before->getParent());
  llvm::BasicBlock* after = llvm::BasicBlock::Create(b_.getContext(), "reduced", before->getParent());
  b_.CreateCondBr(any, slow, after, llvm::MDBuilder(b_.getContext()).createUnlikelyBranchWeights());
  b_.SetInsertPoint(slow);
  llvm::Function* reduce = reduction_function();
  Quadrant far = near;
  if (vector == nullptr) {
    Value* parts = b_.CreateCall(reduce, {x});
    far = {b_.CreateExtractValue(parts, 0), b_.CreateExtractValue(parts, 1), b_.CreateExtractValue(parts, 2)};
  } else {
    for (uint64_t lane = 0; lane < vector->getNumElements(); ++lane) {
      Value* parts = b_.CreateCall(reduce, {b_.CreateExtractElement(x, lane)});
      far.r = b_.CreateInsertElement(far.r, b_.CreateExtractValue(parts, 0), lane);
      far.r_low = b_.CreateInsertElement(far.r_low, b_.CreateExtractValue(parts, 1), lane);
      far.number = b_.CreateInsertElement(far.number, b_.CreateExtractValue(parts, 2), lane);
    }
  }
  far = {b_.CreateSelect(large, far.r, near.r), b_.CreateSelect(large, far.r_low, near.r_low),
         b_.CreateSelect(large, far.number, near.number)};
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
  const auto join = [&](Value* fast, Value* exact) -> Value* {
    llvm::PHINode* value = b_.CreatePHI(fast->getType(), 2);
    value->addIncoming(fast, before);
    value->addIncoming(exact, slow);
    return value;
  };
  return {join(near.r, far.r), join(near.r_low, far.r_low), join(near.number, far.number)};
}

// {r, r_low, n} of a finite |x| > 2^19. x = m 2^e with 53 bits of m; the digits of 2/pi above 2^(2-e) give multiples of
// 4 and are left out; the 192 bits after them, times m, give n in the top two bits of 192 and the fraction below.
llvm::Function* Math::reduction_function() {
  const char* name = "treadle.reduce";
  if (llvm::Function* known = module_.getFunction(name)) return known;
  llvm::LLVMContext& context = module_.getContext();
  llvm::Type *real = b_.getDoubleTy(), *word = b_.getInt64Ty(), *wide = b_.getInt128Ty();
  llvm::Type* result = llvm::StructType::get(context, {real, real, word});
  auto* function = llvm::Function::Create(llvm::FunctionType::get(result, {real}, false),
                                          llvm::GlobalValue::InternalLinkage, name, module_);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  function->addFnAttr(llvm::Attribute::NoInline);
  const llvm::AttributeList attributes = b_.GetInsertBlock()->getParent()->getAttributes();
  function->addFnAttr(attributes.getFnAttr("target-cpu"));
  function->addFnAttr(attributes.getFnAttr("target-features"));
  llvm::Constant* digits = llvm::ConstantDataArray::get(context, llvm::ArrayRef<uint64_t>(kTwoOverPi));
  auto* table = new llvm::GlobalVariable(module_, digits->getType(), true, llvm::GlobalValue::PrivateLinkage, digits,
                                         "two_over_pi");
  llvm::IRBuilder<> f(llvm::BasicBlock::Create(context, "entry", function));
  const auto number = [&](uint64_t value) { return f.getInt64(value); };
  const auto widen = [&](Value* value) { return f.CreateZExt(value, wide); };
  const auto high_word = [&](Value* value) { return f.CreateTrunc(f.CreateLShr(value, 64), word); };
  const auto low_word = [&](Value* value) { return f.CreateTrunc(value, word); };

  Value* x = function->getArg(0);
  Value* pattern = f.CreateBitCast(x, word);
  Value* biased = f.CreateAnd(f.CreateLShr(pattern, 52), number(0x7ff));
  Value* m = f.CreateOr(f.CreateAnd(pattern, number((uint64_t{1} << 52) - 1)), number(uint64_t{1} << 52));
  // Bits of the table before the window; small x come here beside a large one, and their result is not used.
  Value* start = f.CreateBinaryIntrinsic(llvm::Intrinsic::smax, f.CreateSub(biased, number(1075 + 2 - 64)), number(0));
  Value* first = f.CreateLShr(start, 6);
  Value* shift = f.CreateAnd(start, number(63));
  Value* window[3];
  for (uint64_t k = 0; k < 3; ++k) {
    const auto at = [&](uint64_t offset) {
      return f.CreateAlignedLoad(word, f.CreateInBoundsGEP(word, table, f.CreateAdd(first, number(offset))),
                                 llvm::Align(8));
    };
    Value* both = f.CreateOr(f.CreateShl(widen(at(k)), 64), widen(at(k + 1)));
    window[k] = high_word(f.CreateShl(both, widen(shift)));
  }
  Value* lowest = f.CreateMul(widen(m), widen(window[2]));
  Value* middle = f.CreateAdd(f.CreateMul(widen(m), widen(window[1])), widen(high_word(lowest)));
  Value* high = f.CreateAdd(f.CreateMul(m, window[0]), high_word(middle));
  Value* upper =
      f.CreateOr(f.CreateShl(widen(high), 64), widen(low_word(middle)));  // the fraction, after two bits of n
  Value* fraction = f.CreateOr(f.CreateShl(upper, 2), widen(f.CreateLShr(low_word(lowest), 62)));
  // As a signed number the fraction lies in -1/2 ... 1/2, and its sign bit rounds n.
  Value* below = f.CreateICmpSLT(fraction, llvm::ConstantInt::get(wide, 0));
  Value* n = f.CreateAdd(f.CreateLShr(high, 62), f.CreateZExt(below, word));
  Value* size = f.CreateSelect(below, f.CreateNeg(fraction), fraction);
  Value* zeros = f.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, size, f.getFalse());
  Value* normal = f.CreateShl(size, zeros);
  Value* top = high_word(normal);
  Value* head = f.CreateUIToFP(f.CreateAnd(top, number(~uint64_t{0x7ff})), real);
  Value* rest = f.CreateOr(f.CreateShl(top, 53), f.CreateLShr(low_word(normal), 11));
  Value* tail = f.CreateFMul(f.CreateUIToFP(rest, real), llvm::ConstantFP::get(real, 0x1p-53));
  Value* exponent = f.CreateSub(number(1023 - 64), f.CreateTrunc(zeros, word));
  Value* unit = f.CreateBitCast(f.CreateShl(exponent, 52), real);
  Math math(f, module_, features_);
  Value* half_pi = llvm::ConstantFP::get(real, kHalfPi[0]);
  const Pair product = math.two_product(f.CreateFMul(head, unit), half_pi);
  Value* low = f.CreateFAdd(f.CreateFMul(f.CreateFMul(head, unit), llvm::ConstantFP::get(real, kHalfPi[1])),
                            f.CreateFMul(f.CreateFMul(tail, unit), half_pi));
  low = f.CreateFAdd(product.low, low);
  Value* sum = f.CreateFAdd(product.high, low);
  low = f.CreateFAdd(f.CreateFSub(product.high, sum), low);
  Value* negative = f.CreateICmpSLT(pattern, number(0));
  Value* flip = f.CreateXor(below, negative);
  const auto signed_by = [&](Value* value) { return f.CreateSelect(flip, f.CreateFNeg(value), value); };
  Value* parts = llvm::PoisonValue::get(result);
  parts = f.CreateInsertValue(parts, signed_by(sum), 0);
  parts = f.CreateInsertValue(parts, signed_by(low), 1);
  parts = f.CreateInsertValue(parts, f.CreateSelect(negative, f.CreateNeg(n), n), 2);
  f.CreateRet(parts);
  return function;
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
