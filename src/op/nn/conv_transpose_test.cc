// SPDX-License-Identifier: Apache-2.0
// Transposed convolutions against the scattering loops that define them.
#include "op/nn/conv_transpose.h"

#include "op/nn/nn_test.h"

namespace treadle::op::test {
namespace {

using ir::Ints;

struct Geometry {
  int64_t stride = 1, dilation = 1, begin = 0, end = 0, extra = 0, groups = 1;
};

// x (N, C, H, W), w (C, O/G, kh, kw): every input element adds its multiple of the kernel to the output.
Tensor reference(const Tensor& x, const Tensor& w, const Geometry& g) {
  const auto &xs = x.shape(), &ws = w.shape();
  const auto extent = [&](int64_t in, int64_t k) {
    return (in - 1) * g.stride + (k - 1) * g.dilation + 1 - g.begin - g.end + g.extra;
  };
  Tensor y = Tensor::zeros(dtype::float32_, {xs[0], ws[1] * g.groups, extent(xs[2], ws[2]), extent(xs[3], ws[3])});
  const int64_t per_group = xs[1] / g.groups;
  for (int64_t n = 0; n < xs[0]; ++n)
    for (int64_t c = 0; c < xs[1]; ++c)
      for (int64_t h = 0; h < xs[2]; ++h)
        for (int64_t v = 0; v < xs[3]; ++v)
          for (int64_t o = 0; o < ws[1]; ++o)
            for (int64_t i = 0; i < ws[2]; ++i)
              for (int64_t j = 0; j < ws[3]; ++j) {
                const int64_t p = h * g.stride + i * g.dilation - g.begin, q = v * g.stride + j * g.dilation - g.begin;
                if (p < 0 || q < 0 || p >= y.shape()[2] || q >= y.shape()[3]) continue;
                y.values<float>()[static_cast<size_t>(at(y, {n, c / per_group * ws[1] + o, p, q}))] +=
                    static_cast<float>(x.at(at(x, {n, c, h, v})) * w.at(at(w, {c, o, i, j})));
              }
  return y;
}

ir::AttrMap attributes(const Geometry& g) {
  return {{"strides", Ints{g.stride, g.stride}},
          {"dilation", Ints{g.dilation, g.dilation}},
          {"padding", Ints{g.begin, g.begin, g.end, g.end}},
          {"output_padding", Ints{g.extra, g.extra}},
          {"groups", g.groups}};
}

const std::vector<Geometry> kGeometries = {
    {}, {2, 1, 1, 1, 1, 1}, {3, 2, 0, 2, 2, 2}, {2, 1, 3, 1, 0, 1}, {2, 1, 1, 0, 0, 4}};

TEST(ConvTranspose, ScattersTheKernel) {
  for (const Geometry& g : kGeometries) {
    const Tensor x = pattern(dtype::float32_, {2, 4, 4, 5}), w = pattern(dtype::float32_, {4, 3, 3, 2}, 2);
    expect_close(run_op("nn.conv2d_transpose", {x, w}, attributes(g)), reference(x, w, g), 1e-5, 1e-5);
  }
}

TEST(ConvTranspose, Layouts) {
  const Geometry g{2, 1, 1, 1, 1, 1};
  const Tensor x = pattern(dtype::float32_, {1, 4, 4, 5}), w = pattern(dtype::float32_, {4, 8, 3, 3}, 2),
               expected = reference(x, w, g);
  for (const auto& [data, kernel] : {std::pair{"NHWC", "HWIO"}, {"NCHW4c", "IOHW"}, {"NCHW4c", "IOHW2i4o"}}) {
    ir::AttrMap attrs = attributes(g);
    attrs["data_layout"] = std::string(data);
    attrs["kernel_layout"] = std::string(kernel);
    const Tensor y = run_op("nn.conv2d_transpose", {relayout(x, "NCHW", data), relayout(w, "IOHW", kernel)}, attrs);
    expect_close(relayout(y, data, "NCHW"), expected, 1e-5, 1e-5);
  }
}

TEST(ConvTranspose, OneAndThreeDimensions) {
  const Geometry g{2, 1, 0, 0, 0, 2};
  const Tensor x = pattern(dtype::float32_, {2, 4, 1, 5}), w = pattern(dtype::float32_, {4, 3, 1, 3}, 2),
               expected = reference(x, w, g);
  const Tensor y = run_op("nn.conv1d_transpose", {x.reshaped({2, 4, 5}), w.reshaped({4, 3, 3})},
                          {{"strides", Ints{2}}, {"groups", int64_t{2}}});
  expect_close(y.reshaped(expected.shape()), expected, 1e-5, 1e-5);
  const Tensor z = run_op("nn.conv3d_transpose", {x.reshaped({2, 4, 1, 1, 5}), w.reshaped({4, 3, 1, 1, 3})},
                          {{"strides", Ints{2, 2, 2}}, {"groups", int64_t{2}}});
  expect_close(z.reshaped(expected.shape()), expected, 1e-5, 1e-5);
}

TEST(ConvTranspose, RefusesWithNumbers) {
  const Type x = tensor_type({1, 4, 4, 4}, dtype::float32_), w = tensor_type({3, 2, 3, 3}, dtype::float32_);
  EXPECT_THAT(error_of([&] { type_of("nn.conv2d_transpose", {x, w}); }),
              ::testing::HasSubstr("input has 4 channels but axis I of the weight has extent 3"));
  EXPECT_THAT(error_of([&] {
                type_of("nn.conv2d_transpose", {x, tensor_type({4, 2, 3, 3}, dtype::float32_)},
                        {{"output_padding", Ints{1, 1}}});
              }),
              ::testing::HasSubstr("output_padding 1"));
  EXPECT_THAT(error_of([&] {
                type_of("nn.conv2d_transpose", {x, tensor_type({4, 2, 3, 3}, dtype::float32_)},
                        {{"padding", Ints{9, 9}}});
              }),
              ::testing::HasSubstr("output extent is -12"));
}

}  // namespace
}  // namespace treadle::op::test
