// SPDX-License-Identifier: Apache-2.0
// The threads on which parallel loops run: one pool per process, shared by all models.
#pragma once

#include <cstdint>

namespace treadle::thread_pool {

// Runs iterations begin … end-1 of a loop. Gives 0, or a code that ends the loop.
using Body = int32_t (*)(void* closure, int64_t begin, int64_t end);

// The code of a loop whose body threw: no exception leaves a thread.
inline constexpr int32_t kBodyThrew = -1;

// Runs body over 0 … extent-1, each iteration once, by the calling thread and at most max_threads - 1 others (0: all
// that the pool has). Every thread starts with a contiguous part and takes from the others when it is done. Gives 0, or
// a code that a body gave; then some iterations may not have run. Iterations must be independent: how they are split
// depends on threads and timing. Runs on the calling thread alone when it is called from a body, or while another
// thread's loop has the pool. Thread safe; may be called in a child after fork. Threads start with the first loop that
// wants them, spin for kSpinMicroseconds when a loop is done, then sleep.
int32_t parallel_for(int64_t extent, int max_threads, Body body, void* closure) noexcept;

// True while this thread runs iterations of a loop beside other threads.
bool inside_loop() noexcept;

inline constexpr int kSpinMicroseconds = 50;
inline constexpr int kMaxThreads = 512;

// Threads that a loop may use, the calling one included: what set_num_threads set, else the environment variable
// TREADLE_NUM_THREADS, else usable_cpus() of cpu_limit.h.
int num_threads() noexcept;
// 1 … kMaxThreads, clamped; 0: back to the default. Takes effect with the next loop.
void set_num_threads(int count) noexcept;

}  // namespace treadle::thread_pool
