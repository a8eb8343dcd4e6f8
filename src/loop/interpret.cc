// SPDX-License-Identifier: Apache-2.0
// The reference evaluator: runs a function as interpret_compile.cc lays it out. Loops of every kind run serially.
#include <cstring>

#include "base/error.h"
#include "loop/interpret_program.h"

namespace treadle::loop {
namespace {

struct Memory {
  treadle::Tensor tensor;
  void* data = nullptr;
  int64_t elements = 0;
  std::vector<int64_t> extents, strides;
};

class Machine {
 public:
  Machine(const Function& function, Program program)
      : function_(function), program_(std::move(program)), memory_(program_.buffers.size()), r_(program_.registers) {}

  void run(const std::vector<treadle::Tensor>& args, const std::vector<int64_t>& scalars) {
    for (size_t i = 0; i < scalars.size(); ++i) r_[program_.scalars[i]].i = scalars[i];
    execute(1);
    for (size_t i = 0; i < args.size(); ++i) bind(i, args[i]);
    execute(0);
  }

 private:
  void bind(size_t number, const treadle::Tensor& tensor) {
    const BufferSlot& slot = program_.buffers[number];
    const BufferNode& buffer = *slot.buffer;
    auto wrong = [&](const std::string& what) {
      fail(ErrorCode::InvalidArgument, "{}: argument {} ({}) {}", function_.name, number, buffer.name, what);
    };
    if (!tensor.defined()) wrong("is missing");
    if (tensor.dtype() != buffer.dtype) wrong("is " + to_string(tensor.dtype()) + ", not " + to_string(buffer.dtype));
    Memory& memory = memory_[number];
    set_shape(slot, memory);
    // A buffer with strides of its own sees the argument as plain memory.
    if (slot.strides.empty() && tensor.shape() != memory.extents) {
      wrong(fmt::format("has shape ({}), not ({})", fmt::join(tensor.shape(), ", "), fmt::join(memory.extents, ", ")));
    }
    memory.tensor = tensor;
    memory.data = memory.tensor.data();
    memory.elements = tensor.size();
  }

  void set_shape(const BufferSlot& slot, Memory& memory) {
    memory.extents.clear();
    memory.strides.assign(slot.extents.size(), 1);
    for (int32_t reg : slot.extents) memory.extents.push_back(r_[reg].i);
    if (slot.strides.empty()) {
      uint64_t stride = 1;  // of an empty or negative extent no element is ever reached
      for (size_t i = memory.extents.size(); i-- > 0;) {
        memory.strides[i] = static_cast<int64_t>(stride);
        stride *= static_cast<uint64_t>(memory.extents[i]);
      }
    } else {
      for (size_t i = 0; i < slot.strides.size(); ++i) memory.strides[i] = r_[slot.strides[i]].i;
    }
  }

  void allocate(int32_t number) {
    const BufferSlot& slot = program_.buffers[number];
    Memory& memory = memory_[number];
    set_shape(slot, memory);
    std::vector<int64_t> shape = memory.extents;
    if (!slot.strides.empty()) {
      uint64_t last = 0;
      bool empty = false;
      for (size_t i = 0; i < shape.size(); ++i) {
        last += (static_cast<uint64_t>(shape[i]) - 1) * static_cast<uint64_t>(memory.strides[i]);
        empty |= shape[i] <= 0;
      }
      shape = {empty ? 0 : wrapped(last + 1)};
    }
    memory.tensor = treadle::Tensor(slot.buffer->dtype, std::move(shape));
    memory.data = memory.tensor.data();
    memory.elements = memory.tensor.size();
    std::memset(memory.data, 0xff, memory.tensor.bytes());  // NaN: what is read before it is written shows
  }

  int64_t place(const Access& access) const {
    const Memory& memory = memory_[access.buffer];
    uint64_t sum = 0;
    for (size_t i = 0; i < access.indices.size(); ++i) {
      const int64_t index = r_[access.indices[i]].i;
      if (index < 0 || index >= memory.extents[i]) out_of_bounds(access, i, index);
      sum += static_cast<uint64_t>(index) * static_cast<uint64_t>(memory.strides[i]);
    }
    const int64_t offset = wrapped(sum);
    if (offset < 0 || offset >= memory.elements) {
      fail(ErrorCode::LoopInvalid, "{}: element {} of {} is outside its {} elements", function_.name, offset,
           program_.buffers[access.buffer].buffer->name, memory.elements);
    }
    return offset;
  }

  [[noreturn]] void out_of_bounds(const Access& access, size_t axis, int64_t index) const {
    fail(ErrorCode::LoopInvalid, "{}: index {} of axis {} of {} is outside its extent {}", function_.name, index, axis,
         program_.buffers[access.buffer].buffer->name, memory_[access.buffer].extents[axis]);
  }

