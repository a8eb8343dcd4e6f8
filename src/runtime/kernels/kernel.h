// SPDX-License-Identifier: Apache-2.0
// What the runtime kernels share: their arguments with checks, errors, rows along an axis, loops over threads.
#pragma once

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "runtime/dtype.h"
#include "runtime/kernels/kernels.h"
#include "treadle/abi.h"

namespace treadle::kernels {

// Calls f with the storage type of the elements; bool comes as uint8_t, so that any byte may stand in a tensor.
template <typename F>
decltype(auto) visit_element(DType dtype, F&& f) {
  return visit(dtype, [&]<typename T>() -> decltype(auto) {
    return f.template operator()<std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>>();
  });
}

// The type in which elements are compared and added: float for the 16-bit floats.
template <typename T>
using Arithmetic = std::conditional_t<std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>, float, T>;

template <typename T>
bool is_nan(T value) {
  if constexpr (std::is_floating_point_v<T>)
    return std::isnan(value);
  else
    return false;
}

// Orders of sorting; NaN comes last in both.
template <typename T>
bool ascending(T a, T b) {
  return a < b || (is_nan(b) && !is_nan(a));
}
template <typename T>
bool descending(T a, T b) {
  return a > b || (is_nan(b) && !is_nan(a));
}

// Compares indices by the keys at them, equal keys by the index itself: with it any sort is a stable one.
template <typename Key>
struct IndexOrder {
  const Key* keys;
  bool (*before)(Key, Key);  // ascending or descending
  bool operator()(int64_t a, int64_t b) const {
    if (before(keys[a], keys[b])) return true;
    return !before(keys[b], keys[a]) && a < b;
  }
};

// A kernel's tensor.
class TensorArg {
 public:
  explicit TensorArg(const TreadleTensorRef& ref) : ref_(ref) {}
  DType dtype() const { return {static_cast<TypeCode>(ref_.type_code), ref_.bits}; }
  std::span<const int64_t> shape() const { return {ref_.shape, static_cast<size_t>(ref_.rank)}; }
  int64_t size() const;
  size_t bytes() const { return static_cast<size_t>(size()) * dtype().bytes(); }
  template <typename T>
  T* data() const {
    return static_cast<T*>(ref_.data);
  }
  // All elements of an integer (or bool) tensor. Errors: RuntimeKernel for floats.
  std::vector<int64_t> to_ints() const;
  // Writes values[i] converted to the elements from `offset` on, `stride` apart.
  void store_ints(std::span<const int64_t> values, int64_t offset = 0, int64_t stride = 1) const;
  // Element i as double.
  double at(int64_t i) const;

 private:
  TreadleTensorRef ref_;
};

// A tensor seen along one axis: row r starts at start(r), its elements are `stride` apart.
struct Rows {
  int64_t count, extent, stride;
  int64_t start(int64_t row) const { return row / stride * stride * extent + row % stride; }
};
// `axis` may be negative. Errors: RuntimeKernel out of range. A scalar is one row of one element.
Rows rows_along(const TensorArg& tensor, int64_t axis);

// The arguments of one call.
struct Call {
  TreadleContext* ctx;
  std::span<const TreadleTensorRef> inputs, outputs;
  std::span<const int64_t> params;
  int64_t* results;  // may be null

  // Errors: RuntimeKernel when there are fewer.
  TensorArg input(size_t i) const;
  TensorArg output(size_t i) const;
  int64_t param(size_t i) const;
  bool has_output(size_t i) const { return i < outputs.size(); }
  void set_result(size_t i, int64_t value) const {
    if (results) results[i] = value;
  }
};

template <typename... Args>
[[noreturn]] void kernel_fail(fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorCode::RuntimeKernel, format, std::forward<Args>(args)...);
}
#define TREADLE_KERNEL_REQUIRE(condition, ...) ((condition) ? (void)0 : ::treadle::kernels::kernel_fail(__VA_ARGS__))

// Runs f(row) for 0 … count-1, in parallel when there is work for threads. `cost`: element operations of one row.
// An error in one of them is thrown here.
void for_rows(TreadleContext* ctx, int64_t count, int64_t cost, const std::function<void(int64_t)>& f);

// Runs the body of a kernel; what it throws becomes ctx->fail with the kernel's name.
int32_t run_kernel(const char* name, const Call& call, void (*body)(const Call&));

// Defines kernels::name as the body that follows, with the arguments in `call`.
#define TREADLE_DEFINE_RUNTIME_KERNEL(name)                                                                     \
  static void name##_body(const Call& call);                                                                    \
  int32_t name(TreadleContext* ctx, const TreadleTensorRef* inputs, int32_t num_inputs,                         \
               const TreadleTensorRef* outputs, int32_t num_outputs, const int64_t* params, int32_t num_params, \
               int64_t* results) {                                                                              \
    const Call call{ctx,                                                                                        \
                    {inputs, static_cast<size_t>(num_inputs)},                                                  \
                    {outputs, static_cast<size_t>(num_outputs)},                                                \
                    {params, static_cast<size_t>(num_params)},                                                  \
                    results};                                                                                   \
    return run_kernel(#name, call, name##_body);                                                                \
  }                                                                                                             \
  static void name##_body(const Call& call)

}  // namespace treadle::kernels
