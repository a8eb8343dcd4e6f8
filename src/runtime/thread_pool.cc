// SPDX-License-Identifier: Apache-2.0
// The iterations of a loop are cut into chunks; each participant owns a range of chunks, takes one at a time from its
// front, and when it is empty takes the back half of the fullest other range. A loop is over for the caller when no
// range has a chunk left and no worker is inside it: a worker that the system has not woken yet is not waited for, its
// range has been taken by others.
#include "runtime/thread_pool.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "runtime/cpu_limit.h"

namespace treadle::thread_pool {
namespace {

constexpr int kChunksPerThread = 16;  // so a thread waits at most for a sixteenth of another's part

inline void pause_cpu() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// A range of chunks: first in the high half, end in the low half, so that both change at once.
struct alignas(64) Range {
  std::atomic<uint64_t> chunks{0};
  static uint64_t pack(uint64_t first, uint64_t end) { return first << 32 | end; }
  static uint64_t first(uint64_t range) { return range >> 32; }
  static uint64_t end(uint64_t range) { return range & 0xffffffffu; }
  static uint64_t count(uint64_t range) { return end(range) - first(range); }
};

thread_local bool in_loop = false;

class Pool {
 public:
  int32_t run(int64_t extent, int participants, Body body, void* closure);
  // Held by the thread whose loop has the pool.
  std::mutex busy;

 private:
  // The gate to the current loop. High half: number of the loop; kOpen: workers may enter; below: how many are inside.
  static constexpr uint64_t kOpen = 1u << 31;
  static uint64_t loop_number(uint64_t gate) { return gate >> 32; }
  static uint64_t inside(uint64_t gate) { return gate & (kOpen - 1); }

  void start_workers(int count);
  void worker();
  uint64_t wait_for_loop(uint64_t seen);
  bool enter();
  void take_chunks(int slot);
  bool steal(int slot);
  void run_chunk(uint64_t chunk);

  // The loop; written by its caller while the gate is closed and nobody is inside.
  int64_t extent_ = 0;
  int64_t num_chunks_ = 0;
  int participants_ = 0;
  Body body_ = nullptr;
  void* closure_ = nullptr;
  std::atomic<int> next_slot_{0};
  std::atomic<int32_t> code_{0};
  Range ranges_[kMaxThreads];

  alignas(64) std::atomic<uint64_t> gate_{0};
  std::atomic<int> sleepers_{0};
  std::mutex sleep_mutex_;
  std::condition_variable wake_;
  int workers_ = 0;  // guarded by `busy`
};

void Pool::run_chunk(uint64_t chunk) {
  // The first `rest` chunks have one iteration more.
  const int64_t size = extent_ / num_chunks_, rest = extent_ % num_chunks_, index = static_cast<int64_t>(chunk);
  const int64_t begin = index * size + std::min(index, rest);
  const int64_t end = begin + size + (index < rest ? 1 : 0);
  int32_t code;
  try {
    code = body_(closure_, begin, end);
  } catch (...) {
    code = kBodyThrew;
  }
  int32_t none = 0;
  if (code != 0) code_.compare_exchange_strong(none, code, std::memory_order_relaxed);
}

void Pool::take_chunks(int slot) {
  std::atomic<uint64_t>& own = ranges_[slot].chunks;
  do {
    uint64_t range = own.load(std::memory_order_relaxed);
    while (Range::count(range) > 0) {
      if (code_.load(std::memory_order_relaxed) != 0) return;
      const uint64_t chunk = Range::first(range);
      if (!own.compare_exchange_weak(range, Range::pack(chunk + 1, Range::end(range)), std::memory_order_relaxed))
        continue;
      run_chunk(chunk);
      range = own.load(std::memory_order_relaxed);
    }
  } while (steal(slot));
}

// Moves the back half of the fullest other range to the empty range of `slot`; false when all are empty.
bool Pool::steal(int slot) {
  for (;;) {
    int victim = -1;
    uint64_t range = 0;
    for (int i = 0; i < participants_; ++i) {
      const uint64_t candidate = ranges_[i].chunks.load(std::memory_order_relaxed);
      if (Range::count(candidate) > Range::count(range)) victim = i, range = candidate;
    }
    if (victim < 0) return false;
    const uint64_t middle = Range::first(range) + Range::count(range) / 2;
    if (ranges_[victim].chunks.compare_exchange_strong(range, Range::pack(Range::first(range), middle),
                                                       std::memory_order_relaxed)) {
      ranges_[slot].chunks.store(Range::pack(middle, Range::end(range)), std::memory_order_relaxed);
      return true;
    }
  }
}

int32_t Pool::run(int64_t extent, int participants, Body body, void* closure) {
  start_workers(participants - 1);
  participants = std::min(participants, workers_ + 1);
  extent_ = extent;
  participants_ = participants;
  num_chunks_ = std::min<int64_t>(extent, static_cast<int64_t>(participants) * kChunksPerThread);
  body_ = body;
  closure_ = closure;
  next_slot_.store(1, std::memory_order_relaxed);
  code_.store(0, std::memory_order_relaxed);
  for (int i = 0; i < participants; ++i) {
    ranges_[i].chunks.store(Range::pack(num_chunks_ * i / participants, num_chunks_ * (i + 1) / participants),
                            std::memory_order_relaxed);
  }
  const uint64_t number = loop_number(gate_.load(std::memory_order_relaxed)) + 1;
  gate_.store(number << 32 | kOpen, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) > 0) {
    {
      std::lock_guard lock(sleep_mutex_);
    }  // a worker between its last look at the gate and its sleep holds the mutex
    wake_.notify_all();
  }