  void execute(int32_t block) {
    for (const Instruction& x : program_.blocks[block]) {
      switch (x.op) {
        case Op::Call:
          r_[x.dst] = x.function(r_[x.a], r_[x.b], r_[x.c]);
          break;
        case Op::AddI64:
          r_[x.dst].i = wrapped(bits(x.a) + bits(x.b));
          break;
        case Op::SubI64:
          r_[x.dst].i = wrapped(bits(x.a) - bits(x.b));
          break;
        case Op::MulI64:
          r_[x.dst].i = wrapped(bits(x.a) * bits(x.b));
          break;
        case Op::LtI64:
          r_[x.dst].i = r_[x.a].i < r_[x.b].i;
          break;
        case Op::AndBool:
          r_[x.dst].i = r_[x.a].i & r_[x.b].i;
          break;
        case Op::AddF32:
          r_[x.dst].f = single(x.a) + single(x.b);
          break;
        case Op::SubF32:
          r_[x.dst].f = single(x.a) - single(x.b);
          break;
        case Op::MulF32:
          r_[x.dst].f = single(x.a) * single(x.b);
          break;
        case Op::DivF32:
          r_[x.dst].f = single(x.a) / single(x.b);
          break;
        case Op::AddF64:
          r_[x.dst].f = r_[x.a].f + r_[x.b].f;
          break;
        case Op::MulF64:
          r_[x.dst].f = r_[x.a].f * r_[x.b].f;
          break;
        case Op::Select:
          r_[x.dst] = r_[x.a].i ? r_[x.b] : r_[x.c];
          break;
        case Op::Move:
          r_[x.dst] = r_[x.a];
          break;
        case Op::If:
          if (r_[x.a].i)
            execute(x.b);
          else if (x.c >= 0)
            execute(x.c);
          break;
        case Op::Load: {
          const Access& access = program_.accesses[x.a];
          r_[x.dst] = access.read(memory_[access.buffer].data, place(access));
          break;
        }
        case Op::Store: {
          const Access& access = program_.accesses[x.a];
          access.write(memory_[access.buffer].data, place(access), r_[x.b]);
          break;
        }
        case Op::Loop: {
          const int64_t extent = r_[x.b].i;
          const uint64_t min = bits(x.a);
          for (int64_t i = 0; i < extent; ++i) {
            r_[x.dst].i = wrapped(min + static_cast<uint64_t>(i));
            execute(x.c);
          }
          break;
        }
        case Op::While:
          for (execute(x.a); r_[x.b].i; execute(x.a)) execute(x.c);
          break;
        case Op::Allocate:
          allocate(x.a);
          execute(x.c);
          memory_[x.a] = Memory();
          break;
      }
    }
  }

  uint64_t bits(int32_t reg) const { return static_cast<uint64_t>(r_[reg].i); }
  float single(int32_t reg) const { return static_cast<float>(r_[reg].f); }
  static int64_t wrapped(uint64_t value) { return static_cast<int64_t>(value); }

  const Function& function_;
  Program program_;
  std::vector<Memory> memory_;
  std::vector<Scalar> r_;  // registers
};

// Scalars that the caller leaves out, read off the arguments' extents where a parameter's extent is just that variable.
std::vector<int64_t> infer_scalars(const Function& function, const std::vector<treadle::Tensor>& args) {
  std::vector<int64_t> values;
  for (const Var& scalar : function.scalars) {
    std::optional<int64_t> found;
    for (size_t i = 0; i < args.size() && !found; ++i) {
      const std::vector<Expr>& shape = function.buffers[i]->shape;
      if (!args[i].defined() || args[i].shape().size() != shape.size()) continue;
      for (size_t axis = 0; axis < shape.size(); ++axis) {
        if (shape[axis].same_as(scalar)) found = args[i].shape()[axis];
      }
    }
    if (!found) fail(ErrorCode::InvalidArgument, "{}: no value for scalar {}", function.name, scalar.name());
    values.push_back(*found);
  }
  return values;
}

}  // namespace

void interpret(const Function& function, const std::vector<treadle::Tensor>& args,
               const std::vector<int64_t>& scalars) {
  if (args.size() != function.buffers.size()) {
    fail(ErrorCode::InvalidArgument, "{}: {} arguments for {} buffers", function.name, args.size(),
         function.buffers.size());
  }
  const std::vector<int64_t> values = scalars.empty() ? infer_scalars(function, args) : scalars;
  if (values.size() != function.scalars.size()) {
    fail(ErrorCode::InvalidArgument, "{}: {} values for {} scalars", function.name, values.size(),
         function.scalars.size());
  }
  Machine(function, compile_program(function)).run(args, values);
}

}  // namespace treadle::loop
