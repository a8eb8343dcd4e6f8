// SPDX-License-Identifier: Apache-2.0
// Conversions between dtypes, the 16-bit floats, and the functions that are a few instructions (rounding, absolute
// value, …).
#include <llvm/IR/Intrinsics.h>

#include "base/error.h"
#include "codegen/llvm/arith.h"
#include "codegen/llvm/math.h"

namespace treadle::codegen {

Value* Arith::soft_half_to_float(Value* bits) {
  const int lanes = lanes_of(bits);
  llvm::Type* word = type(dtype::uint32_, lanes);
  llvm::Type* real = type(dtype::float32_, lanes);
  Value* wide = b_.CreateZExt(bits, word);
  Value* sign = b_.CreateShl(b_.CreateAnd(wide, integer_like(wide, 0x8000)), integer_like(wide, 16));
  Value* magnitude = b_.CreateShl(b_.CreateAnd(wide, integer_like(wide, 0x7fff)), integer_like(wide, 13));
  // Normal: the exponent's bias grows by 112. Infinity and NaN: all ones. Subnormal: count * 2^-24, exact in float32.
  Value* normal = b_.CreateAdd(magnitude, integer_like(wide, 112u << 23));
  Value* special = b_.CreateOr(magnitude, integer_like(wide, 0x7f800000u));
  Value* count = b_.CreateSIToFP(b_.CreateAnd(wide, integer_like(wide, 0x7fff)), real);
  Value* subnormal = b_.CreateBitCast(b_.CreateFMul(count, llvm::ConstantFP::get(real, 0x1p-24)), word);
  Value* result = b_.CreateSelect(b_.CreateICmpULT(magnitude, integer_like(wide, 1u << 23)), subnormal, normal);
  result = b_.CreateSelect(b_.CreateICmpUGE(magnitude, integer_like(wide, 0x1fu << 23)), special, result);
  return b_.CreateBitCast(b_.CreateOr(result, sign), real);
}

Value* Arith::soft_float_to_half(Value* value) {
  const int lanes = lanes_of(value);
  llvm::Type* word = type(dtype::uint32_, lanes);
  llvm::Type* real = value->getType();
  Value* bits = b_.CreateBitCast(value, word);
  Value* sign = b_.CreateAnd(b_.CreateLShr(bits, integer_like(bits, 16)), integer_like(bits, 0x8000));
  Value* magnitude = b_.CreateAnd(bits, integer_like(bits, 0x7fffffff));
  // Normal: rebias, then round to nearest even by adding half an ulp less one, plus the lowest kept bit; a carry runs
  // into the exponent, and past the largest half it gives infinity.
  Value* odd = b_.CreateAnd(b_.CreateLShr(magnitude, integer_like(bits, 13)), integer_like(bits, 1));
  Value* rebased = b_.CreateSub(magnitude, integer_like(bits, 112u << 23));
  Value* normal =
      b_.CreateLShr(b_.CreateAdd(b_.CreateAdd(rebased, integer_like(bits, 0xfff)), odd), integer_like(bits, 13));
  // Subnormal: adding 0.5 lets the processor round at bit 2^-24, which is the unit of the half's subnormals.
  Value* shifted = b_.CreateFAdd(b_.CreateBitCast(magnitude, real), llvm::ConstantFP::get(real, 0.5));
  Value* subnormal = b_.CreateSub(b_.CreateBitCast(shifted, word), integer_like(bits, 0x3f000000u));
  Value* result = b_.CreateSelect(b_.CreateICmpULT(magnitude, integer_like(bits, 0x38800000u)), subnormal, normal);
  result =
      b_.CreateSelect(b_.CreateICmpUGE(magnitude, integer_like(bits, 0x47800000u)), integer_like(bits, 0x7c00), result);
  Value* payload = b_.CreateAnd(b_.CreateLShr(magnitude, integer_like(bits, 13)), integer_like(bits, 0x3ff));
  Value* not_a_number = b_.CreateOr(payload, integer_like(bits, 0x7e00));
  result = b_.CreateSelect(b_.CreateICmpUGT(magnitude, integer_like(bits, 0x7f800000u)), not_a_number, result);
  return b_.CreateTrunc(b_.CreateOr(result, sign), type(dtype::uint16_, lanes));
}

Value* Arith::half_to_float(Value* bits, DType dtype) {
  const int lanes = lanes_of(bits);
  if (dtype == dtype::bfloat16_) {
    Value* wide = b_.CreateZExt(bits, type(dtype::uint32_, lanes));
    return b_.CreateBitCast(b_.CreateShl(wide, integer_like(wide, 16)), type(dtype::float32_, lanes));
  }
  if (!features_.half) return soft_half_to_float(bits);
  llvm::Type* half = b_.getHalfTy();
  if (lanes > 1) half = llvm::FixedVectorType::get(half, static_cast<unsigned>(lanes));
  return b_.CreateFPExt(b_.CreateBitCast(bits, half), type(dtype::float32_, lanes));
}

Value* Arith::float_to_half(Value* value, DType dtype) {
  const int lanes = lanes_of(value);
  if (dtype == dtype::bfloat16_) {
    Value* bits = b_.CreateBitCast(value, type(dtype::uint32_, lanes));
    Value* odd = b_.CreateAnd(b_.CreateLShr(bits, integer_like(bits, 16)), integer_like(bits, 1));
    Value* rounded = b_.CreateAdd(b_.CreateAdd(bits, integer_like(bits, 0x7fff)), odd);
    Value* quiet = b_.CreateOr(bits, integer_like(bits, 0x400000));
    Value* result = b_.CreateSelect(b_.CreateFCmpUNO(value, value), quiet, rounded);
    return b_.CreateTrunc(b_.CreateLShr(result, integer_like(bits, 16)), type(dtype::uint16_, lanes));
  }
  if (!features_.half) return soft_float_to_half(value);
  llvm::Type* half = b_.getHalfTy();
  if (lanes > 1) half = llvm::FixedVectorType::get(half, static_cast<unsigned>(lanes));
  return b_.CreateBitCast(b_.CreateFPTrunc(value, half), type(dtype::uint16_, lanes));
}

// float64 to float32 rounded to odd: a second rounding to 16 bits is then the same as one rounding.
Value* Arith::double_to_float_odd(Value* value) {
  const int lanes = lanes_of(value);
  llvm::Type* word = type(dtype::uint32_, lanes);
  Value* nearest = b_.CreateFPTrunc(value, type(dtype::float32_, lanes));
  Value* back = b_.CreateFPExt(nearest, value->getType());
  Value* bits = b_.CreateBitCast(nearest, word);
  Value* too_far = b_.CreateFCmpOGT(b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back),
                                    b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, value));
  Value* toward_zero = b_.CreateSub(bits, b_.CreateZExt(too_far, word));
  Value* odd = b_.CreateOr(toward_zero, integer_like(bits, 1));
  Value* inexact = b_.CreateFCmpONE(back, value);
  return b_.CreateBitCast(b_.CreateSelect(inexact, odd, bits), nearest->getType());
}

