// SPDX-License-Identifier: Apache-2.0
// Kernels that differ only in sizes become one function with the sizes as arguments, so that layers of a net share
// compiled code.
#pragma once

#include <vector>

#include "loop/stmt.h"

namespace treadle::schedule {

struct Abstracted {
  loop::Function function;            // with int64 scalars in place of large constants
  std::vector<loop::Expr> arguments;  // their values, one per scalar of `function`: the scalars it had, then numbers
};

// Takes a finished function (flat buffers). Extents of loops, sizes of buffers, strides and offsets above small
// thresholds become int64 scalars, named and ordered by where they first occur; tile sizes, lanes, taps of unrolled
// loops and small strides stay constants, for the code's sake. Functions of equal structure give structurally equal
// results.
Abstracted abstract_constants(const loop::Function& function);

}  // namespace treadle::schedule
