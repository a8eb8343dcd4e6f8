// SPDX-License-Identifier: Apache-2.0
// What the tests of compiled code share: a TreadleContext without threads, and a way to run a loop function on tensors.
#pragma once

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "codegen/codegen.h"
#include "runtime/tensor.h"
#include "treadle/abi.h"

namespace treadle::codegen {

// Parallel loops run in chunks of up to 3 iterations, one after the other, last first, so that an order that is relied
// on shows.
class TestContext {
 public:
  TestContext() {
    context_.abi_version = TREADLE_ABI_VERSION;
    context_.num_threads = 1;
    context_.owner = this;
    context_.parallel_for = [](TreadleContext* context, TreadleParallelBody body, void* closure, int64_t extent) {
      self(context)->parallel_loops++;
      for (int64_t end = extent; end > 0; end -= 3) {
        if (const int32_t code = body(context, closure, std::max<int64_t>(end - 3, 0), end)) return code;
      }
      return int32_t{0};
    };
    context_.allocate = [](TreadleContext* context, int64_t bytes) -> void* {
      if (bytes > self(context)->memory_limit) return nullptr;
      self(context)->allocated++;
      return std::aligned_alloc(64, static_cast<size_t>((bytes + 63) / 64 * 64 + 64));
    };
    context_.release = [](TreadleContext* context, void* memory) {
      self(context)->released++;
      std::free(memory);
    };
    context_.runtime_kernel = [](TreadleContext* context, const char* name) -> TreadleRuntimeKernel {
      const auto found = self(context)->kernels.find(name);
      return found == self(context)->kernels.end() ? nullptr : found->second;
    };
    context_.fail = [](TreadleContext* context, const char* message) {
      self(context)->failure = message;
      return int32_t{7};
    };
    context_.profile = [](TreadleContext* context, int32_t kernel, int32_t begin) {
      self(context)->marks.emplace_back(kernel, begin);
    };
  }
  TreadleContext* get() { return &context_; }

  int parallel_loops = 0, allocated = 0, released = 0;
  int64_t memory_limit = int64_t{1} << 30;
  std::string failure;
  std::vector<std::pair<int32_t, int32_t>> marks;
  std::map<std::string, TreadleRuntimeKernel> kernels;

 private:
  static TestContext* self(TreadleContext* context) { return static_cast<TestContext*>(context->owner); }
  TreadleContext context_{};
};

// Runs `name` of the compiled functions.
inline int32_t run(Jit& jit, const std::string& name, TestContext& context, std::vector<Tensor>& args,
                   const std::vector<int64_t>& scalars = {}) {
  std::vector<void*> buffers;
  for (Tensor& arg : args) buffers.push_back(arg.data());
  return reinterpret_cast<TreadleKernel>(jit.lookup(name))(context.get(), buffers.data(), scalars.data());
}

inline Jit compile(const std::vector<loop::Function>& functions, const Target& target, const Options& options = {}) {
  Jit jit(target);
  jit.add(emit_object(functions, target, options));
  return jit;
}

}  // namespace treadle::codegen
