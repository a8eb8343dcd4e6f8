// SPDX-License-Identifier: Apache-2.0
#include "python/background.h"

#include <nanobind/nanobind.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

namespace nb = nanobind;

namespace treadle::python {
namespace {

constexpr auto kSignalInterval = std::chrono::milliseconds(20);

unsigned long main_thread = 0;
std::atomic<int> abandoned = 0;  // threads whose work nobody waits for

struct State {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false, is_abandoned = false;
  std::exception_ptr error;
};

void run(const std::shared_ptr<State>& state, std::function<void()> work) {
  try {
    work();
  } catch (...) {
    state->error = std::current_exception();
  }
  work = nullptr;  // releases what it holds before the caller goes on
  const std::lock_guard lock(state->mutex);
  state->done = true;
  if (state->is_abandoned) --abandoned;
  state->changed.notify_all();
}

// A process that ends while abandoned work still runs must not destroy what that work uses.
void leave_at_once(int status, void*) {
  if (abandoned == 0) return;
  std::fflush(nullptr);
  _exit(status);
}

}  // namespace

void init_background() {
  main_thread = nb::cast<unsigned long>(nb::module_::import_("threading").attr("main_thread")().attr("ident"));
  on_exit(leave_at_once, nullptr);
}

void run_interruptible(std::function<void()> work) {
  if (PyThread_get_thread_ident() != main_thread) {
    const nb::gil_scoped_release release;
    work();
    work = nullptr;
    return;
  }
  auto state = std::make_shared<State>();
  std::thread(run, state, std::move(work)).detach();
  while (true) {
    {
      const nb::gil_scoped_release release;
      std::unique_lock lock(state->mutex);
      if (state->changed.wait_for(lock, kSignalInterval, [&] { return state->done; })) break;
    }
    if (PyErr_CheckSignals() == 0) continue;
    const std::lock_guard lock(state->mutex);
    if (!state->done) {
      state->is_abandoned = true;
      ++abandoned;
    }
    throw nb::python_error();
  }
  if (state->error) std::rethrow_exception(state->error);
}

}  // namespace treadle::python
