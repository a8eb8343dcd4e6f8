// SPDX-License-Identifier: Apache-2.0
// What the compiler knows of the machine that it generates code for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace treadle {

// A CPU as code generation and schedules see it. Made from a text by codegen::parse_target.
struct Target {
  std::string text;                   // as the user wrote it, normalised: "llvm -mcpu=native"
  std::string triple;                 // "x86_64-pc-linux-gnu"
  std::string cpu;                    // LLVM's name of the processor, "znver3"
  std::vector<std::string> features;  // LLVM's, "+avx2"
  std::vector<std::string> required;  // LLVM's names of what generated code may use
  int vector_bytes = 16;              // width of a vector register that arithmetic should use
  int vector_registers = 16;
  bool fma = false;             // fused multiply-add in hardware
  bool masked_memory = false;   // cheap masked loads and stores of 32- and 64-bit elements
  int64_t l1_bytes = 32 << 10;  // data caches, per core
  int64_t l2_bytes = 512 << 10;
  int64_t l3_bytes = 8 << 20;  // shared

  // Lanes of one vector register for elements of `bytes` bytes.
  int lanes(int bytes) const { return vector_bytes / bytes; }
};

}  // namespace treadle
