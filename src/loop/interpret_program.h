// SPDX-License-Identifier: Apache-2.0
// What the interpreter runs: a function compiled once into blocks of register instructions. Vector expressions become
// one instruction per lane; expressions without loads stand in the outermost block in which their variables are known.
#pragma once

#include <cstdint>
#include <vector>

#include "loop/scalar.h"
#include "loop/stmt.h"

namespace treadle::loop {

enum class Op : uint8_t {
  Call,  // dst = function(a, b, c)
  AddI64,
  SubI64,
  MulI64,
  LtI64,
  AndBool,  // frequent calls, spelled out; dst = a op b
  AddF32,
  SubF32,
  MulF32,
  DivF32,
  AddF64,
  MulF64,
  Select,    // dst = a ? b : c
  Move,      // dst = a
  If,        // a: run block b, else block c (-1: none)
  Load,      // dst = element of access a
  Store,     // element of access a = b
  Loop,      // for dst in b iterations from a: run block c
  While,     // run block a; while register b then holds true: run block c, then a again
  Allocate,  // memory for buffer a while block c runs
};

struct Instruction {
  Op op;
  int32_t dst = -1, a = 0, b = 0, c = 0;
  ScalarFn function = nullptr;
};

using ReadFn = Scalar (*)(const void* data, int64_t index);
using WriteFn = void (*)(void* data, int64_t index, Scalar value);

struct Access {
  int32_t buffer;                // number of the slot
  std::vector<int32_t> indices;  // registers
  ReadFn read;
  WriteFn write;
};

struct BufferSlot {
  Buffer buffer;
  std::vector<int32_t> extents, strides;  // registers; no strides: dense
};

struct Program {
  std::vector<std::vector<Instruction>> blocks;  // 0 is the body; 1 computes the extents of the parameters
  std::vector<Access> accesses;
  std::vector<BufferSlot> buffers;  // the function's parameters come first
  std::vector<int32_t> scalars;     // registers of the function's scalars
  std::vector<Scalar> registers;    // initial values: constants, and 0
};

// Errors: InvalidArgument for what cannot be interpreted (Extern, Address); LoopInvalid for a variable or buffer that
// nothing defines.
Program compile_program(const Function& function);

}  // namespace treadle::loop
