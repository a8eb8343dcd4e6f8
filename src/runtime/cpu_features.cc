// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <utility>

namespace treadle {
namespace {

// Those of the x86 extensions that LLVM uses for loops over numbers; what all 64-bit processors have is not named.
std::vector<std::pair<std::string_view, bool>> probe() {
  std::vector<std::pair<std::string_view, bool>> features;
#if defined(__x86_64__)
  __builtin_cpu_init();
#define TREADLE_FEATURE(name) features.emplace_back(name, __builtin_cpu_supports(name) != 0)
  TREADLE_FEATURE("sse3");
  TREADLE_FEATURE("ssse3");
  TREADLE_FEATURE("sse4.1");
  TREADLE_FEATURE("sse4.2");
  TREADLE_FEATURE("sse4a");
  TREADLE_FEATURE("popcnt");
  TREADLE_FEATURE("bmi");
  TREADLE_FEATURE("bmi2");
  TREADLE_FEATURE("avx");
  TREADLE_FEATURE("avx2");
  TREADLE_FEATURE("fma");
  TREADLE_FEATURE("fma4");
  TREADLE_FEATURE("xop");
  TREADLE_FEATURE("avx512f");
  TREADLE_FEATURE("avx512cd");
  TREADLE_FEATURE("avx512bw");
  TREADLE_FEATURE("avx512dq");
  TREADLE_FEATURE("avx512vl");
  TREADLE_FEATURE("avx512ifma");
  TREADLE_FEATURE("avx512vbmi");
  TREADLE_FEATURE("avx512vbmi2");
  TREADLE_FEATURE("avx512vnni");
  TREADLE_FEATURE("avx512bitalg");
  TREADLE_FEATURE("avx512vpopcntdq");
  TREADLE_FEATURE("gfni");
#if !defined(__clang__)
  TREADLE_FEATURE("f16c");
  TREADLE_FEATURE("lzcnt");
  TREADLE_FEATURE("movbe");
  TREADLE_FEATURE("tbm");
  TREADLE_FEATURE("avxvnni");
  TREADLE_FEATURE("avx512bf16");
  TREADLE_FEATURE("avx512fp16");
#endif
#undef TREADLE_FEATURE
  // Newer than the names that compilers know: APX, and AVX10 by its version (Intel SDM, CPUID leaves 7.1 and 24H).
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool leaf = __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0;
  const bool apx = leaf && (d >> 21 & 1) != 0, avx10 = leaf && (d >> 19 & 1) != 0;
  const unsigned version = avx10 && __get_cpuid_count(0x24, 0, &a, &b, &c, &d) != 0 ? b & 0xff : 0;
  for (const char* name : {"egpr", "ndd", "ccmp", "nf", "zu", "ppx", "push2pop2"}) features.emplace_back(name, apx);
  features.emplace_back("avx10.1", version >= 1);
  features.emplace_back("avx10.2", version >= 2);
#endif
  return features;
}

const std::vector<std::pair<std::string_view, bool>>& features() {
  static const auto found = probe();
  return found;
}

}  // namespace

bool is_cpu_feature(std::string_view name) {
  return std::any_of(features().begin(), features().end(), [&](const auto& feature) { return feature.first == name; });
}

std::vector<std::string> missing_cpu_features(const std::vector<std::string>& names) {
  std::vector<std::string> missing;
  for (const auto& [name, there] : features()) {
    if (!there && std::find(names.begin(), names.end(), name) != names.end()) missing.emplace_back(name);
  }
  return missing;
}

}  // namespace treadle