Value* Arith::float_to_integer(Value* value, DType to) {
  llvm::Type* result = type(to, lanes_of(value));
  const auto id = to.is_int() ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
  return b_.CreateIntrinsic(id, {result, value->getType()}, {value});
}

Value* Arith::cast(Value* value, DType from, DType to) {
  if (from == to) return value;
  const int lanes = lanes_of(value);
  llvm::Type* result = type(to, lanes);
  if (from.is_half()) return cast(half_to_float(value, from), dtype::float32_, to);
  if (to.is_bool()) {
    if (from.is_float()) return b_.CreateFCmpUNE(value, llvm::Constant::getNullValue(value->getType()));
    return b_.CreateICmpNE(value, llvm::Constant::getNullValue(value->getType()));
  }
  if (to.is_half()) {
    if (from == dtype::float32_) return float_to_half(value, to);
    if (from == dtype::float64_) return float_to_half(double_to_float_odd(value), to);
    // Wide integers do not fit into float32; through float64 the result is rounded once up to 2^53.
    if (from.bits >= 32) return cast(cast(value, from, dtype::float64_), dtype::float64_, to);
    return float_to_half(cast(value, from, dtype::float32_), to);
  }
  if (from.is_float() && to.is_float()) {
    return to.bits > from.bits ? b_.CreateFPExt(value, result) : b_.CreateFPTrunc(value, result);
  }
  if (from.is_float()) return float_to_integer(value, to);
  if (to.is_float()) return from.is_int() ? b_.CreateSIToFP(value, result) : b_.CreateUIToFP(value, result);
  return from.is_int() ? b_.CreateSExtOrTrunc(value, result) : b_.CreateZExtOrTrunc(value, result);
}

