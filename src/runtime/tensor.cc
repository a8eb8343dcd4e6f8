// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "runtime/memory_limit.h"

namespace treadle {

int64_t element_count(std::span<const int64_t> shape) {
  int64_t count = 1;
  bool empty = false;
  for (int64_t extent : shape) {
    if (extent < 0) fail(ErrorCode::Limit, "extent {} of a tensor is negative", extent);
    if (extent == 0)
      empty = true;
    else if (__builtin_mul_overflow(count, extent, &count))
      fail(ErrorCode::Limit, "a tensor's element count exceeds 2^63");
  }
  return empty ? 0 : count;
}

Tensor::Tensor(DType dtype, std::vector<int64_t> shape)
    : dtype_(dtype), shape_(std::move(shape)), size_(element_count(shape_)), defined_(true) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<size_t>(size_), dtype.bytes(), &bytes) || bytes > SIZE_MAX / 2) {
    fail(ErrorCode::Limit, "a tensor of {} elements does not fit into memory", size_);
  }
  // Asked for more than there is, the system may say yes and end the process when the memory is used.
  if (bytes > static_cast<size_t>(memory_limit()))
    fail(ErrorCode::Limit, "a tensor or buffer of {} bytes is needed, this process can have {} bytes of memory", bytes,
         memory_limit());
  bytes = (bytes + kAlignment) / kAlignment * kAlignment;  // at least one line, so that data() is never null
  data_ = std::aligned_alloc(kAlignment, bytes);
  if (!data_) fail(ErrorCode::Limit, "out of memory for a tensor of {} bytes", bytes);
  owner_ = std::shared_ptr<const void>(data_, [](const void* data) { std::free(const_cast<void*>(data)); });
}

Tensor::Tensor(DType dtype, std::vector<int64_t> shape, void* data, std::shared_ptr<const void> owner)
    : dtype_(dtype),
      shape_(std::move(shape)),
      size_(element_count(shape_)),
      data_(data),
      owner_(std::move(owner)),
      defined_(true) {}

Tensor Tensor::zeros(DType dtype, std::vector<int64_t> shape) {
  Tensor tensor(dtype, std::move(shape));
  std::memset(tensor.data(), 0, tensor.bytes());
  return tensor;
}

Tensor Tensor::scalar(DType dtype, double value) {
  Tensor tensor(dtype, {});
  visit(dtype, [&]<typename T>() { *static_cast<T*>(tensor.data()) = static_cast<T>(value); });
  return tensor;
}

double Tensor::at(int64_t index) const {
  TREADLE_CHECK(index >= 0 && index < size_, "index {} of {}", index, size_);
  return visit(dtype_, [&]<typename T>() { return static_cast<double>(static_cast<const T*>(data_)[index]); });
}

int64_t Tensor::int_at(int64_t index) const {
  TREADLE_CHECK(index >= 0 && index < size_, "index {} of {}", index, size_);
  return visit(dtype_, [&]<typename T>() { return static_cast<int64_t>(static_cast<const T*>(data_)[index]); });
}

std::vector<int64_t> Tensor::to_ints() const {
  std::vector<int64_t> values(size_);
  for (int64_t i = 0; i < size_; ++i) values[i] = int_at(i);
  return values;
}

Tensor Tensor::reshaped(std::vector<int64_t> shape) const {
  TREADLE_CHECK(element_count(shape) == size_);
  return Tensor(dtype_, std::move(shape), data_, owner_);
}

Tensor Tensor::clone() const {
  Tensor copy(dtype_, shape_);
  if (bytes() > 0) std::memcpy(copy.data(), data_, bytes());  // data of nothing may be null
  return copy;
}

bool Tensor::identical(const Tensor& other) const {
  return dtype_ == other.dtype_ && shape_ == other.shape_ &&
         (data_ == other.data_ || std::memcmp(data_, other.data_, bytes()) == 0);
}

}  // namespace treadle