  in_loop = true;
  take_chunks(0);
  in_loop = false;

  gate_.fetch_and(~kOpen, std::memory_order_acq_rel);
  for (int spins = 0; inside(gate_.load(std::memory_order_acquire)) != 0; ++spins) {
    if (spins < 1024)
      pause_cpu();
    else
      std::this_thread::yield();  // more threads than CPUs
  }
  return code_.load(std::memory_order_relaxed);
}

bool Pool::enter() {
  uint64_t gate = gate_.load(std::memory_order_acquire);
  while ((gate & kOpen) != 0) {
    if (gate_.compare_exchange_weak(gate, gate + 1, std::memory_order_acq_rel)) return true;
  }
  return false;
}

// Gives the number of a loop after `seen`: spins, then sleeps until there is one.
uint64_t Pool::wait_for_loop(uint64_t seen) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(kSpinMicroseconds);
  do {
    for (int i = 0; i < 32; ++i) {
      const uint64_t number = loop_number(gate_.load(std::memory_order_acquire));
      if (number != seen) return number;
      pause_cpu();
    }
  } while (std::chrono::steady_clock::now() < until);
  std::unique_lock lock(sleep_mutex_);
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  uint64_t number = seen;
  wake_.wait(lock, [&] { return (number = loop_number(gate_.load(std::memory_order_seq_cst))) != seen; });
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
  return number;
}

void Pool::worker() {
  in_loop = true;  // a loop inside a body runs serially
  for (uint64_t seen = 0;;) {
    seen = wait_for_loop(seen);
    if (!enter()) continue;
    const int slot = next_slot_.fetch_add(1, std::memory_order_relaxed);
    if (slot < participants_) take_chunks(slot);
    gate_.fetch_sub(1, std::memory_order_acq_rel);
  }
}

// Starts threads until there are `count`, or as many as the system gives. They never end: the pool lives as long as the
// process.
void Pool::start_workers(int count) {
  if (workers_ >= count) return;
  sigset_t all, before;  // signals belong to the program's own threads
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    for (; workers_ < count; ++workers_) std::thread([this] { worker(); }).detach();
  } catch (const std::exception&) {  // no more threads: fewer will do
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// Null until the first loop, and in a child after fork, which has none of the threads. Never freed: threads use it
// until the end.
std::atomic<Pool*> current_pool{nullptr};
std::atomic<int> chosen_threads{0};

void forget_pool() { current_pool.store(nullptr, std::memory_order_release); }

Pool* get_pool() {
  Pool* pool = current_pool.load(std::memory_order_acquire);
  if (pool) return pool;
  static const int registered = pthread_atfork(nullptr, nullptr, forget_pool);
  (void)registered;
  Pool* fresh = new Pool();
  if (current_pool.compare_exchange_strong(pool, fresh, std::memory_order_acq_rel)) return fresh;
  delete fresh;
  return pool;
}

int default_threads() {
  if (const char* text = std::getenv("TREADLE_NUM_THREADS")) {
    char* end = nullptr;
    const long count = std::strtol(text, &end, 10);
    if (end != text && *end == '\0' && count > 0) return static_cast<int>(std::min<long>(count, kMaxThreads));
    std::fprintf(stderr, "treadle: TREADLE_NUM_THREADS=%s is no number of threads and has no effect\n", text);
  }
  return std::min(usable_cpus(), kMaxThreads);
}

int32_t run_serially(int64_t extent, Body body, void* closure) {
  try {
    return body(closure, 0, extent);
  } catch (...) {
    return kBodyThrew;
  }
}

}  // namespace

bool inside_loop() noexcept { return in_loop; }

int num_threads() noexcept {
  if (const int chosen = chosen_threads.load(std::memory_order_relaxed); chosen > 0) return chosen;
  static const int standard = default_threads();
  return standard;
}

void set_num_threads(int count) noexcept {
  chosen_threads.store(std::clamp(count, 0, kMaxThreads), std::memory_order_relaxed);
}

int32_t parallel_for(int64_t extent, int max_threads, Body body, void* closure) noexcept {
  if (extent <= 0) return 0;
  int participants = max_threads > 0 ? std::min(max_threads, num_threads()) : num_threads();
  participants = static_cast<int>(std::min<int64_t>(participants, extent));
  if (participants <= 1 || in_loop) return run_serially(extent, body, closure);
  Pool* pool = nullptr;
  try {
    pool = get_pool();
  } catch (...) {
    return run_serially(extent, body, closure);
  }
  std::unique_lock lock(pool->busy, std::try_to_lock);
  if (!lock.owns_lock()) return run_serially(extent, body, closure);
  return pool->run(extent, participants, body, closure);
}

}  // namespace treadle::thread_pool
