// SPDX-License-Identifier: Apache-2.0
// Loop IR to machine code. LLVM stands behind this header and shows nowhere else.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/target.h"
#include "loop/stmt.h"

namespace treadle::codegen {

// Reads a target text: "llvm", "llvm -mcpu=native", TVM's spelling "llvm -mtriple=aarch64-linux-gnu -mcpu=…
// -mattr=+…,-…". Errors: TargetUnknown with the near matches.
Target parse_target(const std::string& text);
Target host_target();
// Names that parse_target knows, with a sentence each: for `treadle targets`.
std::vector<std::pair<std::string, std::string>> known_targets();

struct Options {
  int opt_level = 3;        // of LLVM: 0 … 3
  bool debug_names = true;  // function names and line tables by which a profiler shows operators
};

using Bytes = std::vector<char>;

// One relocatable object with all `functions`; deterministic. Each gets the C signature of include/treadle/abi.h.
// Errors: CodegenUnsupported. Thread safe.
Bytes emit_object(const std::vector<loop::Function>& functions, const Target& target, const Options& options = {});
std::string emit_llvm(const std::vector<loop::Function>& functions, const Target& target, const Options& options = {});
std::string emit_assembly(const std::vector<loop::Function>& functions, const Target& target,
                          const Options& options = {});
// An object whose symbols hold bytes: `name` and `name`_size (uint64), for a manifest or constants.
Bytes emit_data_object(const std::vector<std::pair<std::string, std::string_view>>& symbols, const Target& target);
// Links objects into one shared object with LLD. `exported`: symbols to show. Deterministic.
Bytes link_shared(const std::vector<Bytes>& objects, const std::vector<std::string>& exported, const Target& target);

// Code that runs in this process (ORC JIT); the memory lives as long as this object.
class Jit {
 public:
  explicit Jit(const Target& target);
  ~Jit();
  Jit(Jit&&) noexcept;
  void add(Bytes object);
  // Address of a function; all objects must have been added.
  void* lookup(const std::string& name);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace treadle::codegen
