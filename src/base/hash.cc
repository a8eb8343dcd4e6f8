// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <cstring>

namespace treadle {

uint64_t hash_bytes(const void* data, size_t size, uint64_t seed) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  // Four lanes, so that large constants hash at memory speed.
  uint64_t lanes[4] = {seed, seed + 1, seed + 2, seed + 3};
  size_t i = 0;
  for (; i + 32 <= size; i += 32) {
    for (int lane = 0; lane < 4; ++lane) {
      uint64_t word;
      std::memcpy(&word, bytes + i + 8 * lane, 8);
      lanes[lane] = hash_combine(lanes[lane], word);
    }
  }
  uint64_t hash = hash_combine(size, lanes[0]);
  for (int lane = 1; lane < 4; ++lane) hash = hash_combine(hash, lanes[lane]);
  for (; i < size; i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes + i, size - i < 8 ? size - i : 8);
    hash = hash_combine(hash, word);
  }
  return hash;
}

}  // namespace treadle
