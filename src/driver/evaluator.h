// SPDX-License-Identifier: Apache-2.0
// Computes constant subgraphs with compiled code: what FoldConstant uses in the driver's pipeline.
#pragma once

#include "driver/build.h"
#include "pass/pass.h"

namespace treadle::driver {

// All closed expressions become one program that is compiled and run once, so that packing large weights runs at memory
// speed.
pass::Evaluator compiled_evaluator(const BuildOptions& options);

}  // namespace treadle::driver