Value* Arith::reinterpret(Value* value, DType from, DType to) {
  const int lanes = lanes_of(value);
  if (from.is_bool()) value = b_.CreateZExt(value, type(dtype::uint8_, lanes));
  if (to.is_bool()) return b_.CreateICmpNE(value, integer_like(value, 0));
  return b_.CreateBitCast(value, type(to, lanes));
}

Value* Arith::intrinsic(loop::Intrinsic function, DType dtype, const std::vector<Value*>& args) {
  Value* x = args[0];
  const bool test =
      function == loop::Intrinsic::IsFinite || function == loop::Intrinsic::IsInf || function == loop::Intrinsic::IsNan;
  if (dtype.is_float()) {
    if (dtype.is_half()) {
      std::vector<Value*> wide;
      for (Value* arg : args) wide.push_back(half_to_float(arg, dtype));
      Value* result = intrinsic(function, dtype::float32_, wide);
      return test ? result : float_to_half(result, dtype);
    }
    return Math(b_, module_, features_).call(function, args);
  }
  switch (function) {
    case loop::Intrinsic::Abs:
      if (!dtype.is_int()) return x;
      return b_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, x, b_.getFalse());
    case loop::Intrinsic::Popcount:
      return dtype.is_bool() ? x : b_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, x);
    case loop::Intrinsic::Pow:
      return integer_power(dtype.is_int(), x, args[1]);
    case loop::Intrinsic::Fma:
      return b_.CreateAdd(b_.CreateMul(x, args[1]), args[2]);
    case loop::Intrinsic::Ceil:
    case loop::Intrinsic::Floor:
    case loop::Intrinsic::RoundAway:
    case loop::Intrinsic::RoundEven:
    case loop::Intrinsic::Trunc:
      return x;
    case loop::Intrinsic::IsFinite:
      return llvm::Constant::getAllOnesValue(type(dtype::bool_, lanes_of(x)));
    case loop::Intrinsic::IsInf:
    case loop::Intrinsic::IsNan:
      return llvm::Constant::getNullValue(type(dtype::bool_, lanes_of(x)));
    default:
      break;
  }
  fail(ErrorCode::CodegenUnsupported, "{} of {}", loop::name_of(function), to_string(dtype));
}

Value* Arith::per_lane(Value* a, Value* b, llvm::Function* function) {
  const int lanes = lanes_of(a);
  if (lanes == 1) return b_.CreateCall(function, {a, b});
  Value* result = llvm::PoisonValue::get(a->getType());
  for (int lane = 0; lane < lanes; ++lane) {
    const auto index = static_cast<uint64_t>(lane);
    Value* one = b_.CreateCall(function, {b_.CreateExtractElement(a, index), b_.CreateExtractElement(b, index)});
    result = b_.CreateInsertElement(result, one, index);
  }
  return result;
}

Value* Arith::float_remainder(Value* a, Value* b) {
  const int lanes = lanes_of(a);
  llvm::Type* wide = type(dtype::float64_, lanes);
  // The remainder of two float32 is a float32, so computing it in float64 is exact.
  Value* result = per_lane(b_.CreateFPExt(a, wide), b_.CreateFPExt(b, wide), remainder_function());
  return b_.CreateFPTrunc(result, a->getType());
}

