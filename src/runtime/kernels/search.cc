// SPDX-License-Identifier: Apache-2.0
// argwhere, unique and searchsorted, all dtypes.
#include <algorithm>
#include <numeric>

#include "runtime/kernels/kernel.h"

namespace treadle::kernels {
namespace {

// Positions of the elements that are not zero (NaN is not).
std::vector<int64_t> nonzero_positions(const TensorArg& input) {
  std::vector<int64_t> positions;
  const int64_t size = input.size();
  visit_element(input.dtype(), [&]<typename T>() {
    const T* data = input.data<T>();
    for (int64_t i = 0; i < size; ++i) {
      if (static_cast<Arithmetic<T>>(data[i]) != Arithmetic<T>(0)) positions.push_back(i);
    }
  });
  return positions;
}

// Equal elements, by the places where they are.
struct Groups {
  std::vector<int64_t> first, count;  // by group: lowest index, how many
  std::vector<int64_t> group;         // by element
};

template <typename T>
Groups group_elements(const T* data, int64_t size, bool is_sorted) {
  using Key = Arithmetic<T>;
  std::vector<Key> keys(data, data + size);
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::sort(order.begin(), order.end(), IndexOrder<Key>{keys.data(), ascending<Key>});
  Groups groups;
  groups.group.resize(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || ascending(keys[order[i - 1]], keys[order[i]])) {
      groups.first.push_back(order[i]);
      groups.count.push_back(0);
    }
    ++groups.count.back();
    groups.group[order[i]] = static_cast<int64_t>(groups.first.size()) - 1;
  }
  if (is_sorted) return groups;
  // Renumber by first appearance.
  std::vector<int64_t> by_first(groups.first.size()), number(groups.first.size());
  std::iota(by_first.begin(), by_first.end(), int64_t{0});
  std::sort(by_first.begin(), by_first.end(), [&](int64_t a, int64_t b) { return groups.first[a] < groups.first[b]; });
  Groups result = groups;
  for (size_t i = 0; i < by_first.size(); ++i) {
    number[by_first[i]] = static_cast<int64_t>(i);
    result.first[i] = groups.first[by_first[i]];
    result.count[i] = groups.count[by_first[i]];
  }
  for (int64_t& group : result.group) group = number[group];
  return result;
}

// Writes the values and zeros for the rest of the tensor.
void store_padded(const TensorArg& output, std::vector<int64_t> values, int64_t size) {
  TREADLE_KERNEL_REQUIRE(output.size() == size, "an output has {} elements, expected {}", output.size(), size);
  values.resize(static_cast<size_t>(size), 0);
  output.store_ints(values);
}

}  // namespace

// inputs: data; outputs: indices (room, rank of data), any integers; no params; results: number of rows
// The index tuples of the elements that are not zero, in row-major order. Rows after the last keep their contents.
TREADLE_DEFINE_RUNTIME_KERNEL(argwhere) {
  const TensorArg input = call.input(0), output = call.output(0);
  const std::vector<int64_t> positions = nonzero_positions(input);
  const auto rows = static_cast<int64_t>(positions.size());
  const auto rank = static_cast<int64_t>(input.shape().size());
  TREADLE_KERNEL_REQUIRE(output.shape().size() == 2 && output.shape()[1] == rank && output.shape()[0] >= rows,
                         "the output has no room for {} rows of {} indices", rows, rank);
  call.set_result(0, rows);
  std::vector<int64_t> column(positions.size()), rest = positions;
  for (int64_t axis = rank - 1; axis >= 0; --axis) {
    const int64_t extent = input.shape()[axis];
    for (size_t i = 0; i < rest.size(); ++i) {
      column[i] = rest[i] % extent;
      rest[i] /= extent;
    }
    output.store_ints(column, axis, rank);
  }
}

// inputs: data, read flat, n elements; params: is_sorted (1: ascending, 0: in order of first appearance), return_counts
// outputs: values (n), indices of first appearance (n), inverse (n): the place in values of each element, count (1),
// and with return_counts how often each value occurs (n); arrays but the first of any integer dtype. Relay pads to n
// elements: here with zeros. results: count. NaN equals NaN and is the largest; -0 equals 0.
TREADLE_DEFINE_RUNTIME_KERNEL(unique) {
  const TensorArg input = call.input(0), values = call.output(0);
  const int64_t size = input.size();
  TREADLE_KERNEL_REQUIRE(values.size() == size && values.dtype() == input.dtype(), "values must have {} elements of {}",
                         size, to_string(input.dtype()));
  visit_element(input.dtype(), [&]<typename T>() {
    const Groups groups = group_elements(input.data<T>(), size, call.param(0) != 0);
    const auto count = static_cast<int64_t>(groups.first.size());
    for (int64_t i = 0; i < size; ++i)
      values.data<T>()[i] = i < count ? input.data<T>()[groups.first[i]] : static_cast<T>(0);
    store_padded(call.output(1), groups.first, size);
    store_padded(call.output(2), groups.group, size);
    store_padded(call.output(3), {count}, 1);
    if (call.param(1) != 0) store_padded(call.output(4), groups.count, size);
    call.set_result(0, count);
  });
}

// inputs: sorted_sequence (…, n) or (n), values (…, m), same dtype and leading axes; outputs: indices, shape of values,
// any integers params: right. For each value the first place at which it could be inserted (right: the last) so that
// the sequence stays ascending.
TREADLE_DEFINE_RUNTIME_KERNEL(searchsorted) {
  const TensorArg sequence = call.input(0), values = call.input(1), output = call.output(0);
  const bool right = call.param(0) != 0;
  TREADLE_KERNEL_REQUIRE(sequence.dtype() == values.dtype(), "the sequence is {}, the values are {}",
                         to_string(sequence.dtype()), to_string(values.dtype()));
  TREADLE_KERNEL_REQUIRE(!sequence.shape().empty() && output.size() == values.size(),
                         "the sequence is a scalar, or the output is no match");
  const int64_t n = sequence.shape().back();
  const bool shared = sequence.shape().size() == 1;
  const auto leading = [](const TensorArg& t) { return t.shape().first(t.shape().size() - 1); };
  TREADLE_KERNEL_REQUIRE(shared || (!values.shape().empty() && std::ranges::equal(leading(sequence), leading(values))),
                         "the leading axes of sequence and values differ");
  if (values.size() == 0) return;
  const int64_t m = values.shape().empty() ? 1 : values.shape().back();
  visit_element(values.dtype(), [&]<typename T>() {
    using Key = Arithmetic<T>;
    for_rows(call.ctx, values.size() / m, m * 16, [&](int64_t row) {
      const T* begin = sequence.data<T>() + (shared ? 0 : row * n);
      std::vector<int64_t> places(static_cast<size_t>(m));
      for (int64_t i = 0; i < m; ++i) {
        const auto value = static_cast<Key>(values.data<T>()[row * m + i]);
        const T* place = right ? std::upper_bound(begin, begin + n, value,
                                                  [](Key v, T e) { return ascending(v, static_cast<Key>(e)); })
                               : std::lower_bound(begin, begin + n, value,
                                                  [](T e, Key v) { return ascending(static_cast<Key>(e), v); });
        places[i] = place - begin;
      }
      output.store_ints(places, row * m);
    });
  });
}

}  // namespace treadle::kernels
