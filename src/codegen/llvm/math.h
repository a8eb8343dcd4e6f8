// SPDX-License-Identifier: Apache-2.0
// Functions of float32 and float64 as LLVM instructions, for scalars and vectors of any width, without branches and
// without calls of a mathematics library. Subnormal numbers, infinities and NaN are handled as C's Annex F says.
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

  // `args`: all float32 or all float64, of the same lanes. Bounds of the error in ULP, as measured by math_test.cc:
  // the table heads math.cc.
  Value* call(loop::Intrinsic function, const std::vector<Value*>& args);

 private:
  llvm::IRBuilder<>& b_;
  llvm::Module& module_;
  const Features& features_;
};

}  // namespace treadle::codegen
