// SPDX-License-Identifier: Apache-2.0
// Shapes that tensors hold: the kernel that binds their symbols, and the operators behind it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "op/op_test.h"
#include "op/tensor/dynamic.h"
#include "pass/interpreter.h"

namespace treadle::op {
namespace {

using test::constant;
using test::numbers;
using testing::ElementsAre;

Tensor run(const ir::Expr& expr) { return pass::interpret(expr).at(0); }
ir::Expr number(double value, DType dtype) { return ir::constant(Tensor::scalar(dtype, value)); }

class DynamicOperators : public testing::Test {
 protected:
  void SetUp() override { register_operators(); }
  const ir::Expr x_ = constant<float>({1, 2, 3, 4, 5, 6}, {2, 3});
};

TEST_F(DynamicOperators, Reshape) {
  const Tensor y = run(dynamic_reshape(x_, constant<int64_t>({-1, 2})));
  EXPECT_THAT(y.shape(), ElementsAre(3, 2));
  EXPECT_THAT(numbers(y), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(run(dynamic_reshape(x_, constant<int64_t>({0, 1, -1}))).shape(), ElementsAre(2, 1, 3));
  EXPECT_THAT(run(dynamic_reshape(constant<float>({}, {0, 3}), constant<int64_t>({3, 0}), true)).shape(),
              ElementsAre(3, 0));
  for (const auto& wrong : {std::vector<int64_t>{4}, {-1, -1}, {-1, 4}, {-2, 3}, {0, 0, 0}}) {
    EXPECT_THROW(run(dynamic_reshape(x_, constant(wrong))), Error);
  }
  EXPECT_THROW(dynamic_reshape(x_, constant<float>({6})), Error);
}

TEST_F(DynamicOperators, BroadcastBothWays) {
  const Tensor y = run(dynamic_broadcast_to(constant<float>({1, 2}, {2, 1}), constant<int64_t>({3, 1, 2})));
  EXPECT_THAT(y.shape(), ElementsAre(3, 2, 2));
  EXPECT_THAT(numbers(y), ElementsAre(1, 1, 2, 2, 1, 1, 2, 2, 1, 1, 2, 2));
  EXPECT_THAT(run(dynamic_broadcast_to(x_, constant<int64_t>({1}))).shape(), ElementsAre(2, 3));
  EXPECT_THROW(run(dynamic_broadcast_to(x_, constant<int64_t>({2}))), Error);
}

TEST_F(DynamicOperators, FullAndArange) {
  EXPECT_THAT(numbers(run(dynamic_full(number(7, dtype::int32_), constant<int64_t>({2, 2})))), ElementsAre(7, 7, 7, 7));
  EXPECT_EQ(run(dynamic_full(number(7, dtype::int32_), constant<int64_t>(std::vector<int64_t>{}))).at(0), 7);
  EXPECT_THROW(run(dynamic_full(number(7, dtype::int32_), constant<int64_t>({-2}))), Error);
  const auto count = [](double start, double stop, double step, DType dtype) {
    return numbers(run(dynamic_arange(number(start, dtype), number(stop, dtype), number(step, dtype))));
  };
  EXPECT_THAT(count(1, 6, 2, dtype::int64_), ElementsAre(1, 3, 5));
  EXPECT_THAT(count(2, 0, -0.5, dtype::float32_), ElementsAre(2, 1.5, 1, 0.5));
  EXPECT_THAT(count(3, 1, 1, dtype::int32_), ElementsAre());
  EXPECT_THROW(count(0, 1, 0, dtype::int32_), Error);
}

// Every begin, end and stride of a short axis against NumPy's rule written out.
TEST_F(DynamicOperators, StridedSlice) {
  const ir::Expr row = constant<float>({0, 1, 2, 3}, {1, 4});
  for (int64_t begin = -6; begin <= 6; ++begin) {
    for (int64_t end = -6; end <= 6; ++end) {
      for (int64_t stride : {-2, -1, 1, 3}) {
        std::vector<double> expected;
        const int64_t first = begin < 0 ? begin + 4 : begin, last = end < 0 ? end + 4 : end;
        for (int64_t i = stride > 0 ? std::max<int64_t>(first, 0) : std::min<int64_t>(first, 3);
             stride > 0 ? i < std::min<int64_t>(last, 4) : i > std::max<int64_t>(last, -1); i += stride) {
          expected.push_back(static_cast<double>(i));
        }
        const auto vector = [](int64_t value) { return constant<int64_t>({value}); };
        ASSERT_EQ(numbers(run(dynamic_strided_slice(row, vector(begin), vector(end), vector(stride), ir::Ints{-1}))),
                  expected)
            << begin << ":" << end << ":" << stride;
      }
    }
  }
  EXPECT_THROW(run(dynamic_strided_slice(row, constant<int64_t>({0}), constant<int64_t>({1}), constant<int64_t>({0}),
                                         ir::Ints{1})),
               Error);
}

TEST_F(DynamicOperators, OperatorsBehindSeeTheExtents) {
  const ir::Expr y = dynamic_reshape(x_, constant<int64_t>({3, 2}));
  EXPECT_THAT(numbers(run(test::call("zeros_like", {y}))), ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_THAT(numbers(run(test::call("sum", {y}, {{"axis", ir::Ints{1}}}))), ElementsAre(3, 7, 11));
}

}  // namespace
}  // namespace treadle::op
