// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/kernels.h"

namespace treadle {
namespace {

struct Entry {
  std::string_view name;
  TreadleRuntimeKernel kernel;
};

constexpr Entry kEntries[] = {
#define TREADLE_RUNTIME_KERNEL(name) {#name, kernels::name},
#include "runtime/kernels/kernels.def"
#undef TREADLE_RUNTIME_KERNEL
};

}  // namespace

TreadleRuntimeKernel find_runtime_kernel(std::string_view name) {
  for (const Entry& entry : kEntries) {
    if (entry.name == name) return entry.kernel;
  }
  return nullptr;
}

}  // namespace treadle
