// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <limits>

#include "runtime/kernels/kernel_harness.h"

namespace treadle::kernels {
namespace {

using testing::ElementsAre;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// Order of a row by repeated selection: the first of the smallest (or largest) that are left.
std::vector<int64_t> selection_order(const std::vector<double>& row, bool is_ascend) {
  std::vector<int64_t> order;
  std::vector<bool> taken(row.size());
  for (size_t n = 0; n < row.size(); ++n) {
    int64_t best = -1;
    for (size_t i = 0; i < row.size(); ++i) {
      if (taken[i]) continue;
      if (best < 0 || (is_ascend ? row[i] < row[best] : row[i] > row[best])) best = static_cast<int64_t>(i);
    }
    taken[best] = true;
    order.push_back(best);
  }
  return order;
}

TEST(Sort, EqualsSelectionForAllDtypesAndAxes) {
  const std::vector<int64_t> shape = {3, 17, 2};
  for (DType dtype : all_dtypes()) {
    const Tensor data = small_numbers(dtype, shape, 7);
    for (int64_t axis : {0, 1, 2, -1, -2}) {
      for (bool is_ascend : {true, false}) {
        const int64_t a = axis < 0 ? axis + 3 : axis, k = std::min<int64_t>(shape[a], 2);
        Tensor sorted(dtype, shape), indices(dtype::int64_, shape);
        std::vector<int64_t> top_shape = shape;
        top_shape[a] = k;
        Tensor top(dtype, top_shape), top_indices(dtype::int32_, top_shape);
        ASSERT_EQ(call_kernel("sort", {data}, {sorted}, {axis, is_ascend}).code, 0);
        ASSERT_EQ(call_kernel("argsort", {data}, {indices}, {axis, is_ascend}).code, 0);
        ASSERT_EQ(call_kernel("topk", {data}, {top, top_indices}, {axis, is_ascend, 0}).code, 0);
        int64_t stride = 1;
        for (size_t i = a + 1; i < 3; ++i) stride *= shape[i];
        for (int64_t start = 0; start < data.size(); ++start) {
          if (start / stride % shape[a] != 0) continue;
          const int64_t top_start = start / (stride * shape[a]) * stride * k + start % stride;
          std::vector<double> row;
          for (int64_t i = 0; i < shape[a]; ++i) row.push_back(data.at(start + i * stride));
          const std::vector<int64_t> order = selection_order(row, is_ascend);
          for (int64_t i = 0; i < shape[a]; ++i) {
            ASSERT_EQ(indices.int_at(start + i * stride), order[i]) << to_string(dtype) << " axis " << axis;
            ASSERT_EQ(sorted.at(start + i * stride), row[order[i]]);
            if (i >= k) continue;
            ASSERT_EQ(top_indices.int_at(top_start + i * stride), order[i]);
            ASSERT_EQ(top.at(top_start + i * stride), row[order[i]]);
          }
        }
      }
    }
  }
}

TEST(Sort, NanComesLastInBothOrders) {
  const Tensor data = Tensor::from<float>({2, kNaN, 3, -1, kNaN});
  Tensor indices(dtype::int32_, {5});
  call_kernel("argsort", {data}, {indices}, {0, 1});
  EXPECT_THAT(indices.to_ints(), ElementsAre(3, 0, 2, 1, 4));
  call_kernel("argsort", {data}, {indices}, {0, 0});
  EXPECT_THAT(indices.to_ints(), ElementsAre(2, 0, 3, 1, 4));
}

TEST(Sort, LargeRowsAndManyRows) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{1, 100000}, {5000, 20}}) {
    const Tensor data = small_numbers(dtype::float32_, shape, 3);
    Tensor sorted(dtype::float32_, shape), indices(dtype::int64_, shape);
    ASSERT_EQ(call_kernel("sort", {data}, {sorted}, {-1, 1}).code, 0);
    ASSERT_EQ(call_kernel("argsort", {data}, {indices}, {-1, 1}).code, 0);
    for (int64_t row = 0; row < shape[0]; ++row) {
      for (int64_t i = row * shape[1] + 1; i < (row + 1) * shape[1]; ++i) {
        ASSERT_LE(sorted.at(i - 1), sorted.at(i));
        ASSERT_TRUE(sorted.at(i - 1) < sorted.at(i) || indices.int_at(i - 1) < indices.int_at(i));
      }
    }
  }
}

TEST(Sort, EmptyAndScalar) {
  Tensor empty(dtype::float32_, {0, 3}), out(dtype::float32_, {0, 3});
  EXPECT_EQ(call_kernel("sort", {empty}, {out}, {0, 1}).code, 0);
  EXPECT_EQ(call_kernel("sort", {empty}, {out}, {1, 1}).code, 0);
  Tensor scalar = Tensor::scalar(dtype::float32_, 4), result(dtype::float32_, {});
  EXPECT_EQ(call_kernel("sort", {scalar}, {result}, {0, 1}).code, 0);
  EXPECT_EQ(result.at(0), 4);
}

TEST(TopK, GivesOnlyWhatIsWanted) {
  const Tensor data = Tensor::from<int32_t>({5, 1, 5, 3});
  Tensor values(dtype::int32_, {3}), indices(dtype::int64_, {3});
  ASSERT_EQ(call_kernel("topk", {data}, {values}, {0, 0, 1}).code, 0);
  EXPECT_THAT(values.to_ints(), ElementsAre(5, 5, 3));
  ASSERT_EQ(call_kernel("topk", {data}, {indices}, {0, 0, 2}).code, 0);
  EXPECT_THAT(indices.to_ints(), ElementsAre(0, 2, 3));
}

TEST(Sort, BadCallsFail) {
  const Tensor data = Tensor::zeros(dtype::float32_, {2, 3});
  Tensor out(dtype::float32_, {2, 3}), more(dtype::float32_, {2, 4}), other(dtype::int8_, {2, 3});
  EXPECT_EQ(call_kernel("sort", {data}, {out}, {2, 1}).message, "sort: axis 2 of a tensor of 2 axes");
  EXPECT_EQ(call_kernel("topk", {data}, {more}, {1, 0, 1}).message, "topk: 4 of 3 elements are wanted");
  EXPECT_NE(call_kernel("sort", {data}, {other}, {1, 1}).code, 0);
  EXPECT_NE(call_kernel("sort", {data}, {}, {1, 1}).code, 0);
  EXPECT_NE(call_kernel("sort", {}, {out}, {1, 1}).code, 0);
  EXPECT_NE(call_kernel("sort", {data}, {out}, {}).code, 0);
  EXPECT_EQ(find_runtime_kernel("no_such_kernel"), nullptr);
}

}  // namespace
}  // namespace treadle::kernels
