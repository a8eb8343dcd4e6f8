// SPDX-License-Identifier: Apache-2.0
// Target machines of LLVM made from a Target.
#include "codegen/llvm/machine.h"

#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/Triple.h>

#include <mutex>

#include "base/error.h"

extern "C" {
void LLVMInitializeX86TargetInfo();
void LLVMInitializeX86Target();
void LLVMInitializeX86TargetMC();
void LLVMInitializeX86AsmPrinter();
void LLVMInitializeX86AsmParser();
void LLVMInitializeAArch64TargetInfo();
void LLVMInitializeAArch64Target();
void LLVMInitializeAArch64TargetMC();
void LLVMInitializeAArch64AsmPrinter();
void LLVMInitializeAArch64AsmParser();
}

namespace treadle::codegen {

namespace {

// Kernels are long blocks of loads and stores without branches, and the scheduler compares each access with all before
// it. From this many on it settles for less: a block of 500 vector statements compiles four times as fast, and its code
// is the same.
constexpr unsigned kComparedAccesses = 100;

void limit_scheduler() {
  auto& options = llvm::cl::getRegisteredOptions();
  const auto option = options.find("dag-maps-huge-region");
  if (option == options.end()) return;
  // The initial value, because LLD sets all options back to theirs.
  static_cast<llvm::cl::opt<unsigned>*>(option->second)->setInitialValue(kComparedAccesses);
}

}  // namespace

void initialize_llvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
    LLVMInitializeAArch64AsmParser();
    limit_scheduler();
  });
}

std::string feature_text(const Target& target) {
  std::string text;
  for (const std::string& feature : target.features) {
    if (!text.empty()) text += ',';
    text += feature;
  }
  return text;
}

std::unique_ptr<llvm::TargetMachine> make_machine(const Target& target, int opt_level) {
  initialize_llvm();
  const llvm::Triple triple(target.triple);
  std::string problem;
  const llvm::Target* back_end = llvm::TargetRegistry::lookupTarget(triple, problem);
  if (back_end == nullptr) fail(ErrorCode::TargetUnknown, "no code generator for \"{}\"", target.triple);
  const llvm::CodeGenOptLevel level = opt_level <= 0   ? llvm::CodeGenOptLevel::None
                                      : opt_level == 1 ? llvm::CodeGenOptLevel::Less
                                      : opt_level == 2 ? llvm::CodeGenOptLevel::Default
                                                       : llvm::CodeGenOptLevel::Aggressive;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;  // only operations that carry `contract` are fused
  return std::unique_ptr<llvm::TargetMachine>(back_end->createTargetMachine(
      triple, target.cpu, feature_text(target), options, llvm::Reloc::PIC_, std::nullopt, level));
}

Features features_of(const llvm::TargetMachine& machine) {
  Features features;
  const llvm::Triple& triple = machine.getTargetTriple();
  const llvm::MCSubtargetInfo& info = *machine.getMCSubtargetInfo();
  features.x86 = triple.isX86();
  features.aarch64 = triple.isAArch64();
  if (features.x86) {
    features.fma = info.checkFeatures("+fma");
    features.half = info.checkFeatures("+f16c");
    features.rounding = info.checkFeatures("+sse4.1");
    features.avx512 = info.checkFeatures("+avx512f,+avx512bw,+avx512vl,+avx512dq");
  } else if (features.aarch64) {
    features.fma = features.half = features.rounding = true;  // part of the base architecture
  }
  return features;
}

}  // namespace treadle::codegen
