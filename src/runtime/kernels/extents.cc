// SPDX-License-Identifier: Apache-2.0
// extents: sizes that are known only when the program runs, from tensors that hold them.
#include <algorithm>

#include "runtime/kernels/kernel.h"

namespace treadle::kernels {
namespace {

enum class Mode : int64_t { Extents = 0, Reshape = 1, Broadcast = 2, Count = 3, Slice = 4 };

int64_t checked_product(const std::vector<int64_t>& extents) {
  int64_t product = 1;
  for (int64_t extent : extents) {
    TREADLE_KERNEL_REQUIRE(!__builtin_mul_overflow(product, extent, &product),
                           "the extents have no product in 64 bits");
  }
  return product;
}

// 0 copies the extent at this place (unless allow_zero), one -1 takes what remains.
std::vector<int64_t> reshaped(std::vector<int64_t> target, std::span<const int64_t> from, bool allow_zero) {
  const int64_t total = checked_product({from.begin(), from.end()});
  int64_t open = -1, known = 1;
  for (size_t i = 0; i < target.size(); ++i) {
    if (target[i] == 0 && !allow_zero) {
      TREADLE_KERNEL_REQUIRE(i < from.size(), "extent {} of the target copies one that the tensor does not have", i);
      target[i] = from[i];
    }
    if (target[i] == -1) {
      TREADLE_KERNEL_REQUIRE(open < 0, "the target has -1 twice");
      open = static_cast<int64_t>(i);
    } else {
      TREADLE_KERNEL_REQUIRE(target[i] >= 0, "the target has {}", target[i]);
      known = checked_product({known, target[i]});
    }
  }
  if (open >= 0) {
    TREADLE_KERNEL_REQUIRE(known > 0 && total % known == 0, "{} elements cannot be shaped into parts of {}", total,
                           known);
    target[open] = total / known;
    known = total;
  }
  TREADLE_KERNEL_REQUIRE(known == total, "{} elements cannot take a shape of {}", total, known);
  return target;
}

std::vector<int64_t> broadcast(std::vector<int64_t> a, std::vector<int64_t> b) {
  if (a.size() < b.size()) std::swap(a, b);
  for (size_t i = 0; i < b.size(); ++i) {
    int64_t& extent = a[a.size() - b.size() + i];
    TREADLE_KERNEL_REQUIRE(extent == b[i] || extent == 1 || b[i] == 1, "extents {} and {} do not broadcast", extent,
                           b[i]);
    if (extent == 1) extent = b[i];
  }
  return a;
}

int64_t range_count(double start, double stop, double step) {
  const double count = std::ceil((stop - start) / step);
  TREADLE_KERNEL_REQUIRE(step != 0 && count < 9e15, "the range from {} to {} by {} has no extent", start, stop, step);
  return static_cast<int64_t>(std::max(count, 0.0));
}

// How many positions begin:end:stride names on an axis, by NumPy's rule.
int64_t slice_count(int64_t extent, int64_t begin, int64_t end, int64_t stride) {
  TREADLE_KERNEL_REQUIRE(stride != 0, "a stride is 0");
  const int64_t low = stride > 0 ? 0 : -1, high = stride > 0 ? extent : extent - 1;
  const auto cut = [&](int64_t position) {
    if (position < 0) position = position < -extent ? -1 : position + extent;
    return std::clamp(position, low, high);
  };
  const int64_t distance = stride > 0 ? cut(end) - cut(begin) : cut(begin) - cut(end);
  const uint64_t step = stride > 0 ? static_cast<uint64_t>(stride) : ~static_cast<uint64_t>(stride) + 1;
  if (distance <= 0) return 0;
  return static_cast<int64_t>((static_cast<uint64_t>(distance) - 1) / step) + 1;
}

std::vector<int64_t> slice_counts(const Call& call, size_t count) {
  const std::vector<int64_t> begin = call.input(0).to_ints(), end = call.input(1).to_ints(),
                             strides = call.input(2).to_ints();
  const std::span<const int64_t> shape = call.input(3).shape();
  TREADLE_KERNEL_REQUIRE(begin.size() == count && end.size() == count && strides.size() == count,
                         "{} begins, {} ends, {} strides for {} axes", begin.size(), end.size(), strides.size(), count);
  std::vector<int64_t> result;
  for (size_t i = 0; i < count; ++i) {
    const auto axis = static_cast<size_t>(call.param(2 + i));
    TREADLE_KERNEL_REQUIRE(axis < shape.size(), "axis {} for rank {}", axis, shape.size());
    result.push_back(slice_count(shape[axis], begin[i], end[i], strides[i]));
  }
  return result;
}

}  // namespace

// inputs: by mode; outputs: one tensor without elements, of rank n + 1; params: mode, allow_zero, axes (of mode 4);
// results: n extents
//   mode 0: values (n) integers, the extents themselves
//   mode 1: values (n) integers and the tensor that is reshaped; 0 (unless allow_zero) and -1 as in ONNX Reshape
//   mode 2: values integers and a tensor: the shape to which both broadcast
//   mode 4: begin, end, strides (n) integers and the tensor that is sliced along n axes
//   mode 3: start, stop, step, scalars of one dtype: how many numbers the range has (n is 1)
TREADLE_DEFINE_RUNTIME_KERNEL(extents) {
  const auto mode = static_cast<Mode>(call.param(0));
  const size_t count = call.output(0).shape().size() - 1;
  std::vector<int64_t> extents;
  if (mode == Mode::Count) {
    extents = {range_count(call.input(0).at(0), call.input(1).at(0), call.input(2).at(0))};
  } else if (mode == Mode::Slice) {
    extents = slice_counts(call, count);
  } else {
    extents = call.input(0).to_ints();
    if (mode == Mode::Reshape) extents = reshaped(extents, call.input(1).shape(), call.param(1) != 0);
    if (mode == Mode::Broadcast)
      extents = broadcast(extents, {call.input(1).shape().begin(), call.input(1).shape().end()});
  }
  TREADLE_KERNEL_REQUIRE(extents.size() == count, "{} extents, the result has {}", extents.size(), count);
  for (size_t i = 0; i < count; ++i) {
    TREADLE_KERNEL_REQUIRE(extents[i] >= 0, "extent {} is {}", i, extents[i]);
    call.set_result(i, extents[i]);
  }
  checked_product(extents);
}

}  // namespace treadle::kernels
