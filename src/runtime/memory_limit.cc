// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory_limit.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <limits>

namespace treadle {
namespace {

// The number in a file of the control group; the largest when there is none ("max", no such file).
int64_t number_in(const char* path) {
  int64_t value = 0;
  bool found = false;
  if (std::FILE* file = std::fopen(path, "re")) {
    long long number = 0;
    found = std::fscanf(file, "%lld", &number) == 1 && number > 0;
    value = number;
    std::fclose(file);
  }
  return found ? value : std::numeric_limits<int64_t>::max();
}

}  // namespace

int64_t memory_limit() {
  static const int64_t limit = [] {
    const int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    const int64_t machine = pages > 0 && page > 0 ? pages * page : std::numeric_limits<int64_t>::max();
    return std::min(
        {machine, number_in("/sys/fs/cgroup/memory.max"), number_in("/sys/fs/cgroup/memory/memory.limit_in_bytes")});
  }();
  return limit;
}

}  // namespace treadle
