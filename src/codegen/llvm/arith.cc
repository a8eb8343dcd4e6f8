// SPDX-License-Identifier: Apache-2.0
// Binary operators and reductions of the loop IR in LLVM.
#include "codegen/llvm/arith.h"

#include <llvm/IR/Intrinsics.h>

#include "base/error.h"

namespace treadle::codegen {

using loop::BinaryOp;
using loop::ReduceOp;

llvm::Type* Arith::type(DType dtype, int lanes) {
  llvm::Type* element = nullptr;
  if (dtype.is_bool()) {
    element = b_.getInt1Ty();
  } else if (dtype.code == TypeCode::Handle) {
    element = b_.getPtrTy();
  } else if (dtype.is_float() && dtype.bits != 16) {
    element = dtype.bits == 64 ? b_.getDoubleTy() : b_.getFloatTy();
  } else {
    element = b_.getIntNTy(dtype.bits);
  }
  return lanes == 1 ? element : llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes));
}

llvm::Type* Arith::memory_type(DType dtype, int lanes) { return type(dtype.is_bool() ? dtype::uint8_ : dtype, lanes); }

int Arith::lanes_of(const Value* value) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  return vector == nullptr ? 1 : static_cast<int>(vector->getNumElements());
}

Value* Arith::from_memory(DType dtype, Value* value) {
  if (!dtype.is_bool()) return value;
  return b_.CreateICmpNE(value, llvm::Constant::getNullValue(value->getType()));
}

Value* Arith::to_memory(DType dtype, Value* value) {
  return dtype.is_bool() ? b_.CreateZExt(value, memory_type(dtype, lanes_of(value))) : value;
}

Value* Arith::splat(Value* scalar, int lanes) {
  return lanes == 1 ? scalar : b_.CreateVectorSplat(static_cast<unsigned>(lanes), scalar);
}

Value* Arith::integer_like(const Value* like, uint64_t value) { return llvm::ConstantInt::get(like->getType(), value); }

Value* Arith::contractible(Value* value) {
  if (!features_.fma) return value;
  if (auto* instruction = llvm::dyn_cast<llvm::Instruction>(value)) instruction->setHasAllowContract(true);
  return value;
}

Value* Arith::float_constant(double value, DType dtype) {
  if (dtype == dtype::float16_) return b_.getInt16(Float16(static_cast<float>(value)).bits);
  if (dtype == dtype::bfloat16_) return b_.getInt16(BFloat16(static_cast<float>(value)).bits);
  return llvm::ConstantFP::get(type(dtype, 1), value);
}

Value* Arith::binary(BinaryOp op, DType dtype, Value* a, Value* b) {
  if (!dtype.is_float()) return integer_binary(op, dtype.is_int(), a, b);
  if (!dtype.is_half()) return float_binary(op, a, b);
  const bool comparison = op >= BinaryOp::Eq;
  Value* result = float_binary(op, half_to_float(a, dtype), half_to_float(b, dtype));
  return comparison ? result : float_to_half(result, dtype);
}

Value* Arith::integer_binary(BinaryOp op, bool is_signed, Value* a, Value* b) {
  switch (op) {
    case BinaryOp::Add:
      return b_.CreateAdd(a, b);
    case BinaryOp::Sub:
      return b_.CreateSub(a, b);
    case BinaryOp::Mul:
      return b_.CreateMul(a, b);
    case BinaryOp::Div:
    case BinaryOp::FloorDiv:
    case BinaryOp::FloorMod:
    case BinaryOp::TruncMod:
      return divide(op, is_signed, a, b);
    case BinaryOp::Min:
      return b_.CreateBinaryIntrinsic(is_signed ? llvm::Intrinsic::smin : llvm::Intrinsic::umin, a, b);
    case BinaryOp::Max:
      return b_.CreateBinaryIntrinsic(is_signed ? llvm::Intrinsic::smax : llvm::Intrinsic::umax, a, b);
    case BinaryOp::And:
      return b_.CreateAnd(a, b);
    case BinaryOp::Or:
      return b_.CreateOr(a, b);
    case BinaryOp::Xor:
      return b_.CreateXor(a, b);
    case BinaryOp::Shl:
    case BinaryOp::Shr:
      return shift(op, is_signed, a, b);
    case BinaryOp::Eq:
      return b_.CreateICmpEQ(a, b);
    case BinaryOp::Ne:
      return b_.CreateICmpNE(a, b);
    case BinaryOp::Lt:
      return is_signed ? b_.CreateICmpSLT(a, b) : b_.CreateICmpULT(a, b);
    case BinaryOp::Le:
      return is_signed ? b_.CreateICmpSLE(a, b) : b_.CreateICmpULE(a, b);
    case BinaryOp::Gt:
      return is_signed ? b_.CreateICmpSGT(a, b) : b_.CreateICmpUGT(a, b);
    case BinaryOp::Ge:
      return is_signed ? b_.CreateICmpSGE(a, b) : b_.CreateICmpUGE(a, b);
  }
  return nullptr;
}

