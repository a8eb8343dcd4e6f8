// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu_limit.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

namespace treadle {
namespace {

// Quota divided by period, rounded up; 0: no limit.
int whole_cpus(double quota, double period) {
  if (quota <= 0 || period <= 0) return 0;
  return static_cast<int>(std::min((quota + period - 1) / period, 1e6));
}

int version2_cpus(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");  // "max 100000" or "150000 100000"
  double quota = 0, period = 0;
  return file >> quota >> period ? whole_cpus(quota, period) : 0;
}

int version1_cpus(const std::string& folder) {
  std::ifstream quota_file(folder + "/cpu.cfs_quota_us"), period_file(folder + "/cpu.cfs_period_us");
  double quota = 0, period = 0;
  return quota_file >> quota && period_file >> period ? whole_cpus(quota, period) : 0;
}

// The smallest limit of root/path and the folders above it, down to root.
int smallest(const std::string& root, std::string path, int (*read)(const std::string&)) {
  int result = 0;
  for (;;) {
    while (!path.empty() && path.back() == '/') path.pop_back();
    if (const int cpus = read(root + path); cpus > 0) result = result == 0 ? cpus : std::min(result, cpus);
    if (path.empty()) return result;
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
}

int affinity_cpus() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::thread::hardware_concurrency());  // more CPUs than the set has room for
}

}  // namespace

int cgroup_cpus(const std::string& groups, const std::string& root) {
  int result = 0;
  std::istringstream lines(groups);  // "0::/user.slice" (version 2), "4:cpu,cpuacct:/docker/ab12" (version 1)
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    int cpus = 0;
    if (controllers.empty()) {
      cpus = smallest(root, path, version2_cpus);
    } else if (("," + controllers + ",").find(",cpu,") != std::string::npos) {
      cpus = smallest(root + "/" + controllers, path, version1_cpus);
      if (cpus == 0) cpus = smallest(root + "/cpu", path, version1_cpus);
    }
    if (cpus > 0) result = result == 0 ? cpus : std::min(result, cpus);
  }
  return result;
}

int usable_cpus() {
  int cpus = affinity_cpus();
  std::ifstream file("/proc/self/cgroup");
  std::stringstream groups;
  groups << file.rdbuf();
  if (const int quota = cgroup_cpus(groups.str(), "/sys/fs/cgroup"); quota > 0) cpus = std::min(cpus, quota);
  return std::max(cpus, 1);
}

}  // namespace treadle
