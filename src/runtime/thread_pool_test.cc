// SPDX-License-Identifier: Apache-2.0
#include "runtime/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "runtime/cpu_limit.h"

namespace treadle {
namespace {

using LoopBody = std::function<int32_t(int64_t, int64_t)>;

int32_t run(int64_t extent, const LoopBody& body, int max_threads = 0) {
  auto call = [](void* closure, int64_t begin, int64_t end) {
    return (*static_cast<const LoopBody*>(closure))(begin, end);
  };
  return thread_pool::parallel_for(extent, max_threads, call, const_cast<LoopBody*>(&body));
}

class ThreadPool : public testing::Test {
 protected:
  void SetUp() override { thread_pool::set_num_threads(4); }
  void TearDown() override { thread_pool::set_num_threads(0); }
};

TEST_F(ThreadPool, RunsEachIterationOnce) {
  for (int threads : {1, 2, 3, 4, 7}) {
    thread_pool::set_num_threads(threads);
    for (int64_t extent : {0, 1, 2, 3, 5, 31, 64, 65, 1000, 100003}) {
      std::vector<int> times(extent);
      EXPECT_EQ(run(extent,
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i) ++times[i];
                      return 0;
                    }),
                0);
      EXPECT_EQ(std::count(times.begin(), times.end(), 1), extent) << threads << " threads, extent " << extent;
    }
  }
}

TEST_F(ThreadPool, NegativeAndHugeExtents) {
  EXPECT_EQ(run(-5, [](int64_t, int64_t) { return 1; }), 0);
  std::atomic<int64_t> sum{0};
  run(int64_t{1} << 62, [&](int64_t begin, int64_t end) { return sum += end - begin, 0; });
  EXPECT_EQ(sum, int64_t{1} << 62);
}

TEST_F(ThreadPool, ManyShortLoops) {
  std::vector<int64_t> values(64);
  for (int round = 0; round < 20000; ++round) {
    run(64, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) values[i] += i;
      return 0;
    });
  }
  for (int64_t i = 0; i < 64; ++i) EXPECT_EQ(values[i], 20000 * i);
}

// A thread that sleeps in its first chunk leaves the rest of its part to the others.
TEST_F(ThreadPool, IdleThreadsTakeOver) {
  thread_pool::set_num_threads(2);
  std::atomic<int> after_sleep{0};
  std::atomic<bool> slept{false};
  run(32, [&](int64_t begin, int64_t end) {
    if (begin == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      slept = true;
    } else if (slept) {
      after_sleep += static_cast<int>(end - begin);
    }
    return 0;
  });
  EXPECT_EQ(after_sleep, 0);
}

TEST_F(ThreadPool, LimitsThreads) {
  std::set<std::thread::id> ids;
  run(1000, [&](int64_t, int64_t) { return ids.insert(std::this_thread::get_id()), 0; }, 1);
  EXPECT_EQ(ids, std::set{std::this_thread::get_id()});
}

TEST_F(ThreadPool, NestedLoopsRunSerially) {
  std::vector<int> times(100 * 100);
  run(100, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto outer = std::this_thread::get_id();
      run(100, [&](int64_t inner_begin, int64_t inner_end) {
        for (int64_t j = inner_begin; j < inner_end; ++j) ++times[i * 100 + j];
        return std::this_thread::get_id() == outer ? 0 : 1;
      });
    }
    return 0;
  });
  EXPECT_EQ(std::count(times.begin(), times.end(), 1), 10000);
}

TEST_F(ThreadPool, GivesTheCodeOfAFailedBody) {
  EXPECT_EQ(run(1000, [](int64_t begin, int64_t end) { return begin <= 500 && 500 < end ? 7 : 0; }), 7);
  EXPECT_EQ(run(1000, [](int64_t, int64_t) { return 0; }), 0);
}

TEST_F(ThreadPool, NoExceptionLeavesALoop) {
  const LoopBody body = [](int64_t, int64_t) -> int32_t { throw std::runtime_error("from a body"); };
  EXPECT_EQ(run(1000, body), thread_pool::kBodyThrew);
  EXPECT_EQ(run(1, body), thread_pool::kBodyThrew);
  EXPECT_EQ(run(1000, [](int64_t, int64_t) { return 0; }), 0);
}

TEST_F(ThreadPool, ManyCallers) {
  std::vector<std::thread> callers;
  std::atomic<int64_t> total{0};
  for (int caller = 0; caller < 6; ++caller) {
    callers.emplace_back([&] {
      for (int round = 0; round < 500; ++round) {
        run(100, [&](int64_t begin, int64_t end) { return total += end - begin, 0; });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total, 6 * 500 * 100);
}

TEST_F(ThreadPool, WakesAfterSleeping) {
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // longer than the threads spin
    std::atomic<int64_t> sum{0};
    run(1000, [&](int64_t begin, int64_t end) { return sum += end - begin, 0; });
    EXPECT_EQ(sum, 1000);
  }
}

#if !defined(__SANITIZE_THREAD__)  // which does not follow a fork of a process with threads
TEST_F(ThreadPool, WorksInAForkedChild) {
  run(1000, [](int64_t, int64_t) { return 0; });
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::atomic<int64_t> sum{0};
    for (int round = 0; round < 100; ++round)
      run(1000, [&](int64_t begin, int64_t end) { return sum += end - begin, 0; });
    _exit(sum == 100 * 1000 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
#endif

TEST(CpuLimit, ReadsControlGroups) {
  const std::filesystem::path root = std::filesystem::path(testing::TempDir()) / ("cgroup-" + std::to_string(getpid()));
  auto write = [&](const char* path, const char* text) {
    std::filesystem::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  };
  write("a/b/cpu.max", "max 100000\n");
  write("a/cpu.max", "250000 100000\n");
  write("open/cpu.max", "max 100000\n");
  write("cpu,cpuacct/docker/x/cpu.cfs_quota_us", "50000\n");
  write("cpu,cpuacct/docker/x/cpu.cfs_period_us", "100000\n");
  write("cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  write("cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroup_cpus("0::/a/b\n", root), 3);
  EXPECT_EQ(cgroup_cpus("0::/open\n", root), 0);
  EXPECT_EQ(cgroup_cpus("0::/\n", root), 0);
  EXPECT_EQ(cgroup_cpus("5:memory:/docker/x\n4:cpu,cpuacct:/docker/x\n", root), 1);
  EXPECT_EQ(cgroup_cpus("4:cpu,cpuacct:/docker\n", root), 0);
  EXPECT_EQ(cgroup_cpus("nonsense", root), 0);
  std::filesystem::remove_all(root);
  EXPECT_GE(usable_cpus(), 1);
}

}  // namespace
}  // namespace treadle