// double fmod(double, double): long division of the significands, 10 bits of the quotient at a time, so every step is
// exact in 64-bit integers. Source: the definition of fmod in C; the method is schoolbook division.
llvm::Function* Arith::remainder_function() {
  const char* name = "treadle.fmod";
  if (llvm::Function* known = module_.getFunction(name)) return known;
  llvm::Type* real = b_.getDoubleTy();
  auto* function = llvm::Function::Create(llvm::FunctionType::get(real, {real, real}, false),
                                          llvm::GlobalValue::InternalLinkage, name, module_);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  const llvm::AttributeList attributes = b_.GetInsertBlock()->getParent()->getAttributes();
  function->addFnAttr(attributes.getFnAttr("target-cpu"));
  function->addFnAttr(attributes.getFnAttr("target-features"));
  llvm::LLVMContext& context = module_.getContext();
  const auto block = [&](const char* label) { return llvm::BasicBlock::Create(context, label, function); };
  llvm::BasicBlock *entry = block("entry"), *special = block("special"), *divide = block("divide"),
                   *loop = block("loop"), *done = block("done");
  llvm::IRBuilder<> f(entry);
  Value *x = function->getArg(0), *y = function->getArg(1);
  Value* absolute_x = f.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  Value* absolute_y = f.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, y);
  Value* infinity = llvm::ConstantFP::getInfinity(real);
  Value* zero = llvm::ConstantFP::get(real, 0.0);
  // |x| < |y|: x itself. x infinite or NaN, y zero or NaN: NaN.
  Value* ordinary =
      f.CreateAnd(f.CreateFCmpOLT(absolute_x, infinity),
                  f.CreateAnd(f.CreateFCmpOGT(absolute_y, zero), f.CreateFCmpOGE(absolute_x, absolute_y)));
  f.CreateCondBr(ordinary, divide, special);

  f.SetInsertPoint(special);
  Value* kept = f.CreateAnd(f.CreateFCmpOLT(absolute_x, absolute_y), f.CreateFCmpOLT(absolute_x, infinity));
  Value* invalid = f.CreateFDiv(f.CreateFMul(x, y), f.CreateFMul(x, y));
  f.CreateRet(f.CreateSelect(kept, x, f.CreateFAdd(invalid, llvm::ConstantFP::getNaN(real))));

  f.SetInsertPoint(divide);
  Value* fraction = f.getInt64((uint64_t{1} << 52) - 1);
  const auto unpack = [&](Value* v, Value*& significand, Value*& exponent) {
    Value* bits = f.CreateBitCast(v, f.getInt64Ty());
    Value* raw = f.CreateLShr(bits, f.getInt64(52));
    Value* subnormal = f.CreateICmpEQ(raw, f.getInt64(0));
    Value* hidden = f.CreateSelect(subnormal, f.getInt64(0), f.getInt64(uint64_t{1} << 52));
    significand = f.CreateOr(f.CreateAnd(bits, fraction), hidden);
    exponent = f.CreateSelect(subnormal, f.getInt64(1), raw);
  };
  Value *mx, *ex, *my, *ey;
  unpack(absolute_x, mx, ex);
  unpack(absolute_y, my, ey);
  Value* first = f.CreateURem(mx, my);
  Value* distance = f.CreateSub(ex, ey);
  f.CreateCondBr(f.CreateICmpSGT(distance, f.getInt64(0)), loop, done);

  f.SetInsertPoint(loop);
  llvm::PHINode* rest = f.CreatePHI(f.getInt64Ty(), 2);
  llvm::PHINode* left = f.CreatePHI(f.getInt64Ty(), 2);
  Value* step = f.CreateBinaryIntrinsic(llvm::Intrinsic::umin, left, f.getInt64(10));
  Value* next_rest = f.CreateURem(f.CreateShl(rest, step), my);
  Value* next_left = f.CreateSub(left, step);
  rest->addIncoming(first, divide);
  left->addIncoming(distance, divide);
  rest->addIncoming(next_rest, loop);
  left->addIncoming(next_left, loop);
  f.CreateCondBr(f.CreateICmpSGT(next_left, f.getInt64(0)), loop, done);

  f.SetInsertPoint(done);
  llvm::PHINode* last = f.CreatePHI(f.getInt64Ty(), 2);
  last->addIncoming(first, divide);
  last->addIncoming(next_rest, loop);
  // last * 2^(ey - 1075), with the exponent put back by shifting the significand up to its hidden bit where the
  // exponent allows.
  Value* zeros = f.CreateSub(f.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, last, f.getFalse()), f.getInt64(11));
  Value* room = f.CreateSub(ey, f.getInt64(1));
  Value* up = f.CreateBinaryIntrinsic(llvm::Intrinsic::smin, zeros, room);
  Value* raised = f.CreateShl(last, up);
  Value* exponent = f.CreateSub(room, up);  // adds to the hidden bit: biased exponent - 1, or 0 with no hidden bit
  Value* bits = f.CreateAdd(raised, f.CreateShl(exponent, f.getInt64(52)));
  bits = f.CreateSelect(f.CreateICmpEQ(last, f.getInt64(0)), f.getInt64(0), bits);
  Value* magnitude = f.CreateBitCast(bits, real);
  f.CreateRet(f.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude, x));
  return function;
}

}  // namespace treadle::codegen
