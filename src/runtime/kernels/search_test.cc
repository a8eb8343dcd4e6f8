// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <limits>

#include "runtime/kernels/kernel_harness.h"

namespace treadle::kernels {
namespace {

using testing::ElementsAre;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

TEST(ArgWhere, EqualsALoopForAllDtypes) {
  for (DType dtype : all_dtypes()) {
    const Tensor data = small_numbers(dtype, {4, 3, 5}, 5);
    Tensor out = Tensor::zeros(dtype::int32_, {60, 3});
    const Outcome outcome = call_kernel("argwhere", {data}, {out}, {});
    ASSERT_EQ(outcome.code, 0);
    int64_t row = 0;
    for (int64_t i = 0; i < 60; ++i) {
      if (data.at(i) == 0) continue;
      ASSERT_EQ(out.int_at(3 * row), i / 15);
      ASSERT_EQ(out.int_at(3 * row + 1), i / 5 % 3);
      ASSERT_EQ(out.int_at(3 * row + 2), i % 5);
      ++row;
    }
    EXPECT_EQ(outcome.results[0], row);
  }
}

TEST(ArgWhere, ScalarsEmptyTensorsAndNan) {
  Tensor no_columns(dtype::int64_, {1, 0}), column(dtype::int64_, {3, 1}), none(dtype::int64_, {0, 2});
  EXPECT_EQ(call_kernel("argwhere", {Tensor::scalar(dtype::float32_, 1)}, {no_columns}, {}).results[0], 1);
  EXPECT_EQ(call_kernel("argwhere", {Tensor::scalar(dtype::float32_, 0)}, {no_columns}, {}).results[0], 0);
  EXPECT_EQ(call_kernel("argwhere", {Tensor::from<float>({kNaN, 0, -0.0f})}, {column}, {}).results[0], 1);
  EXPECT_EQ(call_kernel("argwhere", {Tensor(dtype::float32_, {0, 3})}, {none}, {}).results[0], 0);
  EXPECT_NE(call_kernel("argwhere", {Tensor::from<float>({1, 1})}, {none}, {}).code, 0);
}

TEST(Unique, EqualsRelay) {
  const Tensor data = Tensor::from<int32_t>({4, 1, 1, 3, 4, 2});
  Tensor values(dtype::int32_, {6}), first(dtype::int32_, {6}), inverse(dtype::int32_, {6}), count(dtype::int32_, {1}),
      counts(dtype::int32_, {6});
  ASSERT_EQ(call_kernel("unique", {data}, {values, first, inverse, count, counts}, {1, 1}).results[0], 4);
  EXPECT_THAT(values.to_ints(), ElementsAre(1, 2, 3, 4, 0, 0));
  EXPECT_THAT(first.to_ints(), ElementsAre(1, 5, 3, 0, 0, 0));
  EXPECT_THAT(inverse.to_ints(), ElementsAre(3, 0, 0, 2, 3, 1));
  EXPECT_THAT(counts.to_ints(), ElementsAre(2, 1, 1, 2, 0, 0));
  EXPECT_EQ(count.int_at(0), 4);
  ASSERT_EQ(call_kernel("unique", {data}, {values, first, inverse, count, counts}, {0, 1}).results[0], 4);
  EXPECT_THAT(values.to_ints(), ElementsAre(4, 1, 3, 2, 0, 0));
  EXPECT_THAT(first.to_ints(), ElementsAre(0, 1, 3, 5, 0, 0));
  EXPECT_THAT(inverse.to_ints(), ElementsAre(0, 1, 1, 2, 0, 3));
  EXPECT_THAT(counts.to_ints(), ElementsAre(2, 2, 1, 1, 0, 0));
}

TEST(Unique, HoldsForAllDtypes) {
  for (DType dtype : all_dtypes()) {
    const Tensor data = small_numbers(dtype, {100}, 9);
    for (int64_t is_sorted : {0, 1}) {
      Tensor values(dtype, {100}), first(dtype::int64_, {100}), inverse(dtype::int64_, {100}),
          count(dtype::int64_, {1});
      const Outcome outcome = call_kernel("unique", {data}, {values, first, inverse, count}, {is_sorted, 0});
      ASSERT_EQ(outcome.code, 0);
      for (int64_t i = 0; i < 100; ++i) ASSERT_EQ(values.at(inverse.int_at(i)), data.at(i));
      for (int64_t i = 0; i < outcome.results[0]; ++i) {
        ASSERT_EQ(data.at(first.int_at(i)), values.at(i));
        for (int64_t j = 0; j < first.int_at(i); ++j) ASSERT_NE(data.at(j), values.at(i));
        const Tensor& rising = is_sorted ? values : first;
        ASSERT_TRUE(i == 0 || rising.at(i - 1) < rising.at(i));
      }
    }
  }
}

TEST(Unique, NanAndEmpty) {
  Tensor values(dtype::float32_, {3}), first(dtype::int64_, {3}), inverse(dtype::int64_, {3}),
      count(dtype::int64_, {1});
  EXPECT_EQ(
      call_kernel("unique", {Tensor::from<float>({kNaN, 1, kNaN})}, {values, first, inverse, count}, {1, 0}).results[0],
      2);
  EXPECT_THAT(inverse.to_ints(), ElementsAre(1, 0, 1));
  Tensor none(dtype::float32_, {0}), no_index(dtype::int64_, {0});
  EXPECT_EQ(call_kernel("unique", {none}, {none, no_index, no_index, count}, {1, 0}).results[0], 0);
  EXPECT_NE(call_kernel("unique", {none}, {values, first, inverse, count}, {1, 0}).code, 0);
}

TEST(SearchSorted, EqualsCounting) {
  for (DType dtype : all_dtypes()) {
    Tensor sequence(dtype, {3, 7});
    ASSERT_EQ(call_kernel("sort", {small_numbers(dtype, {3, 7}, 1)}, {sequence}, {1, 1}).code, 0);
    const Tensor values = small_numbers(dtype, {3, 4}, 2);
    for (bool right : {false, true}) {
      Tensor out(dtype::int32_, {3, 4});
      ASSERT_EQ(call_kernel("searchsorted", {sequence, values}, {out}, {right}).code, 0);
      for (int64_t i = 0; i < 12; ++i) {
        int64_t expected = 0;
        for (int64_t k = 0; k < 7; ++k) {
          const double element = sequence.at(i / 4 * 7 + k);
          expected += right ? element <= values.at(i) : element < values.at(i);
        }
        ASSERT_EQ(out.int_at(i), expected);
      }
    }
  }
}

TEST(SearchSorted, OneSequenceForAll) {
  Tensor out(dtype::int64_, {2, 2}), scalar(dtype::int64_, {});
  const Tensor sequence = Tensor::from<float>({1, 3, 5});
  ASSERT_EQ(call_kernel("searchsorted", {sequence, Tensor::from<float>({0, 3, 9, kNaN}, {2, 2})}, {out}, {0}).code, 0);
  EXPECT_THAT(out.to_ints(), ElementsAre(0, 1, 3, 3));
  ASSERT_EQ(call_kernel("searchsorted", {sequence, Tensor::scalar(dtype::float32_, 4)}, {scalar}, {0}).code, 0);
  EXPECT_EQ(scalar.int_at(0), 2);
  EXPECT_NE(call_kernel("searchsorted", {Tensor::from<float>({1, 2}, {2, 1}), Tensor::from<float>({0})},
                        {Tensor(dtype::int64_, {1})}, {0})
                .code,
            0);
}

}  // namespace
}  // namespace treadle::kernels
