// SPDX-License-Identifier: Apache-2.0
// A lowered program as machine code, with its manifest and constants.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codegen/codegen.h"
#include "lower/program.h"
#include "runtime/executable.h"

namespace treadle::driver {

// All functions of a program: kernels, pieces of main, main; the order in which they are compiled.
std::vector<const loop::Function*> functions_of(const lower::Program& program);

// One object per group of functions, compiled by `threads` threads; the same program gives the same bytes.
// Errors: CodegenUnsupported.
std::vector<codegen::Bytes> compile(const lower::Program& program, const Target& target, int opt_level, int threads);

// What the runtime must know of the program. `constants_file`: where the constants lie; empty: beside the code.
Manifest make_manifest(const lower::Program& program, const Target& target, const std::string& constants_file = "");

// All constants behind one another, each aligned, as the program's main expects them.
Tensor pack_constants(const std::vector<Tensor>& constants);
// The same; releases each one when it is copied.
Tensor pack_constants(std::vector<Tensor>&& constants);

// Loads the objects into this process.
std::shared_ptr<const Executable> load(lower::Program program, std::vector<codegen::Bytes> objects,
                                       const Target& target);

// Writes the shared object `path` (and `path`.constants when there are many). Errors: Io.
void write_shared(const lower::Program& program, std::vector<codegen::Bytes> objects, const Target& target,
                  const std::string& path);

}  // namespace treadle::driver
