// SPDX-License-Identifier: Apache-2.0
#include "cli/profile.h"

#include <algorithm>
#include <cstdio>

#include "driver/peak.h"

namespace treadle::cli {

Profile make_profile(const Manifest& manifest, const std::vector<KernelTime>& times, const std::vector<int64_t>& flops,
                     int runs) {
  Profile profile;
  profile.peak_gflops = measure_peak_gflops();
  double total = 0;
  for (const KernelTime& time : times) total += static_cast<double>(time.nanoseconds);
  for (size_t i = 0; i < times.size(); ++i) {
    if (times[i].calls == 0) continue;
    const auto nanoseconds = static_cast<double>(times[i].nanoseconds);
    KernelProfile kernel;
    kernel.name = manifest.kernels[i].name;
    kernel.source = manifest.kernels[i].source;
    kernel.milliseconds = nanoseconds / runs / 1e6;
    kernel.share = nanoseconds / std::max(total, 1.0);
    kernel.gflops = nanoseconds > 0 ? static_cast<double>(flops[i]) * runs / nanoseconds : 0;
    kernel.share_of_peak = kernel.gflops / profile.peak_gflops;
    profile.kernels.push_back(std::move(kernel));
  }
  std::stable_sort(profile.kernels.begin(), profile.kernels.end(),
                   [](const KernelProfile& a, const KernelProfile& b) { return a.milliseconds > b.milliseconds; });
  return profile;
}

void print_profile(const Profile& profile) {
  if (profile.kernels.empty()) {
    std::printf("\nno kernel was timed: a compiled model needs treadle compile --profile\n");
    return;
  }
  std::printf("\n%8s %6s %9s %6s  %s (peak of one core measured now: %.1f GFLOP/s)\n", "ms", "share", "GFLOP/s", "peak",
              "kernel", profile.peak_gflops);
  for (const KernelProfile& kernel : profile.kernels) {
    std::printf("%8.3f %5.1f%% %9.2f %5.1f%%  %s  %s\n", kernel.milliseconds, 100 * kernel.share, kernel.gflops,
                100 * kernel.share_of_peak, kernel.name.c_str(), kernel.source.substr(0, 60).c_str());
  }
}

nlohmann::ordered_json to_json(const Profile& profile) {
  nlohmann::ordered_json kernels = nlohmann::ordered_json::array();
  for (const KernelProfile& kernel : profile.kernels) {
    kernels.push_back({{"name", kernel.name},
                       {"source", kernel.source},
                       {"ms", kernel.milliseconds},
                       {"share", kernel.share},
                       {"gflops", kernel.gflops},
                       {"share_of_peak", kernel.share_of_peak}});
  }
  return {{"peak_gflops", profile.peak_gflops}, {"kernels", std::move(kernels)}};
}

}  // namespace treadle::cli
