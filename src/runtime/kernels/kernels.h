// SPDX-License-Identifier: Apache-2.0
// The kernels of the runtime that are no loop nests; compiled code finds them by name with ctx->runtime_kernel.
#pragma once

#include <string_view>

#include "treadle/abi.h"

namespace treadle {

namespace kernels {
#define TREADLE_RUNTIME_KERNEL(name)                                                                            \
  int32_t name(TreadleContext* ctx, const TreadleTensorRef* inputs, int32_t num_inputs,                         \
               const TreadleTensorRef* outputs, int32_t num_outputs, const int64_t* params, int32_t num_params, \
               int64_t* results);
#include "runtime/kernels/kernels.def"
#undef TREADLE_RUNTIME_KERNEL
}  // namespace kernels

// Null when unknown.
TreadleRuntimeKernel find_runtime_kernel(std::string_view name);

}  // namespace treadle
