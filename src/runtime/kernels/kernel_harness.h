// SPDX-License-Identifier: Apache-2.0
// For tests: calls a runtime kernel by name on tensors, as compiled code would.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "runtime/kernels/kernels.h"
#include "runtime/run_state.h"
#include "runtime/session.h"

namespace treadle::kernels {

struct Outcome {
  int32_t code;
  std::string message;
  std::vector<int64_t> results;
};

inline Outcome call_kernel(const char* name, const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs,
                           const std::vector<int64_t>& params) {
  const TreadleRuntimeKernel kernel = find_runtime_kernel(name);
  if (!kernel) return {-1, "no such kernel", {}};
  std::vector<TreadleTensorRef> in, out;
  for (const Tensor& tensor : inputs) in.push_back(tensor_ref(tensor));
  for (const Tensor& tensor : outputs) out.push_back(tensor_ref(tensor));
  RunState state;
  state.begin(0, nullptr);
  std::vector<int64_t> results(4, -1);
  const int32_t code =
      kernel(state.context(), in.data(), static_cast<int32_t>(in.size()), out.data(), static_cast<int32_t>(out.size()),
             params.data(), static_cast<int32_t>(params.size()), results.data());
  return {code, state.message(), results};
}

// Small whole numbers with many ties, exact in every dtype.
inline Tensor small_numbers(DType dtype, std::vector<int64_t> shape, unsigned seed) {
  std::mt19937 random(seed);
  Tensor tensor(dtype, std::move(shape));
  const int low = dtype.is_uint() || dtype.is_bool() ? 0 : -4;
  visit(dtype, [&]<typename T>() {
    for (T& value : tensor.values<T>()) {
      const int number = std::uniform_int_distribution(low, dtype.is_bool() ? 1 : 6)(random);
      if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>)
        value = T(static_cast<float>(number));
      else
        value = static_cast<T>(number);
    }
  });
  return tensor;
}

}  // namespace treadle::kernels
