// SPDX-License-Identifier: Apache-2.0
#include "lower/memory_plan.h"

#include <gtest/gtest.h>

#include <random>

namespace treadle::lower {
namespace {

TEST(MemoryPlan, DisjointLifetimesShareMemory) {
  MemoryPlan plan = plan_memory({{1000, 0, 1}, {1000, 1, 2}, {1000, 2, 3}, {1000, 3, 4}});
  EXPECT_EQ(plan.total.value(), 2048);
}

void check_live_buffers(int count) {
  std::mt19937 random(7);
  std::vector<Lifetime> lifetimes;
  for (int i = 0; i < count; ++i) {
    const int first = static_cast<int>(random() % count);
    lifetimes.push_back({static_cast<int64_t>(random() % 5000), first, first + static_cast<int>(random() % 20)});
  }
  MemoryPlan plan = plan_memory(lifetimes);
  for (size_t a = 0; a < lifetimes.size(); ++a) {
    const int64_t begin = plan.offsets[a].value(), end = begin + lifetimes[a].bytes.value();
    EXPECT_EQ(begin % 64, 0);
    EXPECT_LE(end, plan.total.value());
    for (size_t b = 0; b < a; ++b) {
      if (lifetimes[a].first > lifetimes[b].last || lifetimes[b].first > lifetimes[a].last) continue;
      const int64_t other = plan.offsets[b].value();
      EXPECT_TRUE(end <= other || other + lifetimes[b].bytes.value() <= begin) << a << " and " << b;
    }
  }
}

TEST(MemoryPlan, LiveBuffersNeverOverlap) { check_live_buffers(400); }

// So many buffers are placed in order of time.
TEST(MemoryPlan, ManyLiveBuffersNeverOverlap) { check_live_buffers(5000); }

TEST(MemoryPlan, LongChainsTakeLittleTimeAndMemory) {
  std::vector<Lifetime> lifetimes = {{4096, 0, 200000}};  // one value that is needed until the end
  for (int i = 0; i < 200000; ++i) lifetimes.push_back({256, i, i + 1});
  EXPECT_LE(plan_memory(lifetimes).total.value(), 4096 + 3 * 256);
}

TEST(MemoryPlan, SymbolicBuffersShareSlots) {
  const Dim n = Dim::symbol("N");
  MemoryPlan plan = plan_memory({{Dim(256) * n, 0, 1}, {Dim(256) * n, 1, 2}, {Dim(256) * n, 2, 3}, {64, 0, 3}});
  EXPECT_TRUE(plan.total == Dim(512) * n + 64) << to_string(plan.total);
  EXPECT_TRUE(plan.offsets[0] == plan.offsets[2]);
}

}  // namespace
}  // namespace treadle::lower
