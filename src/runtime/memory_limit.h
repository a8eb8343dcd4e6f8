// SPDX-License-Identifier: Apache-2.0
// How much memory this process can have at all.
#pragma once

#include <cstdint>

namespace treadle {

// Bytes: the machine's memory, or what the control group of the process allows when that is less. Read once.
int64_t memory_limit();

}  // namespace treadle
