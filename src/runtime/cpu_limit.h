// SPDX-License-Identifier: Apache-2.0
// How many CPUs this process may use.
#pragma once

#include <string>

namespace treadle {

// CPUs of the affinity mask, no more than the cgroup's quota rounded up; at least 1.
int usable_cpus();

// The CPU quota of the control groups of a process, rounded up to whole CPUs; 0 when there is none. Version 2 reads
// cpu.max, version 1 cpu.cfs_quota_us and cpu.cfs_period_us, each in the group and all groups above it, as the smallest
// one counts.
//   groups  the text of /proc/self/cgroup
//   root    where the hierarchies are mounted, "/sys/fs/cgroup"
int cgroup_cpus(const std::string& groups, const std::string& root);

}  // namespace treadle
