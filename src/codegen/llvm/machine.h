// SPDX-License-Identifier: Apache-2.0
// LLVM's description of the machine behind a Target: set-up of LLVM, target machines, and what the code generator asks
// of them.
#pragma once

#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <string>

#include "base/target.h"

namespace treadle::codegen {

// Registers the X86 and AArch64 back ends with LLVM; once per process, thread safe.
void initialize_llvm();

// Features that change which instructions the emitter writes; all else LLVM decides.
struct Features {
  bool x86 = false;
  bool aarch64 = false;
  bool fma = false;       // fused multiply-add of float32 and float64
  bool half = false;      // conversions between float16 and float32 in hardware
  bool rounding = false;  // floor, ceil, trunc, nearest as instructions
  bool avx512 = false;    // F, BW, VL and DQ
};

// A machine that compiles for `target` at LLVM's code generation level `opt_level` (0 … 3), position independent.
// Errors: TargetUnknown when LLVM has no back end for the triple.
std::unique_ptr<llvm::TargetMachine> make_machine(const Target& target, int opt_level);

Features features_of(const llvm::TargetMachine& machine);

// Target::features as LLVM reads them: "+avx2,+fma".
std::string feature_text(const Target& target);

}  // namespace treadle::codegen
