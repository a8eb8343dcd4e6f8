// SPDX-License-Identifier: Apache-2.0
#include "op/tensor/reduce.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "op/op_test.h"

namespace treadle::op {
namespace {

using test::numbers;
using test::run;
using testing::ElementsAre;

// Reduces a (2, 3, 4) tensor by visiting every element; `axes` as bits.
std::vector<double> reference(const std::vector<double>& x, int axes, bool mean,
                              const std::function<double(double, double)>& f, double start) {
  const int extents[3] = {2, 3, 4};
  std::vector<double> result;
  std::vector<int> counts;
  const auto place = [&](const int (&i)[3]) {
    int p = 0;
    for (int a = 0; a < 3; ++a) {
      if (!(axes >> a & 1)) p = p * extents[a] + i[a];
    }
    return static_cast<size_t>(p);
  };
  for (int i = 0; i < 24; ++i) {
    const int index[3] = {i / 12, i / 4 % 3, i % 4};
    const size_t p = place(index);
    if (p >= result.size()) result.resize(p + 1, start), counts.resize(p + 1, 0);
    result[p] = f(result[p], x[i]);
    ++counts[p];
  }
  if (mean) {
    for (size_t i = 0; i < result.size(); ++i) result[i] /= counts[i];
  }
  return result;
}

std::vector<double> sample() {
  std::vector<double> x;
  for (int i = 0; i < 24; ++i) x.push_back((i * 7 % 11 - 4) * 0.5);
  return x;
}

TEST(Reduce, EveryChoiceOfAxes) {
  const std::vector<double> x = sample();
  const auto tensor = test::constant(x, {2, 3, 4});
  const struct {
    const char* name;
    bool mean;
    std::function<double(double, double)> f;
    double start;
  } cases[] = {
      {"sum", false, [](double a, double b) { return a + b; }, 0},
      {"prod", false, [](double a, double b) { return a * b; }, 1},
      {"mean", true, [](double a, double b) { return a + b; }, 0},
      {"max", false, [](double a, double b) { return std::max(a, b); }, -1e300},
      {"min", false, [](double a, double b) { return std::min(a, b); }, 1e300},
  };
  test::call("sum", {tensor});
  for (const auto& c : cases) {
    for (int mask = 1; mask < 8; ++mask) {
      ir::Ints axes, others;
      for (int a = 0; a < 3; ++a) (mask >> a & 1 ? axes : others).push_back(mask >> a & 1 && a == 2 ? -1 : a);
      const std::vector<double> expected = reference(x, mask, c.mean, c.f, c.start);
      const Tensor plain = run(reduce(c.name, tensor, axes));
      EXPECT_THAT(numbers(plain), testing::Pointwise(testing::DoubleNear(1e-12), expected)) << c.name << mask;
      EXPECT_EQ(plain.shape().size(), 3 - axes.size());
      const Tensor kept = run(reduce(c.name, tensor, axes, true));
      EXPECT_EQ(kept.shape().size(), 3);
      EXPECT_THAT(numbers(kept), testing::Pointwise(testing::DoubleNear(1e-12), expected));
      if (others.empty()) continue;
      EXPECT_THAT(numbers(run(reduce(c.name, tensor, others, false, true))),
                  testing::Pointwise(testing::DoubleNear(1e-12), expected));
    }
  }
}

TEST(Reduce, HalfPrecisionAddsInFloat32) {
  // 4096 times 0.25: in float16 the sum would stop growing at 512.
  const std::vector<Float16> x(4096, Float16(0.25f));
  EXPECT_EQ(run(test::call("sum", {test::constant(x)})).at(0), 1024);
  const std::vector<BFloat16> y(4096, BFloat16(0.25f));
  EXPECT_EQ(run(test::call("mean", {test::constant(y)})).at(0), 0.25);
}

TEST(Reduce, IntegersKeepTheirDtype) {
  EXPECT_EQ(run(test::call("sum", {test::constant<int8_t>({100, 100})})).int_at(0), -56);
  EXPECT_EQ(run(test::call("mean", {test::constant<int32_t>({-3, -4})})).int_at(0), -3);
}

TEST(Reduce, ScalarAndEmpty) {
  EXPECT_EQ(run(test::call("sum", {ir::constant(Tensor::scalar(dtype::float32_, 7))})).at(0), 7);
  EXPECT_THAT(numbers(run(test::call("sum", {test::constant<float>({}, {2, 0})}, {{"axis", ir::Ints{1}}}))),
              ElementsAre(0, 0));
  EXPECT_EQ(run(test::call("max", {test::constant<float>({}, {0})})).at(0), -std::numeric_limits<double>::infinity());
}

TEST(Reduce, Bools) {
  const auto x = test::call("cast", {test::constant<int32_t>({1, 0, 1, 1}, {2, 2})}, {{"dtype", dtype::bool_}});
  EXPECT_THAT(numbers(run(test::call("all", {x}, {{"axis", ir::Ints{1}}}))), ElementsAre(0, 1));
  EXPECT_THAT(numbers(run(test::call("any", {x}, {{"axis", ir::Ints{1}}}))), ElementsAre(1, 1));
  EXPECT_THROW(test::call("sum", {x}), Error);
  EXPECT_THROW(test::call("all", {test::constant<float>({1})}), Error);
}

TEST(Reduce, ArgumentsOfExtremes) {
  const auto x = test::constant<float>({3, 5, 5, 1, 5, 0, 1, 1}, {2, 4});
  register_operators();
  EXPECT_THAT(numbers(run(arg_reduce("argmax", x, ir::Ints{1}, false, false))), ElementsAre(1, 0));
  EXPECT_THAT(numbers(run(arg_reduce("argmax", x, ir::Ints{1}, false, true))), ElementsAre(2, 0));
  EXPECT_THAT(numbers(run(arg_reduce("argmin", x, ir::Ints{1}, true, true))), ElementsAre(3, 1));
  const Tensor flat = run(arg_reduce("argmin", x, std::nullopt, false, false));
  EXPECT_EQ(flat.int_at(0), 5);
  EXPECT_EQ(flat.dtype(), dtype::int32_);
  EXPECT_EQ(
      run(arg_reduce("argmax", test::constant<float>({1, std::nanf(""), 9}), std::nullopt, false, false)).int_at(0), 1);
  EXPECT_THROW(arg_reduce("argmax", test::constant<float>({}, {2, 0}), ir::Ints{1}, false, false), Error);
}

TEST(Reduce, VarianceStandardDeviationLogsumexp) {
  register_operators();
  const auto x = test::constant<double>({1, 2, 3, 4, 10, 10, 10, 10}, {2, 4});
  EXPECT_THAT(numbers(run(variance(x, ir::Ints{1}))), ElementsAre(1.25, 0));
  EXPECT_NEAR(run(variance(x, ir::Ints{1}, false, false, true)).at(0), 5.0 / 3, 1e-12);
  EXPECT_NEAR(run(standard_deviation(x, ir::Ints{1}, true)).at(0), std::sqrt(1.25), 1e-12);
  EXPECT_NEAR(run(logsumexp(x, ir::Ints{1})).at(0), std::log(std::exp(1) + std::exp(2) + std::exp(3) + std::exp(4)),
              1e-12);
  EXPECT_NEAR(run(logsumexp(test::constant<double>({1000, 1000}), ir::Ints{0})).at(0), 1000 + std::log(2), 1e-9);
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(run(logsumexp(test::constant<double>({-inf, -inf}), ir::Ints{0}, true)).at(0), -inf);
}

TEST(Reduce, SymbolicExtents) {
  const Type type = tensor_type({Dim::symbol("N"), Dim::symbol("M")}, dtype::float32_);
  const Tensor value = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_THAT(numbers(run({{type, value}}, [](const auto& x) { return mean(x[0], ir::Ints{-1}); })), ElementsAre(2, 5));
  EXPECT_THAT(numbers(run({{type, value}},
                          [](const auto& x) { return arg_reduce("argmax", x[0], std::nullopt, false, false); })),
              ElementsAre(5));
}

TEST(Reduce, RefusesWrongAxes) {
  const auto x = test::constant<float>({1, 2}, {1, 2});
  EXPECT_THROW(test::call("sum", {x}, {{"axis", ir::Ints{2}}}), Error);
  EXPECT_THROW(test::call("sum", {x}, {{"axis", ir::Ints{0, -2}}}), Error);
  EXPECT_THROW(test::call("sum", {x}, {{"exclude", true}}), Error);
}

TEST(Reduce, BlockedLayout) {
  register_operators();
  const auto x = ir::var("x", tensor_type({1, 32, 5, 7}, dtype::float32_));
  const ir::Expr spatial = mean(x, ir::Ints{2, 3}, true);
  const auto ask = [](const ir::Expr& e) {
    return e.as<ir::Call>()->op()->layout({*e.as<ir::Call>(), {Layout("NCHW16c")}});
  };
  EXPECT_EQ(ask(spatial).outputs[0].text(), "NCHW16c");
  EXPECT_EQ(ask(mean(x, ir::Ints{2, 3})).outputs[0].text(), "NC16c");
  const ir::LayoutAnswer channels = ask(mean(x, ir::Ints{1}));
  EXPECT_EQ(channels.outputs[0].text(), "NHW");
  EXPECT_EQ(static_cast<const ReduceAttrs&>(*channels.attrs).axis, (ir::Ints{1, 4}));
}

}  // namespace
}  // namespace treadle::op