Value* Arith::float_binary(BinaryOp op, Value* a, Value* b) {
  switch (op) {
    case BinaryOp::Add:
      return contractible(b_.CreateFAdd(a, b));
    case BinaryOp::Sub:
      return contractible(b_.CreateFSub(a, b));
    case BinaryOp::Mul:
      return contractible(b_.CreateFMul(a, b));
    case BinaryOp::Div:
      return b_.CreateFDiv(a, b);
    case BinaryOp::FloorDiv:
      return intrinsic(loop::Intrinsic::Floor,
                       a->getType()->getScalarType()->isDoubleTy() ? dtype::float64_ : dtype::float32_,
                       {b_.CreateFDiv(a, b)});
    case BinaryOp::FloorMod: {
      Value* rest = float_remainder(a, b);
      Value* zero = llvm::Constant::getNullValue(rest->getType());
      Value* other_sign = b_.CreateXor(b_.CreateFCmpOLT(rest, zero), b_.CreateFCmpOLT(b, zero));
      return b_.CreateSelect(b_.CreateAnd(b_.CreateFCmpONE(rest, zero), other_sign), b_.CreateFAdd(rest, b), rest);
    }
    case BinaryOp::TruncMod:
      return float_remainder(a, b);
    case BinaryOp::Min:
      return float_extremum(false, a, b);
    case BinaryOp::Max:
      return float_extremum(true, a, b);
    case BinaryOp::Eq:
      return b_.CreateFCmpOEQ(a, b);
    case BinaryOp::Ne:
      return b_.CreateFCmpUNE(a, b);
    case BinaryOp::Lt:
      return b_.CreateFCmpOLT(a, b);
    case BinaryOp::Le:
      return b_.CreateFCmpOLE(a, b);
    case BinaryOp::Gt:
      return b_.CreateFCmpOGT(a, b);
    case BinaryOp::Ge:
      return b_.CreateFCmpOGE(a, b);
    case BinaryOp::And:
    case BinaryOp::Or:
    case BinaryOp::Xor:
    case BinaryOp::Shl:
    case BinaryOp::Shr:
      break;
  }
  fail(ErrorCode::CodegenUnsupported, "operator \"{}\" on floats", loop::symbol_of(op));
}

// True for a constant that has no NaN in it.
static bool never_nan(const Value* value) {
  const auto* constant = llvm::dyn_cast<llvm::Constant>(value);
  if (constant == nullptr) return false;
  if (constant->getType()->isVectorTy()) constant = constant->getSplatValue();
  const auto* number = llvm::dyn_cast_or_null<llvm::ConstantFP>(constant);
  return number != nullptr && !number->isNaN();
}

Value* Arith::float_extremum(bool is_max, Value* a, Value* b) {
  if (features_.aarch64) {  // FMAX and FMIN give NaN when either operand is NaN
    return b_.CreateBinaryIntrinsic(is_max ? llvm::Intrinsic::maximum : llvm::Intrinsic::minimum, a, b);
  }
  // MAXPS and MINPS give the second operand when either is NaN, so a constant goes first, and the rest is one
  // instruction.
  if (never_nan(b)) std::swap(a, b);
  Value* chosen = b_.CreateSelect(is_max ? b_.CreateFCmpOGT(a, b) : b_.CreateFCmpOLT(a, b), a, b);
  return never_nan(a) ? chosen : b_.CreateSelect(b_.CreateFCmpUNO(a, a), a, chosen);
}

