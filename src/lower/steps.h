// SPDX-License-Identifier: Apache-2.0
// The steps of a program before its memory is placed: what `main` will do, in order, on values that have no address
// yet.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ir/op.h"
#include "loop/stmt.h"
#include "type/assume.h"
#include "type/type.h"

namespace treadle::lower {

// A piece of memory that values live in.
struct Storage {
  // Dynamic: its size is known only while running, so it is reserved then.
  enum class Kind { Input, Output, Constant, Arena, Dynamic };
  Kind kind = Kind::Arena;
  int index = -1;  // of the input, output or constant
  Dim bytes;
  int first = 0, last = 0;  // steps between which an Arena or Dynamic buffer is alive
  int parent = -1;          // an Arena buffer that is a piece of another storage, from `offset` bytes on
  Dim offset;
};

// One tensor: where it lives, and how it is seen.
struct Leaf {
  int storage;
  Shape shape;
  DType dtype;
  Dim offset;  // bytes from the start of the storage
};

Dim bytes_of(const Shape& shape, DType dtype);

struct Step;
using Steps = std::vector<Step>;

struct KernelStep {
  std::string function;
  std::vector<Leaf> buffers;  // inputs, then outputs
  std::vector<loop::Expr> scalars;
  int call;                        // number for profiles
  int position;                    // of this step, for lifetimes
  std::vector<int> may_overwrite;  // inputs whose memory the one output may take over
};

struct RuntimeStep {
  ir::RuntimeCall kernel;
  std::vector<Leaf> inputs, outputs;
  int call;
};

struct CopyStep {
  Leaf from, to;
};

// The inputs, one behind the other, are the output: nothing happens for an input whose storage became that piece of the
// output's storage, the others are copied.
struct JoinStep {
  std::vector<Leaf> inputs;
  Leaf output;
  std::vector<Dim> offsets;  // bytes of each input's place in the output
};

struct IfStep {
  Leaf condition;
  std::shared_ptr<Steps> then_steps, else_steps;
};

// while (i < trip_count && condition) { body }; `counter` holds i (int64), set to 0 before.
struct LoopStep {
  Leaf counter;
  std::optional<Leaf> trip_count, condition;
  std::shared_ptr<Steps> condition_steps;  // compute `condition`; run before the first and after each iteration
  std::shared_ptr<Steps> body;
};

// Copies one iteration's value into row `counter` of the stacked output.
struct StackStep {
  Leaf from, to, counter;
  bool grow = false;                     // the output's memory grows with each row
  std::optional<std::string> row_bytes;  // a late symbol that holds the size of a row, which must stay what it is
};

// Binds late symbols, all at once: to an extent, or to the value of an integer scalar (a negative one counts as 0).
struct BindStep {
  struct Binding {
    std::string symbol;
    std::variant<Leaf, Dim> value;
  };
  std::vector<Binding> bindings;
};

// A Dynamic storage gets memory.
struct AllocateStep {
  int storage;
  Dim bytes;
};

// Ends the run with the message unless what the types assume holds.
struct CheckStep {
  Assumption assumption;
  std::string message;
};

// The value of an output that has no bound.
struct GiveStep {
  int output;
  Leaf value;
};

struct Step {
  std::variant<KernelStep, RuntimeStep, CopyStep, JoinStep, IfStep, LoopStep, StackStep, BindStep, AllocateStep,
               CheckStep, GiveStep>
      what;
};

}  // namespace treadle::lower
