// SPDX-License-Identifier: Apache-2.0
// extents: sizes that are known only when the program runs, from tensors that hold them.
#include <algorithm>

#include "runtime/kernels/kernel.h"

namespace treadle::kernels {
namespace {

enum class Mode : int64_t { Extents = 0, Reshape = 1, Broadcast = 2, Count = 3 };

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

}  // namespace

// inputs: by mode; outputs: one tensor without elements, of rank n + 1; params: mode, allow_zero; results: n extents
//   mode 0: values (n) integers, the extents themselves
//   mode 1: values (n) integers and the tensor that is reshaped; 0 (unless allow_zero) and -1 as in ONNX Reshape
//   mode 2: values integers and a tensor: the shape to which both broadcast
//   mode 3: start, stop, step, scalars of one dtype: how many numbers the range has (n is 1)
TREADLE_DEFINE_RUNTIME_KERNEL(extents) {
  const auto mode = static_cast<Mode>(call.param(0));
  const size_t count = call.output(0).shape().size() - 1;
  std::vector<int64_t> extents;
  if (mode == Mode::Count) {
    extents = {range_count(call.input(0).at(0), call.input(1).at(0), call.input(2).at(0))};
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
