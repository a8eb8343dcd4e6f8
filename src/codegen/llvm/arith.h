// SPDX-License-Identifier: Apache-2.0
// Arithmetic of the loop IR as LLVM instructions, with exactly the meaning that loop/expr.h gives it, for scalars and
// vectors alike.
//
// How values lie in registers: bool is i1; integers are iN; float16 and bfloat16 are their bits in i16 (an operation
// widens to float32 and rounds back, so a load, select or store costs nothing); float32 and float64 are themselves.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <vector>

#include "codegen/llvm/machine.h"
#include "loop/expr.h"

namespace treadle::codegen {

using llvm::Value;

class Arith {
 public:
  Arith(llvm::IRBuilder<>& builder, llvm::Module& module, const Features& features)
      : b_(builder), module_(module), features_(features) {}

  // ---- Types ----
  llvm::Type* type(DType dtype, int lanes);         // in registers
  llvm::Type* memory_type(DType dtype, int lanes);  // bool: i8; halves: i16
  static int lanes_of(const Value* value);
  Value* from_memory(DType dtype, Value* value);
  Value* to_memory(DType dtype, Value* value);
  Value* splat(Value* scalar, int lanes);  // the value itself for one lane

  // ---- Operations; dtypes are those of the operands ----
  Value* binary(loop::BinaryOp op, DType dtype, Value* a, Value* b);
  Value* logical_not(Value* a) { return b_.CreateNot(a); }
  Value* cast(Value* value, DType from, DType to);
  Value* reinterpret(Value* value, DType from, DType to);
  Value* intrinsic(loop::Intrinsic function, DType dtype, const std::vector<Value*>& args);
  Value* reduce(loop::ReduceOp op, DType dtype, Value* vector);
  Value* float_constant(double value, DType dtype);

 private:
  Value* half_to_float(Value* bits, DType dtype);
  Value* float_to_half(Value* value, DType dtype);
  Value* double_to_float_odd(Value* value);
  Value* soft_half_to_float(Value* bits);
  Value* soft_float_to_half(Value* value);

  Value* integer_binary(loop::BinaryOp op, bool is_signed, Value* a, Value* b);
  Value* float_binary(loop::BinaryOp op, Value* a, Value* b);
  Value* divide(loop::BinaryOp op, bool is_signed, Value* a, Value* b);
  Value* divide_by_constant(loop::BinaryOp op, bool is_signed, Value* a, const llvm::APInt& divisor, Value* b);
  Value* shift(loop::BinaryOp op, bool is_signed, Value* a, Value* b);
  Value* float_extremum(bool is_max, Value* a, Value* b);
  Value* float_remainder(Value* a, Value* b);
  Value* integer_power(bool is_signed, Value* base, Value* exponent);
  Value* float_to_integer(Value* value, DType to);
  Value* contractible(Value* value);
  Value* integer_like(const Value* like, uint64_t value);
  // Calls the module's private scalar function for each lane, made by `define` at first use.
  Value* per_lane(Value* a, Value* b, llvm::Function* function);
  llvm::Function* remainder_function();

  llvm::IRBuilder<>& b_;
  llvm::Module& module_;
  const Features& features_;
};

}  // namespace treadle::codegen
