// SPDX-License-Identifier: Apache-2.0
// Normalisations and softmax against formulas written here, over axes and dtypes.
#include "op/nn/norm.h"

#include <limits>

#include "op/nn/nn_test.h"
#include "op/nn/softmax.h"

namespace treadle::op::test {
namespace {

using Index = std::vector<int64_t>;

// Normalises with mean and variance over all elements j for which same(i, j).
Tensor normalised(const Tensor& x, const Tensor& gamma, const Tensor& beta, size_t axis, double epsilon,
                  const std::function<bool(const Index&, const Index&)>& same) {
  return filled(
      x.shape(),
      [&](const Index& i) {
        double sum = 0, squares = 0, count = 0;
        filled(x.shape(), [&](const Index& j) {
          if (!same(i, j)) return 0.0;
          const double v = x.at(at(x, j));
          sum += v, squares += v * v, ++count;
          return 0.0;
        });
        const double mean = sum / count, variance = squares / count - mean * mean;
        return (x.at(at(x, i)) - mean) / std::sqrt(variance + epsilon) * gamma.at(i[axis]) + beta.at(i[axis]);
      },
      x.dtype());
}

TEST(LayerNorm, AnyAxis) {
  for (DType type : {dtype::float32_, dtype::float64_, dtype::float16_}) {
    for (int64_t axis : {-1, 0, 1}) {
      const Tensor x = pattern(type, {3, 4, 5});
      const auto a = static_cast<size_t>(axis < 0 ? axis + 3 : axis);
      const Tensor gamma = pattern(type, {x.shape()[a]}, 2), beta = pattern(type, {x.shape()[a]}, 3);
      const auto same = [&](const Index& i, Index j) { return j[a] = i[a], i == j; };
      const double tolerance = type.is_half() ? 1e-2 : 1e-4;
      expect_close(run_op("nn.layer_norm", {x, gamma, beta}, {{"axis", axis}}),
                   normalised(x, gamma, beta, a, 1e-5, same), tolerance, tolerance);
    }
  }
}

TEST(LayerNorm, SymbolicRows) {
  const Tensor x = pattern(dtype::float32_, {2, 3, 8}), gamma = pattern(dtype::float32_, {8}, 2),
               beta = pattern(dtype::float32_, {8}, 3);
  const Tensor y = run(
      {{tensor_type({Dim::symbol("N"), Dim::symbol("L"), 8}, dtype::float32_), x}},
      [&](const std::vector<ir::Expr>& v) { return layer_norm(v[0], ir::constant(gamma), ir::constant(beta), 1e-5); });
  expect_close(y, run_op("nn.layer_norm", {x, gamma, beta}));
}

TEST(InstanceNorm, PerSampleAndChannel) {
  const Tensor x = pattern(dtype::float32_, {2, 3, 4, 5}), gamma = pattern(dtype::float32_, {3}, 2),
               beta = pattern(dtype::float32_, {3}, 3);
  const auto same = [](const Index& i, const Index& j) { return i[0] == j[0] && i[1] == j[1]; };
  expect_close(run_op("nn.instance_norm", {x, gamma, beta}, {{"epsilon", 0.01}}),
               normalised(x, gamma, beta, 1, 0.01, same), 1e-4, 1e-4);
}

TEST(GroupNorm, ChannelsFirstAndLast) {
  const Tensor gamma = pattern(dtype::float32_, {6}, 2), beta = pattern(dtype::float32_, {6}, 3);
  for (size_t axis : {1, 2}) {
    const Tensor x = pattern(dtype::float32_, axis == 1 ? Index{2, 6, 5} : Index{2, 5, 6});
    const auto same = [&](const Index& i, const Index& j) { return i[0] == j[0] && i[axis] / 3 == j[axis] / 3; };
    expect_close(
        run_op("nn.group_norm", {x, gamma, beta}, {{"num_groups", int64_t{2}}, {"axis", static_cast<int64_t>(axis)}}),
        normalised(x, gamma, beta, axis, 1e-5, same), 1e-4, 1e-4);
  }
}

TEST(BatchNorm, GivesThreeOutputs) {
  for (int64_t axis : {1, -1}) {
    const Tensor x = pattern(dtype::float32_, {2, 3, 4});
    const int64_t channels = axis == 1 ? 3 : 4;
    const Tensor gamma = pattern(dtype::float32_, {channels}, 2), beta = pattern(dtype::float32_, {channels}, 3),
                 mean = pattern(dtype::float32_, {channels}, 4);
    const Tensor variance = filled({channels}, [](const Index& i) { return 0.5 + static_cast<double>(i[0]); });
    for (bool scale : {false, true}) {
      for (bool center : {false, true}) {
        const Values y = run_op_all("nn.batch_norm", {x, gamma, beta, mean, variance},
                                    {{"axis", axis}, {"scale", scale}, {"center", center}});
        ASSERT_EQ(y.size(), 3u);
        expect_close(y[0],
                     filled(x.shape(),
                            [&](const Index& i) {
                              const int64_t c = axis == 1 ? i[1] : i[2];
                              const double unit = (x.at(at(x, i)) - mean.at(c)) / std::sqrt(variance.at(c) + 1e-5);
                              return unit * (scale ? gamma.at(c) : 1) + (center ? beta.at(c) : 0);
                            }),
                     1e-4, 1e-5);
        expect_close(y[1], mean, 0, 0);
        expect_close(y[2], variance, 0, 0);
      }
    }
  }
}

TEST(L2Normalize, OverAxes) {
  const Tensor x = pattern(dtype::float32_, {2, 3, 4});
  const Tensor y = run_op("nn.l2_normalize", {x}, {{"eps", 1e-3}, {"axis", ir::Ints{0, -1}}});
  expect_close(y, filled(x.shape(), [&](const Index& i) {
                 double sum = 0;
                 for (int64_t a = 0; a < 2; ++a)
                   for (int64_t b = 0; b < 4; ++b) sum += std::pow(x.at(at(x, {a, i[1], b})), 2);
                 return x.at(at(x, i)) / std::sqrt(std::max(sum, 1e-3));
               }));
  const Tensor zero = Tensor::zeros(dtype::float32_, {2, 2});
  expect_close(run_op("nn.l2_normalize", {zero}, {{"eps", 1e-3}}), zero, 0, 0);
}

TEST(Lrn, OddAndEvenWindows) {
  const Tensor x = pattern(dtype::float32_, {1, 6, 2, 2});
  for (int64_t size : {int64_t{1}, int64_t{3}, int64_t{4}, int64_t{5}, int64_t{8}, int64_t{13},
                       int64_t{1} << 31}) {  // and wider than the channels
    const Tensor y = run_op("nn.lrn", {x}, {{"size", size}, {"alpha", 0.5}});
    expect_close(y,
                 filled(x.shape(),
                        [&](const Index& i) {
                          double sum = 0;
                          for (int64_t c = std::max<int64_t>(0, i[1] - (size - 1) / 2);
                               c <= std::min<int64_t>(5, i[1] + size / 2); ++c)
                            sum += std::pow(x.at(at(x, {0, c, i[2], i[3]})), 2);
                          return x.at(at(x, i)) / std::pow(2 + 0.5 / static_cast<double>(size) * sum, 0.75);
                        }),
                 1e-4, 1e-5);
  }
}

TEST(Dropout, KeepsTheData) {
  const Tensor x = pattern(dtype::float32_, {2, 3});
  const Values y = run_op_all("nn.dropout", {x});
  ASSERT_EQ(y.size(), 2u);
  expect_close(y[0], x, 0, 0);
}

TEST(Softmax, EveryAxisAndDtype) {
  for (DType type : {dtype::float32_, dtype::float64_, dtype::float16_}) {
    const Tensor x = pattern(type, {2, 3, 4});
    for (int64_t axis : {-1, 0, 1}) {
      const auto a = static_cast<size_t>(axis < 0 ? axis + 3 : axis);
      const auto sum = [&](const Index& i) {
        double total = 0;
        Index j = i;
        for (j[a] = 0; j[a] < x.shape()[a]; ++j[a]) total += std::exp(x.at(at(x, j)));
        return total;
      };
      const Tensor soft = filled(x.shape(), [&](const Index& i) { return std::exp(x.at(at(x, i))) / sum(i); }, type);
      const Tensor logarithm =
          filled(x.shape(), [&](const Index& i) { return x.at(at(x, i)) - std::log(sum(i)); }, type);
      const double tolerance = type.is_half() ? 5e-3 : 1e-5;
      expect_close(run_op("nn.softmax", {x}, {{"axis", axis}}), soft, tolerance, tolerance);
      expect_close(run_op("nn.fast_softmax", {x}, {{"axis", axis}}), soft, tolerance, tolerance);
      expect_close(run_op("nn.log_softmax", {x}, {{"axis", axis}}), logarithm, tolerance, tolerance);
    }
  }
}

TEST(Softmax, LargeValuesAndMaskedRows) {
  const float inf = std::numeric_limits<float>::infinity();
  expect_close(run_op("nn.softmax", {Tensor::from<float>({1000, 1000, -inf, 90000, -90000, 0}, {2, 3})}),
               Tensor::from<float>({0.5f, 0.5f, 0, 1, 0, 0}, {2, 3}));
  expect_close(run_op("nn.log_softmax", {Tensor::from<float>({1000, 1000}, {1, 2})}),
               Tensor::from<float>({-0.6931472f, -0.6931472f}, {1, 2}));
  EXPECT_EQ(run_op("nn.softmax", {Tensor(dtype::float32_, {0, 3})}).size(), 0);
}

TEST(Norm, RefusesWithNumbers) {
  const Type x = tensor_type({2, 3, 4}, dtype::float32_), v = tensor_type({5}, dtype::float32_);
  EXPECT_THAT(error_of([&] { type_of("nn.layer_norm", {x, v, v}); }),
              ::testing::HasSubstr("gamma has 5 elements but axis 2 of the data has 4"));
  EXPECT_THAT(error_of([&] { type_of("nn.batch_norm", {x, v, v, v, v}, {{"axis", int64_t{3}}}); }),
              ::testing::HasSubstr("axis 3"));
  const Type c = tensor_type({3}, dtype::float32_);
  EXPECT_THAT(error_of([&] { type_of("nn.group_norm", {x, c, c}, {{"num_groups", int64_t{2}}}); }),
              ::testing::HasSubstr("num_groups=2 does not divide the 3 channels"));
  EXPECT_THAT(error_of([&] { type_of("nn.softmax", {tensor_type({3}, dtype::int32_)}); }),
              ::testing::HasSubstr("int32"));
  EXPECT_THAT(error_of([&] { type_of("nn.softmax", {tensor_type({}, dtype::float32_)}); }),
              ::testing::HasSubstr("axis -1"));
}

}  // namespace
}  // namespace treadle::op::test
