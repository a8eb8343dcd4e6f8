// SPDX-License-Identifier: Apache-2.0
// From a module to something that runs: the whole pipeline in one call.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ir/expr.h"
#include "lower/program.h"
#include "pass/pass.h"
#include "runtime/executable.h"

namespace treadle {

struct BuildOptions {
  std::string target = "llvm -mcpu=native";
  int opt_level = 3;     // 0 … 4; of the passes and of code generation
  bool profile = false;  // kernels can be timed one by one
  int threads = 0;       // of the compiler; 0: one per core
  bool cache = true;     // use and fill the compile cache on disk
  std::set<std::string> disabled_passes;
  std::set<std::string> print_before, print_after;  // pass names, or "all"
  std::function<void(const std::string& title, const std::string& text)> print;
  bool verify = false;  // check the graph IR after every pass, and every loop function
  int stop_after = -1;  // rewrites of all passes; for bisecting
};

// What happened during a build, in the order of the road; milliseconds.
struct BuildReport {
  std::vector<pass::PassTime> passes;
  double lower_ms = 0, codegen_ms = 0, link_ms = 0;
  size_t kernels = 0;       // compiled functions
  size_t kernel_calls = 0;  // calls of them in main
  bool from_cache = false;
};

// A compiled model.
class Artifact {
 public:
  // Code of this process, ready for a Session.
  std::shared_ptr<const Executable> executable() const { return executable_; }
  const BuildReport& report() const { return report_; }

 private:
  friend Artifact build(ir::Module, const BuildOptions&);
  friend Artifact load_artifact(const std::string&);
  std::shared_ptr<const Executable> executable_;
  BuildReport report_;
};

// The module after the graph passes, as `treadle print` shows it. Errors: those of the passes.
ir::Module optimize(ir::Module module, const BuildOptions& options, BuildReport* report = nullptr);

// The module after the last run of one pass of the pipeline. Errors: also InvalidArgument for a pass that the pipeline
// does not run.
ir::Module optimize_until(const ir::Module& module, const std::string& pass, const BuildOptions& options,
                          BuildReport* report = nullptr);

// The optimised module as loop IR. Errors: CodegenUnsupported.
lower::Program lower_module(const ir::Module& optimized, const BuildOptions& options, BuildReport* report = nullptr);

// Loads an exported shared object. Errors: Io, ArtifactInvalid.
Artifact load_artifact(const std::string& path);

// Compiles for this machine and loads the code. The same module and options give the same code.
Artifact build(ir::Module module, const BuildOptions& options = {});

enum class EmitKind { SharedObject, Object, Llvm, Assembly, Loop, Relay };
// Writes what `treadle compile --emit` asks for to `path`. A shared object is complete: treadle_model_load of the
// runtime loads it on a machine without compiler; constants above kSideFileBytes go to `path`.constants beside it.
// Errors: Io; CodegenUnsupported; InvalidArgument for a target that this kind cannot be made for.
void export_module(const ir::Module& module, const std::string& path, EmitKind kind, const BuildOptions& options = {},
                   BuildReport* report = nullptr);

inline constexpr int64_t kSideFileBytes = 64 << 20;

}  // namespace treadle
