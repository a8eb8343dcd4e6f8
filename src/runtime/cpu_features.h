// SPDX-License-Identifier: Apache-2.0
// Which extensions of its instruction set the processor has, by LLVM's names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace treadle {

// Whether missing_cpu_features can tell; all else is about tuning, or no code here uses it.
bool is_cpu_feature(std::string_view name);
// Those of the names that this processor lacks; names that are no CPU feature count as there.
std::vector<std::string> missing_cpu_features(const std::vector<std::string>& names);

}  // namespace treadle
