// SPDX-License-Identifier: Apache-2.0
// The memory and the TreadleContext of one run: what compiled code sees of the runtime. Kept by a session for its next
// run.
#pragma once

#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/tensor.h"
#include "treadle/abi.h"

namespace treadle {

// Time that a kernel took, over all its calls.
struct KernelTime {
  int64_t calls = 0;
  int64_t nanoseconds = 0;
};

class RunState {
 public:
  RunState();
  ~RunState();
  RunState(const RunState&) = delete;
  RunState& operator=(const RunState&) = delete;

  // Prepares a run. `profile`: null, or one entry per kernel, to which times are added; must outlive the run.
  void begin(int max_threads, std::vector<KernelTime>* profile);
  // Takes back what the run did not release; memory of sizes that it did not ask for is freed.
  void end();

  // 64-byte aligned; contents undefined; grows when needed. Null for 0. Errors: Limit.
  void* arena(int64_t bytes);

  TreadleContext* context() { return &context_; }
  // What compiled code said of its failure; empty when it did not.
  const std::string& message() const { return message_; }

  std::vector<void*> buffers;
  std::vector<int64_t> scalars;
  std::vector<int64_t> results;
  std::vector<Tensor> given;  // by output: what compiled code gave; undefined for those that the caller made room for

 private:
  struct Block {
    void* data;
    size_t bytes;
    bool in_use, used;       // used: in this run, or another of its size was
    std::thread::id holder;  // that asked for it last
  };

  static RunState& of(TreadleContext* context) { return *static_cast<RunState*>(context->owner); }
  static int32_t parallel_for(TreadleContext* context, TreadleParallelBody body, void* closure,
                              int64_t extent) noexcept;
  static void* allocate(TreadleContext* context, int64_t bytes) noexcept;
  static void release(TreadleContext* context, void* memory) noexcept;
  static int32_t fail(TreadleContext* context, const char* message) noexcept;
  static void profile(TreadleContext* context, int32_t kernel, int32_t begin) noexcept;
  static int32_t reserve(TreadleContext* context, void** slot, int64_t bytes, int32_t keep) noexcept;
  static int32_t give_output(TreadleContext* context, int32_t output, const TreadleTensorRef* value) noexcept;
  Tensor take(const TreadleTensorRef& value);
  // A free block, made when there is none; null when memory is short. mutex_ is held.
  Block* serial_block(size_t bytes);
  Block* loop_block(size_t bytes);
  bool add_block(size_t bytes);

  TreadleContext context_{};
  Tensor arena_;
  std::mutex mutex_;           // of blocks_ and message_: bodies of parallel loops may allocate and fail
  std::vector<Block> blocks_;  // memory for `allocate`, kept for the next run
  std::string message_;
  std::vector<KernelTime>* profile_ = nullptr;
  std::vector<std::chrono::steady_clock::time_point> kernel_starts_;
};

}  // namespace treadle
