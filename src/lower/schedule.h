// SPDX-License-Identifier: Apache-2.0
// Chooses and applies a schedule for the tensor expressions of one fused function.
#pragma once

#include <string>
#include <vector>

#include "base/target.h"
#include "loop/stmt.h"

namespace treadle::lower {

// What a tuner may choose; 0: the template's model of the target chooses.
struct Knobs {
  int64_t rows = 0;       // of the register tile of a contraction: pixels, or rows of a matrix
  int64_t vectors = 0;    // columns of the register tile, in vectors
  int64_t unroll = 0;     // of the innermost reduction loop
  int64_t row_block = 0;  // rows that one parallel task computes before it goes to the next columns
};

// One loop function that computes `outputs` from `inputs` on the target; every buffer has one axis (its elements in
// row-major order). Looks at the tensor expressions only. Results do not depend on the number of threads.
loop::Function schedule_function(const std::string& name, const std::vector<loop::Tensor>& inputs,
                                 const std::vector<loop::Tensor>& outputs, const Target& target,
                                 const Knobs& knobs = {});

}  // namespace treadle::lower
