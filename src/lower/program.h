// SPDX-License-Identifier: Apache-2.0
// A whole module as loop IR: kernels, and the `main` that calls them.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/target.h"
#include "ir/expr.h"
#include "loop/stmt.h"

namespace treadle::lower {

// An input or output of the program, in the order of main's parameters and of its flattened result.
struct Port {
  std::string name;
  DType dtype;
  Shape shape;          // of an output with a data-dependent extent: with that symbol
  Shape bound;          // upper bound of `shape`
  bool bounded = true;  // `bound` has no data-dependent symbol; else main gives the output's memory
};

struct KernelInfo {
  std::string name;      // of the operators, "conv2d_add_relu"
  std::string source;    // nodes of the model
  std::string function;  // the loop function that runs it; several calls may share one
  Dim operations;        // floating-point operations of one call; 0: not known
};

// Buffers of `main`: inputs, outputs (empty when not bounded), constants, then the arena (uint8, `arena` bytes) and an
// int64 buffer for the late symbols' values and the slots. Its scalars: `symbols`, and the bounds of the late ones.
struct Program {
  std::vector<loop::Function> kernels;  // each once; structurally different from one another
  loop::Function main;
  std::vector<loop::Function> main_parts;  // pieces of a very long main, called by it
  std::vector<Tensor> constants;
  std::vector<Port> inputs, outputs;
  std::vector<std::string> symbols;        // bound by the inputs' shapes
  std::vector<std::string> late_symbols;   // bound while running
  std::map<std::string, Dim> late_bounds;  // upper bounds of those that have one, over `symbols`
  Dim arena;
  int slots = 0;  // for memory whose size is known only while running: pointers behind the late symbols' values
  std::vector<KernelInfo> calls;  // one per kernel call of main, by profile number
};

// Turns the tensor expressions of a primitive function into one loop function; the driver passes the schedules, tests a
// naive nest.
using Scheduler = std::function<loop::Function(const std::string& name, const std::vector<loop::Tensor>& inputs,
                                               const std::vector<loop::Tensor>& outputs)>;

struct LowerOptions {
  bool profile = false;  // main calls ctx->profile around every kernel
  bool in_place = true;  // elementwise kernels may write over an argument that dies
};

// The module's main must be as FuseOps leaves it: operators only inside primitive functions.
// Errors: CodegenUnsupported for closures, recursion and other values that cannot be compiled, naming the node.
Program lower(const ir::Module& module, const Scheduler& schedule, const LowerOptions& options = {});

}  // namespace treadle::lower
