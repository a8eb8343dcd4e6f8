// SPDX-License-Identifier: Apache-2.0
// How large a kernel's code is, before it is made: what compile time is bounded by.
#pragma once

#include <cstdint>

#include "loop/stmt.h"

namespace treadle::lower {

// Statements and nodes of their expressions, a call of a transcendental function counted as the thirty operations that
// it becomes.
int64_t code_size(const loop::Function& function);

}  // namespace treadle::lower
