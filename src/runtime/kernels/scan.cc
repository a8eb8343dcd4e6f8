// SPDX-License-Identifier: Apache-2.0
// cumsum and cumprod: y[i] = x[0] op … op x[i] along an axis; exclusive: without x[i]; reverse: from the other end.
//   inputs: data; outputs: y, any dtype; params: axis (of y), exclusive, reverse
// The elements are converted to y's dtype first. data has as many elements as y, so a flat y scans all of data in
// row-major order. Floats of 16 bits are accumulated in float32; integers wrap around.
#include "runtime/kernels/kernel.h"

namespace treadle::kernels {
namespace {

// A number of type T for accumulation in A (float, double, or uint64_t for all integers).
template <typename A, typename T>
A widen(T value) {
  if constexpr (std::is_same_v<A, uint64_t> && !std::is_integral_v<T>) {
    // Toward zero, saturating; NaN gives 0.
    const auto number = static_cast<double>(value);
    if (std::isnan(number)) return 0;
    if (number >= 9223372036854775808.0)
      return number >= 18446744073709551616.0 ? UINT64_MAX : static_cast<uint64_t>(number);
    return number <= -9223372036854775808.0 ? uint64_t{1} << 63 : static_cast<uint64_t>(static_cast<int64_t>(number));
  } else {
    return static_cast<A>(value);
  }
}

template <typename A>
struct Scan {
  bool multiply, exclusive, reverse;

  void row(const A* from, A* to, int64_t extent) const {
    A total = multiply ? 1 : 0;
    for (int64_t k = 0; k < extent; ++k) {
      const int64_t i = reverse ? extent - 1 - k : k;
      const A value = from[i];  // before the store: the two may be one
      const A next = multiply ? total * value : total + value;
      to[i] = exclusive ? total : next;
      total = next;
    }
  }
};

template <typename A>
void scan_rows(const Call& call, const TensorArg& input, const TensorArg& output, const Rows& rows,
               const Scan<A>& scan) {
  for_rows(call.ctx, rows.count, rows.extent * 4, [&](int64_t row) {
    std::vector<A> values(static_cast<size_t>(rows.extent));
    visit_element(input.dtype(), [&]<typename T>() {
      const T* from = input.data<T>() + rows.start(row);
      for (int64_t i = 0; i < rows.extent; ++i) values[i] = widen<A>(from[i * rows.stride]);
    });
    scan.row(values.data(), values.data(), rows.extent);
    visit(output.dtype(), [&]<typename T>() {
      T* to = output.data<T>() + rows.start(row);
      for (int64_t i = 0; i < rows.extent; ++i) to[i * rows.stride] = static_cast<T>(values[i]);
    });
  });
}

void scan(const Call& call, bool multiply) {
  const TensorArg input = call.input(0), output = call.output(0);
  TREADLE_KERNEL_REQUIRE(input.size() == output.size(), "{} elements for an output of {}", input.size(), output.size());
  const Rows rows = rows_along(output, call.param(0));
  const bool exclusive = call.param(1) != 0, reverse = call.param(2) != 0;
  if (!output.dtype().is_float())
    scan_rows(call, input, output, rows, Scan<uint64_t>{multiply, exclusive, reverse});
  else if (output.dtype().bits > 32)
    scan_rows(call, input, output, rows, Scan<double>{multiply, exclusive, reverse});
  else
    scan_rows(call, input, output, rows, Scan<float>{multiply, exclusive, reverse});
}

}  // namespace

TREADLE_DEFINE_RUNTIME_KERNEL(cumsum) { scan(call, false); }
TREADLE_DEFINE_RUNTIME_KERNEL(cumprod) { scan(call, true); }

}  // namespace treadle::kernels
