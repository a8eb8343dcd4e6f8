// SPDX-License-Identifier: Apache-2.0
// Places the storages of a step list in memory and writes `main` as loop IR.
#pragma once

#include <vector>

#include "lower/program.h"
#include "lower/steps.h"

namespace treadle::lower {

// Fills main, main_parts and arena of `program`, whose ports, constants, symbols and calls are there already.
void build_main(const Steps& steps, std::vector<Storage> storages, const LowerOptions& options, Program& program);

}  // namespace treadle::lower
