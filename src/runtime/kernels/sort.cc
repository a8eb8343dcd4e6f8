// SPDX-License-Identifier: Apache-2.0
// sort, argsort and topk along one axis, all dtypes. Stable: of equal elements the one with the lower index comes
// first, ascending or descending. NaN comes last in both orders, so topk takes one only when there is nothing else. -0
// equals 0.
#include <algorithm>
#include <numeric>

#include "runtime/kernels/kernel.h"

namespace treadle::kernels {
namespace {

// The indices of one row's elements (`stride` apart) in their order; only the first `wanted` of them count.
template <typename T>
std::vector<int64_t> order_of(const T* row, int64_t extent, int64_t stride, bool is_ascend, int64_t wanted) {
  using Key = Arithmetic<T>;
  std::vector<Key> keys(static_cast<size_t>(extent));
  for (int64_t i = 0; i < extent; ++i) keys[i] = static_cast<Key>(row[i * stride]);
  std::vector<int64_t> order(keys.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  const IndexOrder<Key> compare{keys.data(), is_ascend ? ascending<Key> : descending<Key>};
  if (wanted < extent)
    std::partial_sort(order.begin(), order.begin() + wanted, order.end(), compare);
  else
    std::sort(order.begin(), order.end(), compare);
  order.resize(static_cast<size_t>(wanted));
  return order;
}

// Writes the first elements of each sorted row to `values` and their indices to `indices` (either may be null). How
// many, an output's extent along the axis says.
void sort_rows(const Call& call, int64_t axis, bool is_ascend, const TensorArg* values, const TensorArg* indices) {
  const TensorArg input = call.input(0);
  const Rows rows = rows_along(input, axis);
  const Rows out = rows_along(values ? *values : *indices, axis);
  TREADLE_KERNEL_REQUIRE(out.count == rows.count && out.extent <= rows.extent, "{} of {} elements are wanted",
                         out.extent, rows.extent);
  TREADLE_KERNEL_REQUIRE(!values || values->dtype() == input.dtype(), "values must have the input's dtype {}",
                         to_string(input.dtype()));
  visit_element(input.dtype(), [&]<typename T>() {
    for_rows(call.ctx, rows.count, rows.extent * 16, [&](int64_t row) {
      const T* from = input.data<T>() + rows.start(row);
      const std::vector<int64_t> order = order_of(from, rows.extent, rows.stride, is_ascend, out.extent);
      if (indices) indices->store_ints(order, out.start(row), out.stride);
      if (!values) return;
      T* to = values->data<T>() + out.start(row);
      for (int64_t i = 0; i < out.extent; ++i) to[i * out.stride] = from[order[i] * rows.stride];
    });
  });
}

}  // namespace

// inputs: data; outputs: values, as data; params: axis, is_ascend
TREADLE_DEFINE_RUNTIME_KERNEL(sort) {
  const TensorArg values = call.output(0);
  sort_rows(call, call.param(0), call.param(1) != 0, &values, nullptr);
}

// inputs: data; outputs: indices, shape of data, any dtype; params: axis, is_ascend
TREADLE_DEFINE_RUNTIME_KERNEL(argsort) {
  const TensorArg indices = call.output(0);
  sort_rows(call, call.param(0), call.param(1) != 0, nullptr, &indices);
}

// inputs: data; outputs: by ret_type; params: axis, is_ascend (0: the largest), ret_type (0 values and indices, 1
// values, 2 indices) The first k of each row in order; k is the outputs' extent along the axis.
TREADLE_DEFINE_RUNTIME_KERNEL(topk) {
  const int64_t axis = call.param(0), ret_type = call.param(2);
  const bool is_ascend = call.param(1) != 0;
  const TensorArg first = call.output(0);
  if (ret_type == 0) {
    const TensorArg second = call.output(1);
    sort_rows(call, axis, is_ascend, &first, &second);
  } else {
    sort_rows(call, axis, is_ascend, ret_type == 1 ? &first : nullptr, ret_type == 1 ? nullptr : &first);
  }
}

}  // namespace treadle::kernels
