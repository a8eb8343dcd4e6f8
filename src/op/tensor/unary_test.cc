// SPDX-License-Identifier: Apache-2.0
#include "op/tensor/unary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "op/op_test.h"

namespace treadle::op {
namespace {

using testing::ElementsAre;

const double kInf = std::numeric_limits<double>::infinity();

struct UnaryCase {
  const char* name;
  std::function<double(double)> reference;
  std::vector<double> values;
};

const std::vector<UnaryCase>& float_cases() {
  static const std::vector<double> any{-2.5, -1, -0.5, 0, 0.5, 1.5, 2.5, 7}, unit{-0.9, -0.25, 0, 0.5, 0.99},
      positive{0.01, 0.5, 1, 3, 100}, above_one{1, 1.5, 3, 20};
  static const std::vector<UnaryCase> cases{
      {"abs", [](double x) { return std::fabs(x); }, any},
      {"negative", [](double x) { return -x; }, any},
      {"sign", [](double x) { return double((x > 0) - (x < 0)); }, any},
      {"floor", [](double x) { return std::floor(x); }, any},
      {"ceil", [](double x) { return std::ceil(x); }, any},
      {"trunc", [](double x) { return std::trunc(x); }, any},
      {"round", [](double x) { return std::round(x); }, any},
      {"round_even", [](double x) { return std::nearbyint(x); }, any},
      {"exp", [](double x) { return std::exp(x); }, any},
      {"fast_exp", [](double x) { return std::exp(x); }, any},
      {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }, any},
      {"tanh", [](double x) { return std::tanh(x); }, any},
      {"fast_tanh", [](double x) { return std::tanh(x); }, any},
      {"erf", [](double x) { return std::erf(x); }, any},
      {"fast_erf", [](double x) { return std::erf(x); }, any},
      {"sin", [](double x) { return std::sin(x); }, any},
      {"cos", [](double x) { return std::cos(x); }, any},
      {"tan", [](double x) { return std::tan(x); }, any},
      {"sinh", [](double x) { return std::sinh(x); }, any},
      {"cosh", [](double x) { return std::cosh(x); }, any},
      {"atan", [](double x) { return std::atan(x); }, any},
      {"asinh", [](double x) { return std::asinh(x); }, any},
      {"asin", [](double x) { return std::asin(x); }, unit},
      {"acos", [](double x) { return std::acos(x); }, unit},
      {"atanh", [](double x) { return std::atanh(x); }, unit},
      {"acosh", [](double x) { return std::acosh(x); }, above_one},
      {"log", [](double x) { return std::log(x); }, positive},
      {"log2", [](double x) { return std::log2(x); }, positive},
      {"log10", [](double x) { return std::log10(x); }, positive},
      {"sqrt", [](double x) { return std::sqrt(x); }, positive},
      {"rsqrt", [](double x) { return 1 / std::sqrt(x); }, positive},
  };
  return cases;
}

template <typename T>
void check_float_functions(double tolerance) {
  for (const UnaryCase& c : float_cases()) {
    std::vector<T> values;
    for (double v : c.values) values.push_back(static_cast<T>(static_cast<float>(v)));
    const Tensor result = test::run(test::call(c.name, {test::constant(values)}));
    ASSERT_EQ(result.dtype(), dtype_of<T>());
    const Tensor input = Tensor::from(values);
    for (int64_t i = 0; i < result.size(); ++i) {
      const double expected = c.reference(input.at(i));
      EXPECT_NEAR(result.at(i), expected, tolerance * std::max(1.0, std::fabs(expected)))
          << c.name << "(" << input.at(i) << ")";
    }
  }
}

TEST(Unary, FloatFunctionsAgreeWithTheStandardLibrary) {
  check_float_functions<float>(1e-6);
  check_float_functions<double>(1e-6);
  check_float_functions<Float16>(2e-3);
  check_float_functions<BFloat16>(2e-2);
}

TEST(Unary, IntegersRoundToThemselves) {
  const auto x = test::constant<int32_t>({-3, 0, 7});
  for (const char* name : {"floor", "ceil", "round", "trunc", "round_even"})
    EXPECT_THAT(test::numbers(test::run(test::call(name, {x}))), ElementsAre(-3, 0, 7));
  EXPECT_THAT(test::numbers(test::run(test::call("sign", {x}))), ElementsAre(-1, 0, 1));
  EXPECT_THAT(test::numbers(test::run(test::call("bitwise_not", {x}))), ElementsAre(2, -1, -8));
  EXPECT_THAT(test::numbers(test::run(test::call("isfinite", {x}))), ElementsAre(1, 1, 1));
}

TEST(Unary, PredicatesOfFloats) {
  const auto x = test::constant<float>({1, static_cast<float>(kInf), -static_cast<float>(kInf), std::nanf("")});
  EXPECT_THAT(test::numbers(test::run(test::call("isnan", {x}))), ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(test::numbers(test::run(test::call("isinf", {x}))), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(test::numbers(test::run(test::call("isfinite", {x}))), ElementsAre(1, 0, 0, 0));
}

TEST(Unary, ClipKeepsNan) {
  register_operators();
  const Tensor result = test::run(clip(test::constant<float>({-5, 0.25f, 9, std::nanf("")}), -1, 1));
  EXPECT_EQ(result.at(0), -1);
  EXPECT_EQ(result.at(1), 0.25);
  EXPECT_EQ(result.at(2), 1);
  EXPECT_TRUE(std::isnan(result.at(3)));
}

TEST(Unary, ClipOfIntegersCutsTheBoundsToTheDtype) {
  register_operators();
  EXPECT_THAT(test::numbers(test::run(clip(test::constant<uint8_t>({0, 6, 255}), -1, 6))), ElementsAre(0, 6, 6));
  EXPECT_THAT(test::numbers(test::run(clip(test::constant<int64_t>({-9, 0, 9}), -kInf, 3.7))), ElementsAre(-9, 0, 3));
}

TEST(Unary, CastTruncatesAndTellsZeroFromOthers) {
  register_operators();
  const auto x = test::constant<float>({-1.7f, 0, 0.3f, 2.9f});
  EXPECT_THAT(test::numbers(test::run(cast(x, dtype::int32_))), ElementsAre(-1, 0, 0, 2));
  EXPECT_THAT(test::numbers(test::run(cast(x, dtype::bool_))), ElementsAre(1, 0, 1, 1));
  EXPECT_TRUE(cast(x, dtype::float32_).same_as(x));
  EXPECT_EQ(test::run(test::call("cast_like", {x, test::constant<int8_t>({1})})).dtype(), dtype::int8_);
}

TEST(Unary, ReinterpretKeepsTheBits) {
  register_operators();
  EXPECT_EQ(test::run(reinterpret(test::constant<float>({1.0f}), dtype::int32_)).int_at(0), 0x3f800000);
  EXPECT_THROW(reinterpret(test::constant<float>({1.0f}), dtype::int64_), Error);
}

TEST(Unary, FixedPointMultiplyRoundsHalvesUpwards) {
  const ir::AttrMap half{{"multiplier", int64_t{1} << 30}, {"shift", int64_t{0}}};
  const auto x = test::constant<int32_t>({-3, -1, 1, 3, 2147483647});
  EXPECT_THAT(test::numbers(test::run(test::call("fixed_point_multiply", {x}, half))),
              ElementsAre(-1, 0, 1, 2, 1073741824));
  const ir::AttrMap quadruple{{"multiplier", int64_t{1} << 30}, {"shift", int64_t{3}}};
  EXPECT_THAT(
      test::numbers(test::run(test::call("fixed_point_multiply", {test::constant<int32_t>({-3, 5})}, quadruple))),
      ElementsAre(-12, 20));
}

TEST(Unary, FixedPointMultiplyPerAxis) {
  const ir::AttrMap attrs{{"axes", ir::Ints{1}}, {"is_lshift_required", true}, {"is_rshift_required", true}};
  const auto result =
      test::run(test::call("fixed_point_multiply_per_axis",
                           {test::constant<int32_t>({8, 8, -8, 9}, {2, 2}), test::constant<int32_t>({1 << 30, 1 << 30}),
                            test::constant<int32_t>({1, 0}), test::constant<int32_t>({0, 2})},
                           attrs));
  EXPECT_THAT(test::numbers(result), ElementsAre(8, 1, -8, 1));
}

TEST(Unary, ShapesScalarEmptyAndSymbolic) {
  EXPECT_TRUE(test::run(test::call("exp", {ir::constant(Tensor::scalar(dtype::float32_, 0))})).shape().empty());
  EXPECT_EQ(test::run(test::call("exp", {test::constant<float>({}, {0, 3})})).size(), 0);
  const Type type = tensor_type({Dim::symbol("N"), 2}, dtype::float32_);
  const Tensor result = test::run({{type, Tensor::from<float>({1, 4, 9, 16, 25, 36}, {3, 2})}},
                                  [](const auto& x) { return test::call("sqrt", {x[0]}); });
  EXPECT_THAT(test::numbers(result), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(Unary, RefusesWrongDtypes) {
  EXPECT_THROW(test::call("exp", {test::constant<int32_t>({1})}), Error);
  EXPECT_THROW(test::call("logical_not", {test::constant<int32_t>({1})}), Error);
  EXPECT_THROW(test::call("bitwise_not", {test::constant<float>({1})}), Error);
  EXPECT_THROW(test::call("fixed_point_multiply", {test::constant<int64_t>({1})},
                          {{"multiplier", int64_t{1}}, {"shift", int64_t{0}}}),
               Error);
}

TEST(Unary, ComposedActivations) {
  register_operators();
  for (double v : {-4.0, -1.0, 0.0, 0.5, 3.0, 60.0, -60.0}) {
    const auto x = test::constant<double>({v});
    EXPECT_NEAR(test::run(gelu(x)).at(0), v / 2 * (1 + std::erf(v / std::sqrt(2))), 1e-12);
    EXPECT_NEAR(test::run(gelu(x, true)).at(0),
                v / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v))), 1e-12);
    EXPECT_NEAR(test::run(silu(x)).at(0), v / (1 + std::exp(-v)), 1e-12);
    EXPECT_NEAR(test::run(hard_swish(x)).at(0), v * std::clamp(v / 6 + 0.5, 0.0, 1.0), 1e-12);
    EXPECT_NEAR(test::run(softplus(x)).at(0), v > 40 ? v : std::log1p(std::exp(v)), 1e-12);
  }
}

}  // namespace
}  // namespace treadle::op