Value* Arith::divide(BinaryOp op, bool is_signed, Value* a, Value* b) {
  if (auto* constant = llvm::dyn_cast<llvm::Constant>(b)) {
    if (constant->getType()->isVectorTy()) constant = constant->getSplatValue();
    const auto* number = llvm::dyn_cast_or_null<llvm::ConstantInt>(constant);
    if (number != nullptr && !number->isZero() && !(is_signed && number->isMinusOne())) {
      return divide_by_constant(op, is_signed, a, number->getValue(), b);
    }
  }
  // A divisor by which the processor would trap becomes 1: the remainder is then 0 and MIN / 1 is MIN, as it should be;
  // the quotient by zero is set to 0 apart.
  Value* by_zero = b_.CreateICmpEQ(b, integer_like(b, 0));
  Value* traps = by_zero;
  if (is_signed) {
    const unsigned bits = b->getType()->getScalarSizeInBits();
    Value* smallest = llvm::ConstantInt::get(a->getType(), llvm::APInt::getSignedMinValue(bits));
    Value* overflow =
        b_.CreateAnd(b_.CreateICmpEQ(a, smallest), b_.CreateICmpEQ(b, llvm::Constant::getAllOnesValue(b->getType())));
    traps = b_.CreateOr(traps, overflow);
  }
  Value* divisor = b_.CreateSelect(traps, integer_like(b, 1), b);
  if (!is_signed) {
    if (op == BinaryOp::FloorMod || op == BinaryOp::TruncMod) return b_.CreateURem(a, divisor);
    return b_.CreateSelect(by_zero, integer_like(a, 0), b_.CreateUDiv(a, divisor));
  }
  Value* zero = integer_like(a, 0);
  Value* rest = b_.CreateSRem(a, divisor);
  if (op == BinaryOp::TruncMod) return rest;
  Value* wrong_side = b_.CreateAnd(b_.CreateICmpNE(rest, zero), b_.CreateICmpSLT(b_.CreateXor(rest, divisor), zero));
  if (op == BinaryOp::FloorMod) return b_.CreateAdd(rest, b_.CreateSelect(wrong_side, divisor, zero));
  Value* quotient = b_.CreateSDiv(a, divisor);
  if (op == BinaryOp::FloorDiv) quotient = b_.CreateSub(quotient, b_.CreateZExt(wrong_side, quotient->getType()));
  return b_.CreateSelect(by_zero, zero, quotient);
}

// The divisor is neither 0 nor -1.
Value* Arith::divide_by_constant(BinaryOp op, bool is_signed, Value* a, const llvm::APInt& divisor, Value* b) {
  const bool remainder = op == BinaryOp::FloorMod || op == BinaryOp::TruncMod;
  if (!is_signed) return remainder ? b_.CreateURem(a, b) : b_.CreateUDiv(a, b);
  if (op == BinaryOp::Div) return b_.CreateSDiv(a, b);
  if (op == BinaryOp::TruncMod) return b_.CreateSRem(a, b);
  if (divisor.isStrictlyPositive() && divisor.isPowerOf2()) {
    return remainder ? b_.CreateAnd(a, llvm::ConstantInt::get(a->getType(), divisor - 1))
                     : b_.CreateAShr(a, integer_like(a, divisor.logBase2()));
  }
  Value* zero = integer_like(a, 0);
  Value* rest = b_.CreateSRem(a, b);
  Value* wrong_side = divisor.isStrictlyPositive() ? b_.CreateICmpSLT(rest, zero) : b_.CreateICmpSGT(rest, zero);
  if (remainder) return b_.CreateAdd(rest, b_.CreateSelect(wrong_side, b, zero));
  return b_.CreateSub(b_.CreateSDiv(a, b), b_.CreateZExt(wrong_side, a->getType()));
}

Value* Arith::shift(BinaryOp op, bool is_signed, Value* a, Value* b) {
  const unsigned bits = a->getType()->getScalarSizeInBits();
  if (op == BinaryOp::Shr && is_signed) {
    Value* count = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, b, integer_like(b, bits - 1));
    return b_.CreateAShr(a, count);
  }
  Value* valid = b_.CreateICmpULT(b, integer_like(b, bits));
  Value* count = b_.CreateSelect(valid, b, integer_like(b, 0));
  Value* shifted = op == BinaryOp::Shl ? b_.CreateShl(a, count) : b_.CreateLShr(a, count);
  return b_.CreateSelect(valid, shifted, integer_like(a, 0));
}

