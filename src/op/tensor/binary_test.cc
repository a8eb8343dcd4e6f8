// SPDX-License-Identifier: Apache-2.0
#include "op/tensor/binary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "op/op_test.h"

namespace treadle::op {
namespace {

using testing::ElementsAre;

template <typename T>
std::vector<double> apply(const char* name, const std::vector<T>& a, const std::vector<T>& b) {
  return test::numbers(test::run(test::call(name, {test::constant(a), test::constant(b)})));
}

TEST(Binary, ArithmeticOfFloats) {
  const std::vector<float> a{7, -7, 7.5f, -1}, b{2, 2, -2, -0.5f};
  EXPECT_THAT(apply("add", a, b), ElementsAre(9, -5, 5.5, -1.5));
  EXPECT_THAT(apply("subtract", a, b), ElementsAre(5, -9, 9.5, -0.5));
  EXPECT_THAT(apply("multiply", a, b), ElementsAre(14, -14, -15, 0.5));
  EXPECT_THAT(apply("divide", a, b), ElementsAre(3.5, -3.5, -3.75, 2));
  EXPECT_THAT(apply("floor_divide", a, b), ElementsAre(3, -4, -4, 2));
  EXPECT_THAT(apply("trunc_divide", a, b), ElementsAre(3, -3, -3, 2));
  EXPECT_THAT(apply("floor_mod", a, b), ElementsAre(1, 1, -0.5, 0));
  EXPECT_THAT(apply("mod", a, b), ElementsAre(1, -1, 1.5, 0));
  EXPECT_THAT(apply("trunc_mod", a, b), ElementsAre(1, -1, 1.5, 0));
  EXPECT_THAT(apply("maximum", a, b), ElementsAre(7, 2, 7.5, -0.5));
  EXPECT_THAT(apply("minimum", a, b), ElementsAre(2, -7, -2, -1));
  EXPECT_THAT(apply<float>("power", {2, 9, 2}, {3, 0.5f, -1}), ElementsAre(8, 3, 0.5));
}

TEST(Binary, DivisionOfIntegers) {
  const std::vector<int32_t> a{7, -7, 7, -7}, b{2, 2, -2, -2};
  EXPECT_THAT(apply("divide", a, b), ElementsAre(3, -3, -3, 3));
  EXPECT_THAT(apply("trunc_divide", a, b), ElementsAre(3, -3, -3, 3));
  EXPECT_THAT(apply("floor_divide", a, b), ElementsAre(3, -4, -4, 3));
  EXPECT_THAT(apply("floor_mod", a, b), ElementsAre(1, 1, -1, -1));
  EXPECT_THAT(apply("mod", a, b), ElementsAre(1, -1, 1, -1));
  EXPECT_THAT(apply<int64_t>("power", {2, -3, 5}, {10, 3, 0}), ElementsAre(1024, -27, 1));
  EXPECT_THAT(apply<uint8_t>("add", {250}, {10}), ElementsAre(4));
}

TEST(Binary, MaximumGivesNanWhenEitherIs) {
  const float nan = std::nanf("");
  for (const char* name : {"maximum", "minimum"}) {
    for (double value : apply<float>(name, {nan, 1, nan}, {1, nan, nan})) EXPECT_TRUE(std::isnan(value)) << name;
  }
}

TEST(Binary, Bits) {
  EXPECT_THAT(apply<int32_t>("left_shift", {1, -1}, {4, 1}), ElementsAre(16, -2));
  EXPECT_THAT(apply<int32_t>("right_shift", {-8, 8}, {1, 2}), ElementsAre(-4, 2));
  EXPECT_THAT(apply<uint8_t>("right_shift", {255}, {4}), ElementsAre(15));
  EXPECT_THAT(apply<int32_t>("bitwise_and", {12}, {10}), ElementsAre(8));
  EXPECT_THAT(apply<int32_t>("bitwise_or", {12}, {10}), ElementsAre(14));
  EXPECT_THAT(apply<int32_t>("bitwise_xor", {12}, {10}), ElementsAre(6));
}

TEST(Binary, ComparisonsGiveBool) {
  const std::vector<float> a{1, 2, std::nanf("")}, b{2, 2, 1};
  EXPECT_THAT(apply("equal", a, b), ElementsAre(0, 1, 0));
  EXPECT_THAT(apply("not_equal", a, b), ElementsAre(1, 0, 1));
  EXPECT_THAT(apply("less", a, b), ElementsAre(1, 0, 0));
  EXPECT_THAT(apply("less_equal", a, b), ElementsAre(1, 1, 0));
  EXPECT_THAT(apply("greater", a, b), ElementsAre(0, 0, 0));
  EXPECT_THAT(apply("greater_equal", a, b), ElementsAre(0, 1, 0));
  EXPECT_EQ(test::run(test::call("less", {test::constant(a), test::constant(b)})).dtype(), dtype::bool_);
}

ir::Expr bools(const std::vector<int>& values) {
  return test::call("cast", {test::constant(std::vector<int32_t>(values.begin(), values.end()))},
                    {{"dtype", dtype::bool_}});
}

TEST(Binary, Logic) {
  const auto a = bools({0, 0, 1, 1}), b = bools({0, 1, 0, 1});
  EXPECT_THAT(test::numbers(test::run(test::call("logical_and", {a, b}))), ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(test::numbers(test::run(test::call("logical_or", {a, b}))), ElementsAre(0, 1, 1, 1));
  EXPECT_THAT(test::numbers(test::run(test::call("logical_xor", {a, b}))), ElementsAre(0, 1, 1, 0));
}

TEST(Binary, ShapesBroadcast) {
  const auto column = test::constant<float>({1, 2}, {2, 1}), row = test::constant<float>({10, 20, 30});
  const Tensor result = test::run(test::call("add", {column, row}));
  EXPECT_THAT(result.shape(), ElementsAre(2, 3));
  EXPECT_THAT(test::numbers(result), ElementsAre(11, 21, 31, 12, 22, 32));
  EXPECT_EQ(test::run(test::call("add", {test::constant<float>({}, {0, 1}), row})).size(), 0);
}

TEST(Binary, SymbolicExtentsBroadcastAtRunTime) {
  const Type a = tensor_type({Dim::symbol("N"), 2}, dtype::float32_),
             b = tensor_type({Dim::symbol("M"), 2}, dtype::float32_);
  const auto sum = [](const auto& x) { return test::call("add", {x[0], x[1]}); };
  const Tensor two = Tensor::from<float>({1, 2, 3, 4}, {2, 2}), one = Tensor::from<float>({10, 20}, {1, 2});
  EXPECT_THAT(test::numbers(test::run({{a, two}, {b, one}}, sum)), ElementsAre(11, 22, 13, 24));
  EXPECT_THAT(test::numbers(test::run({{a, one}, {b, two}}, sum)), ElementsAre(11, 22, 13, 24));
  EXPECT_THAT(test::numbers(test::run({{a, two}, {b, two}}, sum)), ElementsAre(2, 4, 6, 8));
}

TEST(Binary, WhereBroadcastsThreeWays) {
  const Tensor result =
      test::run(where(bools({1, 0}), test::constant<float>({1, 2, 3}, {3, 1}), test::constant<float>({7, 8})));
  EXPECT_THAT(result.shape(), ElementsAre(3, 2));
  EXPECT_THAT(test::numbers(result), ElementsAre(1, 8, 2, 8, 3, 8));
  EXPECT_THAT(test::numbers(test::run(where(test::constant<float>({0, 2.5f}), test::constant<float>({1, 1}),
                                            test::constant<float>({0, 0})))),
              ElementsAre(0, 1));
}

TEST(Binary, RefusesWhatDoesNotFit) {
  EXPECT_THROW(test::call("add", {test::constant<float>({1}), test::constant<double>({1})}), Error);
  EXPECT_THROW(test::call("add", {test::constant<float>({1, 2}), test::constant<float>({1, 2, 3})}), Error);
  EXPECT_THROW(test::call("left_shift", {test::constant<float>({1}), test::constant<float>({1})}), Error);
  EXPECT_THROW(test::call("logical_and", {test::constant<int32_t>({1}), test::constant<int32_t>({1})}), Error);
  EXPECT_THROW(test::call("add", {bools({1}), bools({1})}), Error);
}

// A bias of rank 3 under NCHW16c: its part of the layout; an axis of extent 1 gets the block 1. A vector along W would
// meet the blocks of C there: no layout but the original one.
TEST(Binary, BlockedLayoutReachesTheSmallerOperand) {
  register_operators();
  const auto x = ir::var("x", tensor_type({1, 32, 5, 5}, dtype::float32_)),
             b = ir::var("b", tensor_type({32, 1, 1}, dtype::float32_)),
             one = ir::var("s", tensor_type({1, 1, 1, 1}, dtype::float32_)),
             vector = ir::var("v", tensor_type({5}, dtype::float32_)),
             single = ir::var("e", tensor_type({1}, dtype::float32_));
  const auto ask = [&](const ir::Expr& other) {
    const ir::Expr call = add(x, other);
    return call.as<ir::Call>()->op()->layout({*call.as<ir::Call>(), {Layout("NCHW16c"), Layout()}});
  };
  EXPECT_EQ(ask(b).inputs[1].text(), "CHW16c");
  EXPECT_EQ(ask(b).outputs[0].text(), "NCHW16c");
  EXPECT_EQ(ask(one).inputs[1].text(), "NCHW1c");
  EXPECT_FALSE(ask(vector).outputs[0].defined());
  EXPECT_EQ(ask(single).outputs[0].text(), "NCHW16c");
}

}  // namespace
}  // namespace treadle::op
