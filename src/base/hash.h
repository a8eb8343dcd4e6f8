// SPDX-License-Identifier: Apache-2.0
// 64-bit hashing of values and byte ranges; the same on every machine and in every run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace treadle {

// Mixes `value` into `seed` (the finaliser of splitmix64, Steele et al. 2014).
constexpr uint64_t hash_combine(uint64_t seed, uint64_t value) {
  uint64_t z = seed + 0x9e3779b97f4a7c15ull + value;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// Hash of `size` bytes; reads eight at a time.
uint64_t hash_bytes(const void* data, size_t size, uint64_t seed = 0);

inline uint64_t hash_string(std::string_view text, uint64_t seed = 0) {
  return hash_bytes(text.data(), text.size(), seed);
}

}  // namespace treadle
