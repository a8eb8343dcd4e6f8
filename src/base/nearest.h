// SPDX-License-Identifier: Apache-2.0
// Near matches of a misspelt name, for hints.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace treadle {

// Up to three of `candidates`, nearest first by edit distance (Levenshtein 1966), quoted and joined by ", "; all far:
// the nearest one.
std::string nearest(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace treadle
