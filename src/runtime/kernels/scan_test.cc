// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "runtime/kernels/kernel_harness.h"

namespace treadle::kernels {
namespace {

using testing::ElementsAre;

TEST(Scan, EqualsSumsForAllDtypesAndAxes) {
  const std::vector<int64_t> shape = {2, 5, 3};
  for (DType dtype : all_dtypes()) {
    const Tensor data = small_numbers(dtype, shape, 11);
    for (DType out_dtype : {dtype::int64_, dtype::float64_, dtype::float16_}) {
      for (int64_t axis : {0, 1, -1}) {
        for (int mask = 0; mask < 8; ++mask) {
          const bool product = mask & 1, exclusive = mask & 2, reverse = mask & 4;
          Tensor out(out_dtype, shape);
          ASSERT_EQ(call_kernel(product ? "cumprod" : "cumsum", {data}, {out}, {axis, exclusive, reverse}).code, 0);
          const int64_t a = axis < 0 ? axis + 3 : axis, stride = a == 0 ? 15 : a == 1 ? 3 : 1;
          for (int64_t i = 0; i < data.size(); ++i) {
            const int64_t own = i / stride % shape[a];
            double expected = product ? 1 : 0;
            for (int64_t k = 0; k < shape[a]; ++k) {
              const bool before = reverse ? k > own : k < own;
              if (!before && (exclusive || k != own)) continue;
              const double value = data.at(i + (k - own) * stride);
              expected = product ? expected * value : expected + value;
            }
            if (out_dtype == dtype::float16_) expected = Float16(static_cast<float>(expected));
            ASSERT_EQ(out.at(i), expected)
                << to_string(dtype) << " " << to_string(out_dtype) << " axis " << axis << " mask " << mask;
          }
        }
      }
    }
  }
}

TEST(Scan, AFlatOutputScansEverything) {
  Tensor out(dtype::int32_, {4});
  ASSERT_EQ(call_kernel("cumsum", {Tensor::from<int32_t>({1, 2, 3, 4}, {2, 2})}, {out}, {0, 0, 0}).code, 0);
  EXPECT_THAT(out.to_ints(), ElementsAre(1, 3, 6, 10));
}

TEST(Scan, IntegersWrapAndFloatsAreCut) {
  Tensor bytes(dtype::int8_, {3});
  ASSERT_EQ(call_kernel("cumsum", {Tensor::from<int8_t>({100, 100, 1})}, {bytes}, {0, 0, 0}).code, 0);
  EXPECT_THAT(bytes.to_ints(), ElementsAre(100, -56, -55));
  Tensor whole(dtype::int64_, {4});
  const float big = 1e30f, nan = std::nanf("");
  ASSERT_EQ(call_kernel("cumsum", {Tensor::from<float>({-1.5f, nan, 2.5f, big})}, {whole}, {0, 0, 0}).code, 0);
  EXPECT_EQ(whole.int_at(2), 1);
  Tensor flags(dtype::bool_, {3});
  ASSERT_EQ(call_kernel("cumsum", {Tensor::from<float>({0, 1, 1})}, {flags}, {0, 0, 0}).code, 0);
  EXPECT_THAT(flags.to_ints(), ElementsAre(0, 1, 1));
}

TEST(Scan, EmptyScalarAndWrongSizes) {
  Tensor empty(dtype::float32_, {2, 0}), out(dtype::float32_, {2, 0}), three(dtype::float32_, {3}),
      scalar(dtype::float32_, {});
  EXPECT_EQ(call_kernel("cumsum", {empty}, {out}, {1, 0, 0}).code, 0);
  EXPECT_EQ(call_kernel("cumsum", {empty}, {out}, {0, 0, 0}).code, 0);
  EXPECT_EQ(call_kernel("cumsum", {Tensor::scalar(dtype::float32_, 3)}, {scalar}, {0, 0, 0}).code, 0);
  EXPECT_EQ(scalar.at(0), 3);
  EXPECT_EQ(call_kernel("cumsum", {empty}, {three}, {0, 0, 0}).message, "cumsum: 0 elements for an output of 3");
}

}  // namespace
}  // namespace treadle::kernels
