// SPDX-License-Identifier: Apache-2.0
// Losses, correlation and deformable convolution against small results.
#include "op/nn/loss.h"

#include "op/nn/nn_test.h"

namespace treadle::op::test {
namespace {

using ir::Ints;

TEST(NllLoss, Reductions) {
  const Tensor p = Tensor::from<float>({-1, -2, -3, -4, -5, -6}, {2, 3}), t = Tensor::from<int64_t>({2, 0}),
               w = Tensor::from<float>({1, 10, 0.5f});
  const auto loss = [&](std::string reduction, int64_t ignore) {
    return run_op("nn.nll_loss", {p, t, w}, {{"reduction", reduction}, {"ignore_index", ignore}});
  };
  expect_close(loss("none", -100), Tensor::from<float>({1.5f, 4}));
  expect_close(loss("sum", -100), Tensor::scalar(dtype::float32_, 5.5));
  expect_close(loss("mean", -100), Tensor::scalar(dtype::float32_, 5.5 / 1.5));
  expect_close(loss("none", 2), Tensor::from<float>({0, 4}));
  expect_close(loss("mean", 2), Tensor::scalar(dtype::float32_, 4));
  // One sample without batch; and a target that is no class reads the nearest one.
  const Tensor one = run_op("nn.nll_loss", {Tensor::from<float>({-1, -2, -3}), Tensor::scalar(dtype::int32_, 7), w},
                            {{"reduction", std::string("sum")}});
  expect_close(one, Tensor::scalar(dtype::float32_, 1.5));
}

TEST(NllLoss, RefusesWithNumbers) {
  const Type p = tensor_type({2, 3, 4}, dtype::float32_), w = tensor_type({3}, dtype::float32_);
  EXPECT_THAT(error_of([&] { type_of("nn.nll_loss", {p, tensor_type({2, 5}, dtype::int32_), w}); }),
              ::testing::HasSubstr("targets have shape (2, 5) but the predictions (2, 3, 4) need (2, 4)"));
  EXPECT_THAT(error_of([&] { type_of("nn.nll_loss", {p, tensor_type({2, 4}, dtype::float32_), w}); }),
              ::testing::HasSubstr("targets are float32"));
}

TEST(CrossEntropy, OfProbabilitiesAndLogarithms) {
  const Tensor p = Tensor::from<float>({0.25f, 0.75f, 0.5f, 0.5f}, {2, 2}),
               t = Tensor::from<float>({0, 1, 1, 0}, {2, 2});
  const double expected = -(std::log(0.75) + std::log(0.5)) / 2;
  expect_close(run_op("nn.cross_entropy", {p, t}), Tensor::scalar(dtype::float32_, expected));
  const Tensor logarithms = filled({2, 2}, [&](const std::vector<int64_t>& i) { return std::log(p.at(at(p, i))); });
  expect_close(run_op("nn.cross_entropy_with_logits", {logarithms, t}), Tensor::scalar(dtype::float32_, expected));
}

// Without displacement and offsets: the mean of products, and the plain convolution.
TEST(Correlation, WithoutDisplacement) {
  const Tensor a = pattern(dtype::float32_, {1, 4, 3, 3}), b = pattern(dtype::float32_, {1, 4, 3, 3}, 2);
  expect_close(run_op("nn.correlation", {a, b}, {{"max_displacement", int64_t{0}}}),
               filled({1, 1, 3, 3}, [&](const std::vector<int64_t>& i) {
                 double sum = 0;
                 for (int64_t c = 0; c < 4; ++c)
                   sum += a.at(at(a, {0, c, i[2], i[3]})) * b.at(at(b, {0, c, i[2], i[3]}));
                 return sum / 4;
               }));
  EXPECT_THAT(error_of([] {
                type_of("nn.correlation",
                        {tensor_type({1, 1, 4, 4}, dtype::float32_), tensor_type({1, 1, 4, 4}, dtype::float32_)},
                        {{"max_displacement", int64_t{3}}});
              }),
              ::testing::HasSubstr("4 elements with padding, fewer than the border of 3"));
}

TEST(DeformableConv2D, WithoutOffsetsIsConv2D) {
  for (int64_t groups : {1, 2}) {
    const Tensor x = pattern(dtype::float32_, {1, 4, 5, 6}), w = pattern(dtype::float32_, {6, 4 / groups, 3, 3}, 2);
    const ir::AttrMap attrs{{"groups", groups}, {"strides", Ints{2, 1}}};
    ir::AttrMap deformable = attrs;
    deformable["deformable_groups"] = int64_t{2};
    const Tensor expected = run_op("nn.conv2d", {x, w}, attrs);
    const Tensor zero = Tensor::zeros(dtype::float32_, {1, 36, 2, 4});
    expect_close(run_op("nn.deformable_conv2d", {x, zero, w}, deformable), expected);
    deformable["data_layout"] = std::string("NHWC");
    deformable["kernel_layout"] = std::string("HWIO");
    const Tensor y =
        run_op("nn.deformable_conv2d",
               {relayout(x, "NCHW", "NHWC"), relayout(zero, "NCHW", "NHWC"), relayout(w, "OIHW", "HWIO")}, deformable);
    expect_close(relayout(y, "NHWC", "NCHW"), expected);
  }
}

}  // namespace
}  // namespace treadle::op::test
