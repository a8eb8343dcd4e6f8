// SPDX-License-Identifier: Apache-2.0
// Places the intermediate tensors of `main` in one arena.
#pragma once

#include <vector>

#include "type/dim.h"

namespace treadle::lower {

// One buffer of the arena: how large, and during which steps (inclusive) its contents matter.
struct Lifetime {
  Dim bytes;
  int first = 0, last = 0;
};

struct MemoryPlan {
  std::vector<Dim> offsets;  // bytes, multiples of 64, one per lifetime
  Dim total;                 // bytes
};

// Buffers that live at the same time never overlap.
//   static sizes    lowest free offset, largest buffer first (greedy by size, Pisarchyk and Lee 2020, arXiv
//   2001.03288); thousands of
//                   buffers in order of time, each in the smallest free stretch
//   symbolic sizes  behind the static ones: buffers with disjoint lifetimes share a slot as large as their largest;
//   slots of
//                   provably equal sizes first
// Cost: O(n log n + n * slots), and at most 4096² / 2 for greedy by size.
MemoryPlan plan_memory(const std::vector<Lifetime>& lifetimes);

}  // namespace treadle::lower
