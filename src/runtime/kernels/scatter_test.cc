// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "runtime/kernels/kernel_harness.h"

namespace treadle::kernels {
namespace {

using testing::ElementsAre;

double apply(int mode, double a, double b) {
  switch (mode) {
    case 1:
      return a + b;
    case 2:
      return a * b;
    case 3:
      return std::min(a, b);
    case 4:
      return std::max(a, b);
    default:
      return b;
  }
}

TEST(ScatterElements, EqualsALoopForAllDtypes) {
  const std::vector<int64_t> shape = {4, 3, 5}, index_shape = {2, 3, 4};
  for (DType dtype : all_dtypes()) {
    if (dtype.is_bool()) continue;
    const Tensor data = small_numbers(dtype, shape, 1), updates = small_numbers(dtype, index_shape, 2);
    for (int64_t axis : {0, 1, 2, -1}) {
      const int64_t a = axis < 0 ? axis + 3 : axis;
      Tensor indices = Tensor::zeros(dtype::int32_, index_shape);
      for (int64_t i = 0; i < indices.size(); ++i) {
        indices.values<int32_t>()[i] = static_cast<int32_t>(i * 7 % (2 * shape[a]) - shape[a]);  // negative ones too
      }
      for (int mode = 0; mode <= 4; ++mode) {
        if (mode == 2 && dtype.bits == 8) continue;  // products leave the range
        std::vector<double> expected;
        for (int64_t i = 0; i < data.size(); ++i) expected.push_back(data.at(i));
        for (int64_t i = 0; i < indices.size(); ++i) {
          int64_t position[3] = {i / 12, i / 4 % 3, i % 4};
          const int64_t index = indices.int_at(i);
          position[a] = index < 0 ? index + shape[a] : index;
          double& place = expected[(position[0] * 3 + position[1]) * 5 + position[2]];
          place = apply(mode, place, updates.at(i));
        }
        Tensor out(dtype, shape);
        ASSERT_EQ(call_kernel("scatter_elements", {data, indices, updates}, {out}, {axis, mode}).code, 0);
        for (int64_t i = 0; i < out.size(); ++i) {
          const double wrapped =
              dtype.is_uint() && dtype.bits < 64 ? std::fmod(expected[i], std::pow(2.0, dtype.bits)) : expected[i];
          if (dtype.is_half() && std::abs(expected[i]) > 128) continue;  // beyond whole numbers of bfloat16
          ASSERT_EQ(out.at(i), wrapped) << to_string(dtype) << " axis " << axis << " mode " << mode << " at " << i;
        }
      }
    }
  }
}

TEST(ScatterElements, MeanOfTheElementAndItsUpdates) {
  const Tensor data = Tensor::from<float>({3, 10}), indices = Tensor::from<int64_t>({0, 0, 0}),
               updates = Tensor::from<float>({1, 4, 4});
  Tensor out(dtype::float32_, {2});
  ASSERT_EQ(call_kernel("scatter_elements", {data, indices, updates}, {out}, {0, 5}).code, 0);
  EXPECT_EQ(out.at(0), 3);
  EXPECT_EQ(out.at(1), 10);
  Tensor whole(dtype::int32_, {2});
  ASSERT_EQ(call_kernel("scatter_elements",
                        {Tensor::from<int32_t>({-4, 1}), Tensor::from<int32_t>({0}), Tensor::from<int32_t>({-1})},
                        {whole}, {0, 5})
                .code,
            0);
  EXPECT_THAT(whole.to_ints(), ElementsAre(-3, 1));  // floor(-2.5)
}

TEST(ScatterElements, TheLastUpdateStays) {
  Tensor out(dtype::bool_, {2});
  Tensor updates = Tensor::zeros(dtype::bool_, {3});
  updates.values<bool>()[2] = true;
  ASSERT_EQ(call_kernel("scatter_elements",
                        {Tensor::zeros(dtype::bool_, {2}), Tensor::from<int64_t>({1, 1, 1}), updates}, {out}, {0, 0})
                .code,
            0);
  EXPECT_THAT(out.to_ints(), ElementsAre(0, 1));
}

TEST(ScatterElements, BadIndicesFail) {
  Tensor out(dtype::float32_, {2});
  const Tensor data = Tensor::zeros(dtype::float32_, {2}), update = Tensor::zeros(dtype::float32_, {1});
  auto message = [&](const Tensor& indices, const Tensor& updates) {
    return call_kernel("scatter_elements", {data, indices, updates}, {out}, {0, 0}).message;
  };
  EXPECT_EQ(message(Tensor::from<int64_t>({2}), update),
            "scatter_elements: index 2 is out of range for axis 0 of extent 2");
  EXPECT_EQ(message(Tensor::from<int64_t>({-3}), update),
            "scatter_elements: index -3 is out of range for axis 0 of extent 2");
  EXPECT_EQ(message(Tensor::from<int64_t>({INT64_MIN}), update),
            "scatter_elements: index -9223372036854775808 is out of range for axis 0 of extent 2");
  EXPECT_NE(message(Tensor::from<float>({0}), update), "");
  EXPECT_NE(message(Tensor::from<int64_t>({0, 1}), update), "");
  EXPECT_NE(message(Tensor::zeros(dtype::int64_, {1, 1}), Tensor::zeros(dtype::float32_, {1, 1})), "");
  EXPECT_EQ(message(Tensor::zeros(dtype::int64_, {0}), Tensor::zeros(dtype::float32_, {0})), "");
}

TEST(ScatterNd, TuplesAlongAxisZero) {
  // data (2, 2, 3), tuples of two indices, blocks of three elements.
  const Tensor data = Tensor::zeros(dtype::float32_, {2, 2, 3});
  const Tensor indices = Tensor::from<int64_t>({0, 1, 0, 1, -2, 1}, {2, 3});  // (0,1), (1,0), (0,1)
  const Tensor updates = Tensor::from<float>({1, 2, 3, 4, 5, 6, 7, 8, 9}, {3, 3});
  Tensor out(dtype::float32_, {2, 2, 3});
  ASSERT_EQ(call_kernel("scatter_nd", {data, indices, updates}, {out}, {0}).code, 0);
  EXPECT_THAT(out.to_ints(), ElementsAre(0, 0, 0, 7, 8, 9, 4, 5, 6, 0, 0, 0));
  ASSERT_EQ(call_kernel("scatter_nd", {data, indices, updates}, {out}, {1}).code, 0);
  EXPECT_THAT(out.to_ints(), ElementsAre(0, 0, 0, 8, 10, 12, 4, 5, 6, 0, 0, 0));
  ASSERT_EQ(call_kernel("scatter_nd", {data, indices, updates}, {out}, {4}).code, 0);
  EXPECT_THAT(out.to_ints(), ElementsAre(0, 0, 0, 7, 8, 9, 4, 5, 6, 0, 0, 0));
}

TEST(ScatterNd, WholeElementsAndEmptyTuples) {
  Tensor out(dtype::int8_, {2, 2});
  const Tensor data = Tensor::from<int8_t>({1, 2, 3, 4}, {2, 2});
  ASSERT_EQ(
      call_kernel("scatter_nd", {data, Tensor::from<int32_t>({1, 0}, {2, 1}), Tensor::from<int8_t>({9})}, {out}, {0})
          .code,
      0);
  EXPECT_THAT(out.to_ints(), ElementsAre(1, 2, 9, 4));
  // A tuple of no index stands for the whole tensor.
  ASSERT_EQ(call_kernel("scatter_nd", {data, Tensor(dtype::int32_, {0}), Tensor::from<int8_t>({5, 6, 7, 8}, {2, 2})},
                        {out}, {0})
                .code,
            0);
  EXPECT_THAT(out.to_ints(), ElementsAre(5, 6, 7, 8));
}

TEST(ScatterNd, BadCallsFail) {
  Tensor out(dtype::float32_, {2, 2});
  const Tensor data = Tensor::zeros(dtype::float32_, {2, 2});
  auto message = [&](const Tensor& indices, const Tensor& updates, int64_t mode) {
    return call_kernel("scatter_nd", {data, indices, updates}, {out}, {mode}).message;
  };
  EXPECT_EQ(message(Tensor::from<int64_t>({0, 2}, {2, 1}), Tensor::zeros(dtype::float32_, {1}), 0),
            "scatter_nd: index 2 is out of range for axis 1 of extent 2");
  EXPECT_NE(message(Tensor::from<int64_t>({0, 1}, {2, 1}), Tensor::zeros(dtype::float32_, {2}), 0), "");
  EXPECT_NE(message(Tensor::from<int64_t>({0, 1, 1}, {3, 1}), Tensor::zeros(dtype::float32_, {1}), 0), "");
  EXPECT_EQ(message(Tensor::from<int64_t>({0, 1}, {2, 1}), Tensor::zeros(dtype::float32_, {1}), 5),
            "scatter_nd: unknown reduction 5");
}

}  // namespace
}  // namespace treadle::kernels
