// SPDX-License-Identifier: Apache-2.0
// Kernel sharing: layers that differ in their sizes only become structurally equal functions.
#pragma once

#include <vector>

#include "loop/stmt.h"

namespace treadle::schedule {

struct Abstracted {
  loop::Function function;            // with int64 scalars in place of large constants
  std::vector<loop::Expr> arguments;  // their values, one per scalar of `function`
};

// Replaces constants in loop extents and addresses that do not matter for the quality of the code by scalars.
Abstracted abstract_constants(const loop::Function& function);

}  // namespace treadle::schedule
