// SPDX-License-Identifier: Apache-2.0
#include "op/image/resize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "op/image/grid.h"
#include "op/op_test.h"

namespace treadle::op {
namespace {

using test::numbers;
using test::run;
using testing::ElementsAre;

ir::Expr image(std::vector<int64_t> shape) {
  std::vector<double> values(element_count(shape));
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(1.7 * static_cast<double>(i)) * 5;
  return test::constant(values, std::move(shape));
}

// One row resampled in double precision, straight from the formulas in resize.h.
std::vector<double> resampled(const std::vector<double>& x, int out, const ResizeAttrs& attrs) {
  const double in = static_cast<double>(x.size());
  const std::string& mode = attrs.coordinate_transformation_mode;
  const auto at = [&](double i) { return x[static_cast<size_t>(std::clamp(i, 0.0, in - 1))]; };
  std::vector<double> result;
  for (int o = 0; o < out; ++o) {
    double p = (o + 0.5) * in / out - 0.5;
    if (mode == "asymmetric") p = o * in / out;
    if (mode == "align_corners") p = out == 1 ? 0 : o * (in - 1) / (out - 1);
    if (mode == "tf_half_pixel_for_nn") p = (o + 0.5) * in / out;
    if (mode == "pytorch_half_pixel" && out == 1) p = 0;
    const double tiny = 1e-9, low = std::floor(p + tiny), t = std::max(p - low, 0.0);
    if (attrs.method == "nearest_neighbor") {
      const std::string& r = attrs.rounding_method;
      result.push_back(at(r == "floor"                ? low
                          : r == "ceil"               ? std::ceil(p - tiny)
                          : r == "round_prefer_floor" ? std::ceil(p - 0.5 - tiny)
                                                      : std::floor(p + 0.5 + tiny)));
    } else if (attrs.method == "linear") {
      result.push_back(at(low) * (1 - t) + at(low + 1) * t);
    } else {
      const double a = attrs.cubic_alpha;
      const auto weight = [&](double d) {
        d = std::fabs(d);
        return d <= 1 ? (a + 2) * d * d * d - (a + 3) * d * d + 1 : a * (d * d * d - 5 * d * d + 8 * d - 4);
      };
      double sum = 0, weights = 0;
      for (int k = -1; k <= 2; ++k) {
        const double i = low + k;
        if (attrs.cubic_exclude && (i < 0 || i >= in)) continue;
        sum += weight(t - k) * at(i);
        weights += weight(t - k);
      }
      result.push_back(attrs.cubic_exclude ? sum / weights : sum);
    }
  }
  return result;
}

TEST(Resize, EveryModeAgreesWithItsFormula) {
  register_operators();
  for (const char* mode : {"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_half_pixel_for_nn"}) {
    for (const char* method : {"nearest_neighbor", "linear", "cubic"}) {
      for (const char* rounding : {"round", "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}) {
        for (int exclude : {0, 1}) {
          for (int out : {1, 3, 7, 12}) {
            const ir::Expr x = image({1, 1, 6});
            auto attrs = ResizeAttrs::defaults();
            attrs->size = {out};
            attrs->method = method;
            attrs->coordinate_transformation_mode = mode;
            attrs->rounding_method = rounding;
            attrs->cubic_exclude = exclude;
            const std::vector<double> expected = resampled(numbers(x.as<ir::Constant>()->value), out, *attrs);
            EXPECT_THAT(numbers(run(resize(x, attrs))), testing::Pointwise(testing::DoubleNear(1e-9), expected))
                << mode << " " << method << " " << rounding << " " << exclude << " " << out;
          }
        }
      }
    }
  }
}

TEST(Resize, TwoAxesAndLayouts) {
  register_operators();
  auto attrs = ResizeAttrs::defaults();
  attrs->size = {2, 4};
  attrs->coordinate_transformation_mode = "align_corners";
  const auto x = test::constant<float>({0, 3, 6, 9}, {1, 1, 2, 2});
  EXPECT_THAT(numbers(run(resize(x, attrs))),
              testing::Pointwise(testing::FloatNear(1e-5f), std::vector<double>{0, 1, 2, 3, 6, 7, 8, 9}));
  attrs->layout = "NHWC";
  EXPECT_THAT(numbers(run(resize(test::constant<float>({0, 3, 6, 9}, {1, 2, 2, 1}), attrs))),
              testing::Pointwise(testing::FloatNear(1e-5f), std::vector<double>{0, 1, 2, 3, 6, 7, 8, 9}));
  attrs->layout = "NCHW4h";
  EXPECT_THROW(resize(image({1, 1, 1, 2, 4}), attrs), Error);
}

TEST(Resize, ScalesOfTheirOwn) {
  register_operators();
  auto attrs = ResizeAttrs::defaults();
  attrs->size = {3};  // floor(5 * 0.7)
  attrs->scales = ir::Floats{0.7};
  attrs->coordinate_transformation_mode = "asymmetric";
  const ir::Expr x = test::constant<double>({0, 1, 2, 3, 4}, {1, 1, 5});
  EXPECT_THAT(numbers(run(resize(x, attrs))),
              testing::Pointwise(testing::DoubleNear(1e-6), std::vector<double>{0, 1 / 0.7, 2 / 0.7}));
}

TEST(Resize, CropAndExtrapolation) {
  register_operators();
  auto attrs = ResizeAttrs::defaults();
  attrs->size = {3};
  attrs->roi = ir::Floats{0.5, 1.5};
  attrs->coordinate_transformation_mode = "tf_crop_and_resize";
  attrs->extrapolation_value = -7;
  EXPECT_THAT(numbers(run(resize(test::constant<double>({0, 1, 2, 3, 4}, {1, 1, 5}), attrs))), ElementsAre(2, 4, -7));
}

TEST(Resize, SymbolicExtents) {
  const Dim h = Dim::symbol("H"), w = Dim::symbol("W");
  auto attrs = ResizeAttrs::defaults();
  attrs->size = {h * Dim(2), w};
  attrs->method = "nearest_neighbor";
  attrs->coordinate_transformation_mode = "asymmetric";
  attrs->rounding_method = "floor";
  EXPECT_THAT(
      numbers(run({{tensor_type({1, 1, h, w}, dtype::float32_), Tensor::from<float>({1, 2, 3, 4}, {1, 1, 2, 2})}},
                  [&](const auto& x) { return resize(x[0], attrs); })),
      ElementsAre(1, 2, 1, 2, 3, 4, 3, 4));
}

TEST(Grid, AffineIdentitySamplesTheImageItself) {
  const auto theta = test::constant<double>({1, 0, 0, 0, 1, 0}, {1, 2, 3});
  const auto grid = test::call("image.affine_grid", {theta}, {{"target_shape", to_shape({3, 4})}});
  const ir::Expr x = image({1, 2, 3, 4});
  for (const char* method : {"bilinear", "nearest", "bicubic"}) {
    EXPECT_THAT(numbers(run(grid_sample(x, grid, method, "zeros", true))),
                testing::Pointwise(testing::DoubleNear(1e-9), numbers(x.as<ir::Constant>()->value)));
  }
}

TEST(Grid, OutsideOfTheImage) {
  register_operators();
  // x = -2 is one and a half pixels left of the first of four; -1.5, -0.5 of corners that are edges.
  const auto x = test::constant<double>({1, 2, 3, 4}, {1, 1, 1, 4});
  const auto grid = test::constant<double>({-2, 3, 0, 0}, {1, 2, 1, 2});
  const auto sample = [&](const char* padding, bool align) {
    return numbers(run(grid_sample(x, grid, "bilinear", padding, align)));
  };
  EXPECT_THAT(sample("zeros", true), ElementsAre(0, 0));
  EXPECT_THAT(sample("border", true), ElementsAre(1, 4));
  EXPECT_THAT(sample("reflection", true), ElementsAre(2.5, 1));
  EXPECT_THAT(sample("reflection", false), ElementsAre(2.5, 1));
}

}  // namespace
}  // namespace treadle::op
