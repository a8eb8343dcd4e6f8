// SPDX-License-Identifier: Apache-2.0
// scatter_elements and scatter_nd: a copy of data with updates at indices, all dtypes. Updates are applied in row-major
// order of the indices, so with "update" the last one stays. A negative index counts from the end; one out of range
// fails. min and max give NaN when one of the two is NaN; mean is that of the element and all its updates (integers:
// rounded down).
#include <algorithm>

#include "runtime/kernels/kernel.h"

namespace treadle::kernels {
namespace {

enum class Mode : int64_t { Update = 0, Add = 1, Mul = 2, Min = 3, Max = 4, Mean = 5 };

Mode mode_of(int64_t param, Mode last) {
  if (param < 0 || param > static_cast<int64_t>(last)) kernel_fail("unknown reduction {}", param);
  return static_cast<Mode>(param);
}

// Integers that are narrower than int would be added as int: unsigned arithmetic wraps.
template <typename T>
using Wrapping = std::conditional_t<std::is_integral_v<T>, uint64_t, Arithmetic<T>>;

template <typename T>
T combine(Mode mode, T old_value, T update) {
  const auto a = static_cast<Arithmetic<T>>(old_value), b = static_cast<Arithmetic<T>>(update);
  switch (mode) {
    case Mode::Add:
    case Mode::Mean:
      return static_cast<T>(static_cast<Wrapping<T>>(old_value) + static_cast<Wrapping<T>>(update));
    case Mode::Mul:
      return static_cast<T>(static_cast<Wrapping<T>>(old_value) * static_cast<Wrapping<T>>(update));
    case Mode::Min:
      return is_nan(a) || a < b ? old_value : update;
    case Mode::Max:
      return is_nan(a) || a > b ? old_value : update;
    default:
      return update;
  }
}

template <typename T>
T divide(T sum, int64_t count) {
  if constexpr (std::is_integral_v<T>) {
    const auto divisor = static_cast<int64_t>(count);
    if constexpr (std::is_signed_v<T>) {
      const int64_t quotient = static_cast<int64_t>(sum) / divisor;
      return static_cast<T>(quotient - (sum < 0 && static_cast<int64_t>(sum) % divisor != 0 ? 1 : 0));
    } else {
      return static_cast<T>(static_cast<uint64_t>(sum) / static_cast<uint64_t>(divisor));
    }
  } else {
    return static_cast<T>(static_cast<Arithmetic<T>>(sum) / static_cast<Arithmetic<T>>(count));
  }
}

int64_t checked_index(int64_t index, int64_t extent, int64_t axis) {
  if (index < -extent || index >= extent)
    kernel_fail("index {} is out of range for axis {} of extent {}", index, axis, extent);
  return index < 0 ? index + extent : index;
}

// Starts the output as a copy of data.
void copy_data(const TensorArg& data, const TensorArg& output) {
  TREADLE_KERNEL_REQUIRE(std::ranges::equal(data.shape(), output.shape()) && data.dtype() == output.dtype(),
                         "the output must have shape and dtype of data");
  if (data.size() != 0) std::memmove(output.data<char>(), data.data<char>(), data.bytes());
}

}  // namespace

// inputs: data, indices (any integers), updates (shape of indices, dtype of data); outputs: as data
// params: axis, reduction (0 update, 1 add, 2 mul, 3 min, 4 max, 5 mean)
// Indices have data's rank and, off the axis, extents no larger than data's.
TREADLE_DEFINE_RUNTIME_KERNEL(scatter_elements) {
  const TensorArg data = call.input(0), indices = call.input(1), updates = call.input(2), output = call.output(0);
  const Mode mode = mode_of(call.param(1), Mode::Mean);
  TREADLE_KERNEL_REQUIRE(std::ranges::equal(indices.shape(), updates.shape()) && updates.dtype() == data.dtype(),
                         "updates must have the shape of indices and the dtype of data");
  TREADLE_KERNEL_REQUIRE(indices.shape().size() == data.shape().size(), "indices have {} axes, data has {}",
                         indices.shape().size(), data.shape().size());
  const auto rank = static_cast<int64_t>(data.shape().size());
  int64_t axis = call.param(0);
  TREADLE_KERNEL_REQUIRE(axis >= -rank && axis < rank, "axis {} of a tensor of {} axes", axis, rank);
  if (axis < 0) axis += rank;
  for (int64_t i = 0; i < rank; ++i) {
    TREADLE_KERNEL_REQUIRE(i == axis || indices.shape()[i] <= data.shape()[i],
                           "axis {} of indices has extent {}, that of data {}", i, indices.shape()[i], data.shape()[i]);
  }
  copy_data(data, output);
  const std::vector<int64_t> index = indices.to_ints();
  if (index.empty()) return;
  std::vector<int64_t> strides(static_cast<size_t>(rank), 1), position(static_cast<size_t>(rank), 0);
  for (int64_t i = rank - 2; i >= 0; --i) strides[i] = strides[i + 1] * data.shape()[i + 1];
  std::vector<int64_t> counts(mode == Mode::Mean ? static_cast<size_t>(data.size()) : 0, 1);
  visit_element(data.dtype(), [&]<typename T>() {
    T* out = output.data<T>();
    const T* update = updates.data<T>();
    for (size_t k = 0; k < index.size(); ++k) {
      int64_t target = 0;
      for (int64_t i = 0; i < rank; ++i) {
        target += strides[i] * (i == axis ? checked_index(index[k], data.shape()[axis], axis) : position[i]);
      }
      out[target] = combine(mode, out[target], update[k]);
      if (mode == Mode::Mean) ++counts[target];
      for (int64_t i = rank - 1; i >= 0 && ++position[i] == indices.shape()[i]; --i) position[i] = 0;
    }
    for (size_t i = 0; i < counts.size(); ++i) out[i] = divide(out[i], counts[i]);
  });
}

// inputs: data (X0, …), indices (M, Y0, …) with one index tuple along axis 0 for each place Y, updates (Y0, …, XM, …),
// dtype of data outputs: as data; params: mode (0 update, 1 add, 2 mul, 3 min, 4 max)
TREADLE_DEFINE_RUNTIME_KERNEL(scatter_nd) {
  const TensorArg data = call.input(0), indices = call.input(1), updates = call.input(2), output = call.output(0);
  const Mode mode = mode_of(call.param(0), Mode::Max);
  TREADLE_KERNEL_REQUIRE(!indices.shape().empty(), "indices have no axis");
  const int64_t depth = indices.shape()[0];
  const auto rank = static_cast<int64_t>(data.shape().size());
  TREADLE_KERNEL_REQUIRE(depth <= rank, "tuples of {} indices into a tensor of {} axes", depth, rank);
  std::vector<int64_t> expected(indices.shape().begin() + 1, indices.shape().end());
  expected.insert(expected.end(), data.shape().begin() + depth, data.shape().end());
  TREADLE_KERNEL_REQUIRE(std::ranges::equal(expected, updates.shape()) && updates.dtype() == data.dtype(),
                         "updates do not have the shape of indices and data, or another dtype than data");
  copy_data(data, output);
  int64_t tuples = 1, block = 1;
  for (size_t i = 1; i < indices.shape().size(); ++i) tuples *= indices.shape()[i];
  for (int64_t i = depth; i < rank; ++i) block *= data.shape()[i];
  const std::vector<int64_t> index = indices.to_ints();
  visit_element(data.dtype(), [&]<typename T>() {
    const T* update = updates.data<T>();
    for (int64_t tuple = 0; tuple < tuples; ++tuple, update += block) {
      int64_t place = 0;
      for (int64_t m = 0; m < depth; ++m) {
        place = place * data.shape()[m] + checked_index(index[m * tuples + tuple], data.shape()[m], m);
      }
      T* out = output.data<T>() + place * block;
      for (int64_t i = 0; i < block; ++i) out[i] = combine(mode, out[i], update[i]);
    }
  });
}

}  // namespace treadle::kernels
