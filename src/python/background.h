// SPDX-License-Identifier: Apache-2.0
// Long work without the interpreter lock, which Ctrl-C can leave.
#pragma once

#include <functional>

namespace treadle::python {

// Remembers which thread is the main one; called once, when the module is loaded.
void init_background();

// Runs `work` without the interpreter lock. In the main thread it runs on another thread, while this one looks for
// signals: when a handler raises (KeyboardInterrupt), that is thrown (nanobind::python_error) and the work ends
// unheeded later, so it must own all that it touches. Errors: what `work` throws.
void run_interruptible(std::function<void()> work);

}  // namespace treadle::python
