// SPDX-License-Identifier: Apache-2.0
#include "runtime/run_state.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "runtime/kernels/kernels.h"
#include "runtime/memory_limit.h"
#include "runtime/thread_pool.h"

namespace treadle {

RunState::RunState() {
  context_.abi_version = TREADLE_ABI_VERSION;
  context_.owner = this;
  context_.parallel_for = parallel_for;
  context_.allocate = allocate;
  context_.release = release;
  context_.runtime_kernel = [](TreadleContext*, const char* name) { return find_runtime_kernel(name); };
  context_.fail = fail;
  context_.reserve = reserve;
  context_.give_output = give_output;
}

RunState::~RunState() {
  for (const Block& block : blocks_) std::free(block.data);
}

void RunState::begin(int max_threads, std::vector<KernelTime>* profile_times) {
  const int threads = thread_pool::num_threads();
  context_.num_threads = static_cast<uint32_t>(max_threads > 0 ? std::min(max_threads, threads) : threads);
  profile_ = profile_times;
  if (profile_) kernel_starts_.resize(profile_->size());
  context_.profile = profile_ ? profile : nullptr;
  message_.clear();
  given.clear();
}

void RunState::end() {
  std::erase_if(blocks_, [](Block& block) {
    if (!block.used) {
      std::free(block.data);
      return true;
    }
    block.in_use = block.used = false;
    return false;
  });
  profile_ = nullptr;
}

void* RunState::arena(int64_t bytes) {
  if (bytes <= 0) return nullptr;
  if (!arena_.defined() || arena_.size() < bytes) {
    arena_ = Tensor();  // the old one first: both need not fit
    arena_ = Tensor(dtype::uint8_, {bytes});
  }
  return arena_.data();
}

int32_t RunState::parallel_for(TreadleContext* context, TreadleParallelBody body, void* closure,
                               int64_t extent) noexcept {
  struct Loop {
    TreadleContext* context;
    TreadleParallelBody body;
    void* closure;
  } loop{context, body, closure};
  auto run = [](void* data, int64_t begin, int64_t end) {
    const Loop& l = *static_cast<const Loop*>(data);
    return l.body(l.context, l.closure, begin, end);
  };
  return thread_pool::parallel_for(extent, static_cast<int>(context->num_threads), run, &loop);
}

bool RunState::add_block(size_t bytes) {
  void* data = std::aligned_alloc(kAlignment, bytes);
  if (!data) return false;
  try {
    blocks_.push_back({data, bytes, false, true, {}});
  } catch (...) {
    std::free(data);
    return false;
  }
  return true;
}

// The smallest free one that is at most twice too large.
RunState::Block* RunState::serial_block(size_t bytes) {
  Block* best = nullptr;
  for (Block& block : blocks_) {
    if (block.bytes == bytes) block.used = true;
    if (block.in_use || block.bytes < bytes || block.bytes > 2 * bytes) continue;
    if (!best || block.bytes < best->bytes) best = &block;
  }
  return best ? best : add_block(bytes) ? &blocks_.back() : nullptr;
}

// Which threads take part in a loop, and which share of it they do, differs from run to run. The first that asks for a
// size makes blocks for all of them, so that later runs of a model of fixed shapes find what they need.
RunState::Block* RunState::loop_block(size_t bytes) {
  bytes = std::bit_ceil(bytes);  // few sizes, so that kernels share their blocks
  size_t made = 0, held = 0;
  for (Block& block : blocks_) {
    if (block.bytes != bytes) continue;
    block.used = true;
    ++made;
    if (block.in_use && block.holder == std::this_thread::get_id()) ++held;
  }
  const size_t wanted = context_.num_threads * (held + 1);
  while (made < wanted && add_block(bytes)) ++made;
  for (Block& block : blocks_) {
    if (block.bytes == bytes && !block.in_use) return &block;
  }
  return nullptr;
}

void* RunState::allocate(TreadleContext* context, int64_t bytes) noexcept {
  if (bytes < 0 || bytes > std::min(memory_limit(), INT64_MAX / 4)) return nullptr;
  const size_t size = (static_cast<size_t>(bytes) + kAlignment) / kAlignment * kAlignment;
  RunState& state = of(context);
  std::lock_guard lock(state.mutex_);
  Block* block = thread_pool::inside_loop() ? state.loop_block(size) : state.serial_block(size);
  if (!block) return nullptr;
  block->in_use = block->used = true;
  block->holder = std::this_thread::get_id();
  return block->data;
}

void RunState::release(TreadleContext* context, void* memory) noexcept {
  RunState& state = of(context);
  std::lock_guard lock(state.mutex_);
  for (Block& block : state.blocks_) {
    if (block.data == memory) block.in_use = false;
  }
}

int32_t RunState::reserve(TreadleContext* context, void** slot, int64_t bytes, int32_t keep) noexcept {
  RunState& state = of(context);
  int64_t room = 0;
  if (*slot) {
    std::lock_guard lock(state.mutex_);
    for (const Block& block : state.blocks_) {
      if (block.data == *slot) room = static_cast<int64_t>(block.bytes);
    }
    if (bytes <= room) return 0;
  }
  void* larger = allocate(context, keep ? std::max(bytes, room + room / 2) : bytes);
  if (!larger) return fail(context, fmt::format("no memory for a value of {} bytes", bytes).c_str());
  if (*slot) {
    if (keep) std::memcpy(larger, *slot, static_cast<size_t>(room));
    release(context, *slot);
  }
  *slot = larger;
  return 0;
}

// The value as a tensor that outlives the run.
Tensor RunState::take(const TreadleTensorRef& value) {
  const DType dtype{static_cast<TypeCode>(value.type_code), value.bits};
  std::vector<int64_t> shape(value.shape, value.shape + value.rank);
  std::lock_guard lock(mutex_);
  for (Block& block : blocks_) {
    if (!block.in_use || block.data != value.data) continue;
    std::shared_ptr<const void> owner(block.data, [](const void* data) { std::free(const_cast<void*>(data)); });
    block = blocks_.back();
    blocks_.pop_back();
    return Tensor(dtype, std::move(shape), value.data, std::move(owner));
  }
  return Tensor(dtype, std::move(shape), value.data, nullptr).clone();
}

int32_t RunState::give_output(TreadleContext* context, int32_t output, const TreadleTensorRef* value) noexcept {
  RunState& state = of(context);
  try {
    if (state.given.size() <= static_cast<size_t>(output)) state.given.resize(static_cast<size_t>(output) + 1);
    state.given[static_cast<size_t>(output)] = state.take(*value);
    return 0;
  } catch (const std::exception& error) {
    return fail(context, error.what());
  }
}

int32_t RunState::fail(TreadleContext* context, const char* message) noexcept {
  RunState& state = of(context);
  std::lock_guard lock(state.mutex_);
  try {
    if (state.message_.empty()) state.message_ = message;
  } catch (...) {  // no memory for the message: the code alone tells
  }
  return 1;
}

void RunState::profile(TreadleContext* context, int32_t kernel, int32_t begin) noexcept {
  RunState& state = of(context);
  const auto now = std::chrono::steady_clock::now();
  if (kernel < 0 || static_cast<size_t>(kernel) >= state.profile_->size()) return;
  if (begin) {
    state.kernel_starts_[kernel] = now;
    return;
  }
  KernelTime& time = (*state.profile_)[kernel];
  time.calls += 1;
  time.nanoseconds += std::chrono::duration_cast<std::chrono::nanoseconds>(now - state.kernel_starts_[kernel]).count();
}

}  // namespace treadle
