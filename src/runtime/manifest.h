// SPDX-License-Identifier: Apache-2.0
// What a compiled model says of itself: its tensors, symbols, constants, memory and kernels. Travels as JSON in the
// artifact.
//
// How `main` is called (TreadleKernel of include/treadle/abi.h):
//   buffers  inputs, outputs, the constants' base, the arena's base, results; in the order of the manifest. Constants
//   and arena are
//            64-byte aligned (null when they have no bytes); inputs and outputs are dense, row-major, aligned to their
//            element.
//   scalars  the value of every symbol in the order of `symbols`. A symbol without `bound` is an extent of an input.
//   One with
//            `bound` depends on data: its scalar is that upper bound; main writes the true value to results[k], k
//            counting only such symbols, and writes the outputs densely with the true extents into buffers that have
//            room for the bounds. An output with a symbol that has no bound has no buffer (null): main gives it with
//            ctx->give_output. Behind the symbols' values `results` has `slots` null pointers for ctx->reserve.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/dtype.h"

namespace treadle {

// The bound of a symbol that is bound while running, and for which nothing is known before; it may never get a value.
inline constexpr const char* kInternalSymbol = "-";

struct Manifest {
  struct TensorInfo {
    std::string name;
    DType dtype;
    std::vector<std::string> shape;  // extents as runtime/extent.h reads them
  };
  struct Symbol {
    std::string name;
    // Empty: bound by the inputs; kInternalSymbol; else an extent over symbols before this one.
    std::string bound;
  };
  struct Constant {
    std::string name;
    int64_t offset;  // bytes from the constants' base
    DType dtype;
    std::vector<int64_t> shape;
  };
  struct Kernel {
    std::string name;
    std::string source;       // names of the model's nodes that it computes
    std::string flops = "0";  // floating-point operations of one call, an extent
  };

  uint32_t abi_version = 0;
  std::string name;
  std::string target;                     // as Target::text
  std::vector<std::string> cpu_features;  // that main uses (runtime/cpu_features.h)
  std::vector<TensorInfo> inputs, outputs;
  std::vector<Symbol> symbols;
  std::vector<Constant> constants;
  int64_t constants_bytes = 0;
  std::string constants_file;     // a file beside the artifact; empty: inside the artifact
  uint64_t constants_hash = 0;    // hash_bytes of that file; 0 when inside
  std::string arena_bytes = "0";  // an extent; main may ask for more with ctx->reserve
  int64_t slots = 0;              // for ctx->reserve, behind the values of symbols in the results
  std::vector<Kernel> kernels;    // in the numbering of ctx->profile
};

// JSON text, the same for equal manifests; a name that is no UTF-8 has its odd bytes replaced.
std::string to_json(const Manifest& manifest);
// Reads what to_json writes. Errors: ArtifactInvalid with what is missing or wrong; also another ABI version.
Manifest parse_manifest(std::string_view json);

}  // namespace treadle
