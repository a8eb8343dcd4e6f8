// SPDX-License-Identifier: Apache-2.0
// Time by kernel, as `run --profile` and `bench --profile` show it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/session.h"

namespace treadle::cli {

struct KernelProfile {
  std::string name, source;  // of the kernel; of the model's nodes in it
  double milliseconds = 0;   // per run
  double share = 0;          // of the time of all kernels, 0 … 1
  double gflops = 0;         // achieved
  double share_of_peak = 0;  // of one core, 0 … 1; above 1 when several threads work
};

struct Profile {
  double peak_gflops = 0;              // of one core, measured for this profile, since clocks change
  std::vector<KernelProfile> kernels;  // that ran, slowest first
};

// `times` and `flops` by kernel of the manifest; the times are the sums over `runs` runs.
Profile make_profile(const Manifest& manifest, const std::vector<KernelTime>& times, const std::vector<int64_t>& flops,
                     int runs);
void print_profile(const Profile& profile);
// {"peak_gflops": …, "kernels": [{"name", "source", "ms", "share", "gflops", "share_of_peak"}, …]}
nlohmann::ordered_json to_json(const Profile& profile);

}  // namespace treadle::cli
