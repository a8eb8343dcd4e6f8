// SPDX-License-Identifier: Apache-2.0
// Loop functions to an LLVM module, through the passes that such code gains from, to an object, assembly or LLVM's
// text.
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/DeadStoreElimination.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/IndVarSimplify.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopRotation.h>
#include <llvm/Transforms/Scalar/LoopUnrollPass.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Vectorize/LoopVectorize.h>
#include <llvm/Transforms/Vectorize/SLPVectorizer.h>

#include "base/error.h"
#include "codegen/codegen.h"
#include "codegen/llvm/function.h"

namespace treadle::codegen {
namespace {

// Whether the function works on vectors already: then LLVM's own vectorizers stay away.
bool has_vectors(const llvm::Function& function) {
  for (const llvm::BasicBlock& block : function) {
    for (const llvm::Instruction& instruction : block) {
      if (instruction.getType()->isVectorTy()) return true;
    }
  }
  return false;
}

bool has_full_unroll(const llvm::Function& function) {
  for (const llvm::BasicBlock& block : function) {
    if (block.getTerminator()->getMetadata(llvm::LLVMContext::MD_loop) != nullptr) return true;
  }
  return false;
}

// The passes of one function. Kept short: schedules have done the large decisions, so what is left is to turn stack
// slots into registers, drop repeated address arithmetic and move what does not change out of loops.
void add_passes(llvm::FunctionPassManager& passes, const llvm::Function& function, int opt_level) {
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  if (opt_level <= 0 || function.hasOptNone()) return;
  passes.addPass(llvm::EarlyCSEPass(true));
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::InstCombinePass());
  llvm::LoopPassManager loops;
  loops.addPass(llvm::LICMPass(llvm::LICMOptions()));
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(loops), true));
  const bool unrolls = has_full_unroll(function);
  if (unrolls) {
    passes.addPass(llvm::LoopUnrollPass(llvm::LoopUnrollOptions(opt_level, true)));
    passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  }
  if (opt_level >= 2 && !has_vectors(function)) {
    passes.addPass(llvm::LoopVectorizePass());
    passes.addPass(llvm::SLPVectorizerPass());
    passes.addPass(llvm::InstCombinePass());
  }
  passes.addPass(llvm::EarlyCSEPass(true));
  if (opt_level >= 2) passes.addPass(llvm::DSEPass());
  passes.addPass(llvm::SimplifyCFGPass());
}

void optimize(llvm::Module& module, llvm::TargetMachine& machine, int opt_level) {
  llvm::LoopAnalysisManager loop_analyses;
  llvm::FunctionAnalysisManager function_analyses;
  llvm::CGSCCAnalysisManager call_analyses;
  llvm::ModuleAnalysisManager module_analyses;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(module_analyses);
  builder.registerCGSCCAnalyses(call_analyses);
  builder.registerFunctionAnalyses(function_analyses);
  builder.registerLoopAnalyses(loop_analyses);
  builder.crossRegisterProxies(loop_analyses, function_analyses, call_analyses, module_analyses);
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    llvm::FunctionPassManager passes;
    add_passes(passes, function, opt_level);
    passes.run(function, function_analyses);
  }
}

struct Built {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::TargetMachine> machine;
  std::unique_ptr<llvm::Module> module;
};

void build(Built& built, const std::vector<loop::Function>& functions, const Target& target, const Options& options) {
  built.machine = make_machine(target, options.opt_level);
  built.module = std::make_unique<llvm::Module>("treadle", built.context);
  llvm::Module& module = *built.module;
  module.setTargetTriple(built.machine->getTargetTriple());
  module.setDataLayout(built.machine->createDataLayout());
  module.setPICLevel(llvm::PICLevel::BigPIC);
  ModuleState state{module, target, features_of(*built.machine)};
  llvm::DIBuilder debug(module);
  if (options.debug_names) {
    module.addModuleFlag(llvm::Module::Warning, "Debug Info Version", llvm::DEBUG_METADATA_VERSION);
    module.addModuleFlag(llvm::Module::Warning, "Dwarf Version", 4);
    state.debug = &debug;
    state.file = debug.createFile("treadle", "/");
    debug.createCompileUnit(llvm::DISourceLanguageName(llvm::dwarf::DW_LANG_C11), state.file, "treadle", true, "", 0,
                            "", llvm::DICompileUnit::LineTablesOnly);
  }
  for (const loop::Function& function : functions) FunctionEmitter(state, function).emit();
  if (options.debug_names) debug.finalize();
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  TREADLE_CHECK(!llvm::verifyModule(module, &stream), "LLVM refuses the emitted code: {}", problem);
  optimize(module, *built.machine, options.opt_level);
}

llvm::SmallVector<char, 0> generate(Built& built, llvm::CodeGenFileType kind) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  const bool impossible = built.machine->addPassesToEmitFile(passes, stream, nullptr, kind, true);
  if (impossible) fail(ErrorCode::CodegenUnsupported, "no object files for {}", built.machine->getTargetTriple().str());
  passes.run(*built.module);
  return bytes;
}

}  // namespace

Bytes emit_object(const std::vector<loop::Function>& functions, const Target& target, const Options& options) {
  Built built;
  build(built, functions, target, options);
  const auto bytes = generate(built, llvm::CodeGenFileType::ObjectFile);
  return {bytes.begin(), bytes.end()};
}

std::string emit_llvm(const std::vector<loop::Function>& functions, const Target& target, const Options& options) {
  Built built;
  build(built, functions, target, options);
  std::string text;
  llvm::raw_string_ostream(text) << *built.module;
  return text;
}

std::string emit_assembly(const std::vector<loop::Function>& functions, const Target& target, const Options& options) {
  Built built;
  build(built, functions, target, options);
  const auto bytes = generate(built, llvm::CodeGenFileType::AssemblyFile);
  return {bytes.begin(), bytes.end()};
}

}  // namespace treadle::codegen