Value* Arith::integer_power(bool is_signed, Value* base, Value* exponent) {
  llvm::Type* type = base->getType();
  const unsigned bits = type->getScalarSizeInBits();
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::BasicBlock* loop = llvm::BasicBlock::Create(b_.getContext(), "power", before->getParent());
  llvm::BasicBlock* after = llvm::BasicBlock::Create(b_.getContext(), "power.end", before->getParent());
  b_.CreateBr(loop);
  b_.SetInsertPoint(loop);
  llvm::PHINode* step = b_.CreatePHI(b_.getInt32Ty(), 2);
  llvm::PHINode* result = b_.CreatePHI(type, 2);
  llvm::PHINode* square = b_.CreatePHI(type, 2);
  llvm::PHINode* rest = b_.CreatePHI(type, 2);
  Value* odd = b_.CreateICmpNE(b_.CreateAnd(rest, integer_like(rest, 1)), integer_like(rest, 0));
  Value* next_result = b_.CreateSelect(odd, b_.CreateMul(result, square), result);
  Value* next_square = b_.CreateMul(square, square);
  Value* next_rest = b_.CreateLShr(rest, integer_like(rest, 1));
  Value* next_step = b_.CreateAdd(step, b_.getInt32(1));
  step->addIncoming(b_.getInt32(0), before);
  result->addIncoming(integer_like(base, 1), before);
  square->addIncoming(base, before);
  rest->addIncoming(exponent, before);
  step->addIncoming(next_step, loop);
  result->addIncoming(next_result, loop);
  square->addIncoming(next_square, loop);
  rest->addIncoming(next_rest, loop);
  b_.CreateCondBr(b_.CreateICmpULT(next_step, b_.getInt32(bits)), loop, after);
  b_.SetInsertPoint(after);
  if (!is_signed) return next_result;
  // A negative exponent: 1 for base 1, ±1 for base -1 by the parity, else 0.
  Value* one = integer_like(base, 1);
  Value* minus_one = llvm::Constant::getAllOnesValue(type);
  Value* zero = integer_like(base, 0);
  Value* exponent_odd = b_.CreateICmpNE(b_.CreateAnd(exponent, one), zero);
  Value* of_minus_one = b_.CreateSelect(exponent_odd, minus_one, one);
  Value* inverse = b_.CreateSelect(b_.CreateICmpEQ(base, one), one,
                                   b_.CreateSelect(b_.CreateICmpEQ(base, minus_one), of_minus_one, zero));
  return b_.CreateSelect(b_.CreateICmpSLT(exponent, zero), inverse, next_result);
}

Value* Arith::reduce(ReduceOp op, DType dtype, Value* vector) {
  const BinaryOp combine = op == ReduceOp::Sum    ? BinaryOp::Add
                           : op == ReduceOp::Prod ? BinaryOp::Mul
                           : op == ReduceOp::Max  ? BinaryOp::Max
                           : op == ReduceOp::Min  ? BinaryOp::Min
                           : op == ReduceOp::Any  ? BinaryOp::Or
                                                  : BinaryOp::And;
  // Halves are combined while the count is even; what is left goes one by one.
  int lanes = lanes_of(vector);
  while (lanes > 1 && lanes % 2 == 0) {
    std::vector<int> low, high;
    for (int i = 0; i < lanes / 2; ++i) {
      low.push_back(i);
      high.push_back(i + lanes / 2);
    }
    lanes /= 2;
    if (lanes == 1) {
      return binary(combine, dtype, b_.CreateExtractElement(vector, uint64_t{0}),
                    b_.CreateExtractElement(vector, uint64_t{1}));
    }
    vector = binary(combine, dtype, b_.CreateShuffleVector(vector, low), b_.CreateShuffleVector(vector, high));
  }
  if (lanes == 1) return vector;
  Value* result = b_.CreateExtractElement(vector, uint64_t{0});
  for (int i = 1; i < lanes; ++i) {
    result = binary(combine, dtype, result, b_.CreateExtractElement(vector, static_cast<uint64_t>(i)));
  }
  return result;
}

}  // namespace treadle::codegen
