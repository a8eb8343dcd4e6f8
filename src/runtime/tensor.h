// SPDX-License-Identifier: Apache-2.0
// A dense row-major tensor in host memory: what constants, inputs and outputs are.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "runtime/dtype.h"

namespace treadle {

// Bytes to which every buffer that we allocate is aligned: a cache line, and the widest vector.
inline constexpr size_t kAlignment = 64;

// Product of the extents. Errors: Limit for a negative extent or a product that does not fit into int64.
int64_t element_count(std::span<const int64_t> shape);

// Shares its storage when copied; the storage lives as long as the last tensor that refers to it.
class Tensor {
 public:
  Tensor() = default;
  // Allocates; contents are undefined. Errors: Limit, as element_count, for more than
  // memory_limit() bytes, or when memory is short.
  Tensor(DType dtype, std::vector<int64_t> shape);
  // Wraps memory that `owner` keeps alive (a mapped file, a DLPack tensor); null owner: the caller does.
  Tensor(DType dtype, std::vector<int64_t> shape, void* data, std::shared_ptr<const void> owner);

  static Tensor zeros(DType dtype, std::vector<int64_t> shape);
  // A 0-d tensor with `value` converted to `dtype`.
  static Tensor scalar(DType dtype, double value);
  template <typename T>
  static Tensor from(const std::vector<T>& values, std::vector<int64_t> shape);
  template <typename T>
  static Tensor from(const std::vector<T>& values) {
    return from(values, {static_cast<int64_t>(values.size())});
  }

  bool defined() const { return defined_; }
  DType dtype() const { return dtype_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  int64_t size() const { return size_; }  // elements
  size_t bytes() const { return static_cast<size_t>(size_) * dtype_.bytes(); }
  void* data() { return data_; }
  const void* data() const { return data_; }
  // The elements as T, which must be the storage type of dtype().
  template <typename T>
  std::span<T> values() {
    TREADLE_CHECK(dtype_of<T>() == dtype_, "tensor holds {}", to_string(dtype_));
    return {static_cast<T*>(data_), static_cast<size_t>(size_)};
  }
  template <typename T>
  std::span<const T> values() const {
    TREADLE_CHECK(dtype_of<T>() == dtype_, "tensor holds {}", to_string(dtype_));
    return {static_cast<const T*>(data_), static_cast<size_t>(size_)};
  }

  // Element `index` (row-major) converted to double or int64; for small tensors and tests.
  double at(int64_t index) const;
  int64_t int_at(int64_t index) const;
  // All elements converted; for shape-like tensors.
  std::vector<int64_t> to_ints() const;

  // The same storage with another shape of the same element count.
  Tensor reshaped(std::vector<int64_t> shape) const;
  Tensor clone() const;
  // Equal dtype, shape and bytes (NaN equals itself).
  bool identical(const Tensor& other) const;

 private:
  DType dtype_;
  std::vector<int64_t> shape_;
  int64_t size_ = 0;
  void* data_ = nullptr;
  std::shared_ptr<const void> owner_;
  bool defined_ = false;
};

template <typename T>
Tensor Tensor::from(const std::vector<T>& values, std::vector<int64_t> shape) {
  Tensor tensor(dtype_of<T>(), std::move(shape));
  TREADLE_CHECK(tensor.size() == static_cast<int64_t>(values.size()), "{} values for {} elements", values.size(),
                tensor.size());
  std::copy(values.begin(), values.end(), static_cast<T*>(tensor.data()));
  return tensor;
}

}  // namespace treadle
