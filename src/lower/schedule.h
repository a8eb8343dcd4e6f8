// SPDX-License-Identifier: Apache-2.0
// Chooses and applies a schedule for the tensor expressions of one fused function.
#pragma once

#include <string>
#include <vector>

#include "base/target.h"
#include "loop/stmt.h"

namespace treadle::lower {

// One loop function that computes `outputs` from `inputs` on the target. Looks at the tensor expressions only.
loop::Function schedule_function(const std::string& name, const std::vector<loop::Tensor>& inputs, const std::vector<loop::Tensor>& outputs,
                                 const Target& target);

}  // namespace treadle::lower
