// SPDX-License-Identifier: Apache-2.0
// Pools against loops written here, in several layouts and dtypes; their gradients against the pools' definition.
#include "op/nn/pool.h"

#include <limits>

#include "op/nn/nn_test.h"

namespace treadle::op::test {
namespace {

using ir::Ints;

struct Window {
  int64_t kernel = 2, stride = 1, dilation = 1, begin = 0, end = 0;
  bool ceil = false;
};

int64_t extent(int64_t in, const Window& w) {
  const int64_t room = in + w.begin + w.end - (w.kernel - 1) * w.dilation - 1;
  return (w.ceil ? (room + w.stride - 1) / w.stride : room / w.stride) + 1;
}

// Calls f for every tap of output position (p, q): position, whether it is in the data, whether in the declared padding
// too.
template <typename F>
void for_taps(const Window& w, int64_t height, int64_t width, int64_t p, int64_t q, F f) {
  for (int64_t i = 0; i < w.kernel; ++i) {
    for (int64_t j = 0; j < w.kernel; ++j) {
      const int64_t y = p * w.stride + i * w.dilation - w.begin, x = q * w.stride + j * w.dilation - w.begin;
      f(y, x, y >= 0 && x >= 0 && y < height && x < width, y < height + w.end && x < width + w.end);
    }
  }
}

Tensor reference(const Tensor& x, const Window& w, bool is_max, bool include_pad) {
  const auto& s = x.shape();
  return filled(
      {s[0], s[1], extent(s[2], w), extent(s[3], w)},
      [&](const std::vector<int64_t>& i) {
        double most = -std::numeric_limits<double>::infinity(), sum = 0;
        int64_t inside_count = 0, padded_count = 0;
        for_taps(w, s[2], s[3], i[2], i[3], [&](int64_t y, int64_t v, bool inside, bool padded) {
          padded_count += padded;
          if (!inside) return;
          ++inside_count;
          const double value = x.at(at(x, {i[0], i[1], y, v}));
          if (std::isnan(value) || value > most) most = value;
          sum += value;
        });
        return is_max ? most
                      : sum / static_cast<double>(std::max<int64_t>(1, include_pad ? padded_count : inside_count));
      },
      x.dtype());
}

ir::AttrMap attributes(const Window& w) {
  return {{"pool_size", Ints{w.kernel, w.kernel}},
          {"strides", Ints{w.stride, w.stride}},
          {"dilation", Ints{w.dilation, w.dilation}},
          {"padding", Ints{w.begin, w.begin, w.end, w.end}},
          {"ceil_mode", w.ceil}};
}

const std::vector<Window> kWindows = {{},
                                      {3, 2, 1, 1, 1, false},
                                      {3, 2, 1, 0, 1, true},
                                      {2, 3, 2, 1, 0, true},
                                      {3, 1, 2, 2, 2, false},
                                      {3, 2, 1, 1, 1, true}};

TEST(Pool, EqualsTheLoopsInAllLayouts) {
  const Tensor x = pattern(dtype::float32_, {1, 8, 7, 6});
  for (const Window& w : kWindows) {
    for (const std::string layout : {"NCHW", "NHWC", "NCHW4c", "NHWC8c"}) {
      SCOPED_TRACE(layout);
      ir::AttrMap attrs = attributes(w);
      attrs["layout"] = layout;
      const Tensor input = relayout(x, "NCHW", layout);
      expect_close(relayout(run_op("nn.max_pool2d", {input}, attrs), layout, "NCHW"), reference(x, w, true, false));
      for (bool include_pad : {false, true}) {
        attrs["count_include_pad"] = include_pad;
        expect_close(relayout(run_op("nn.avg_pool2d", {input}, attrs), layout, "NCHW"),
                     reference(x, w, false, include_pad));
      }
    }
  }
}

TEST(Pool, OneAndThreeDimensions) {
  const Tensor x = pattern(dtype::float32_, {2, 3, 9});
  const Tensor two = run_op("nn.avg_pool2d", {x.reshaped({2, 3, 1, 9})},
                            {{"pool_size", Ints{1, 3}}, {"strides", Ints{1, 2}}, {"padding", Ints{0, 1}}});
  expect_close(run_op("nn.avg_pool1d", {x}, {{"pool_size", Ints{3}}, {"strides", Ints{2}}, {"padding", Ints{1}}})
                   .reshaped(two.shape()),
               two);
  const Tensor three = run_op("nn.avg_pool3d", {x.reshaped({2, 3, 1, 1, 9})},
                              {{"pool_size", Ints{1, 1, 3}}, {"strides", Ints{1, 1, 2}}, {"padding", Ints{0, 0, 1}}});
  expect_close(three.reshaped(two.shape()), two);
}

// NaN wins; -inf is a value and not less than the padding; a window that is all padding gives the lowest finite number.
TEST(MaxPool, SpecialValues) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = Tensor::from<float>({-inf, -inf, 1, nan, 2, 3}, {1, 1, 6});
  const Tensor y =
      run_op("nn.max_pool1d", {x}, {{"pool_size", Ints{2}}, {"strides", Ints{1}}, {"padding", Ints{1, 0}}});
  expect_close(y, Tensor::from<float>({-inf, -inf, 1, nan, nan, 3}, {1, 1, 6}), 0, 0);
  const Tensor z =
      run_op("nn.max_pool1d", {Tensor::from<float>({5}, {1, 1, 1})}, {{"pool_size", Ints{1}}, {"padding", Ints{1}}});
  expect_close(
      z,
      Tensor::from<float>({std::numeric_limits<float>::lowest(), 5, std::numeric_limits<float>::lowest()}, {1, 1, 3}),
      0, 0);
  const Tensor i = run_op("nn.max_pool1d", {Tensor::from<int8_t>({-128, -5, 7}, {1, 1, 3})},
                          {{"pool_size", Ints{3}}, {"padding", Ints{1}}});
  expect_close(i, Tensor::from<int8_t>({-5, 7, 7}, {1, 1, 3}), 0, 0);
}

// Sums of 8-bit numbers do not wrap; the quotient is truncated toward zero.
TEST(AvgPool, Integers) {
  const Tensor x = Tensor::from<int8_t>({127, 127, 126, -1, -2, -2}, {1, 1, 6});
  expect_close(run_op("nn.avg_pool1d", {x}, {{"pool_size", Ints{3}}, {"strides", Ints{3}}}),
               Tensor::from<int8_t>({126, -1}, {1, 1, 2}), 0, 0);
}

TEST(AdaptivePool, WindowsDivideTheInput) {
  const Tensor x = pattern(dtype::float32_, {2, 3, 7, 5});
  for (const Ints& size : {Ints{3, 2}, Ints{7, 5}, Ints{9, 8}, Ints{1, 1}}) {
    const auto expected = [&](bool is_max) {
      return filled({2, 3, size[0], size[1]}, [&](const std::vector<int64_t>& i) {
        const auto low = [](int64_t p, int64_t in, int64_t out) { return p * in / out; };
        const auto high = [](int64_t p, int64_t in, int64_t out) { return ((p + 1) * in + out - 1) / out; };
        double most = -1e30, sum = 0, count = 0;
        for (int64_t y = low(i[2], 7, size[0]); y < high(i[2], 7, size[0]); ++y) {
          for (int64_t v = low(i[3], 5, size[1]); v < high(i[3], 5, size[1]); ++v) {
            most = std::max(most, x.at(at(x, {i[0], i[1], y, v})));
            sum += x.at(at(x, {i[0], i[1], y, v}));
            ++count;
          }
        }
        return is_max ? most : sum / count;
      });
    };
    expect_close(run_op("nn.adaptive_avg_pool2d", {x}, {{"output_size", size}}), expected(false));
    expect_close(run_op("nn.adaptive_max_pool2d", {x}, {{"output_size", size}}), expected(true));
  }
  expect_close(run_op("nn.adaptive_avg_pool2d", {x}), x);
  expect_close(run_op("nn.global_avg_pool2d", {x}), run_op("nn.adaptive_avg_pool2d", {x}, {{"output_size", Ints{1}}}));
  expect_close(run_op("nn.global_max_pool2d", {x}), run_op("nn.adaptive_max_pool2d", {x}, {{"output_size", Ints{1}}}));
}

TEST(Pool, SymbolicExtents) {
  const Type type = tensor_type({Dim::symbol("N"), 3, Dim::symbol("H"), Dim::symbol("W")}, dtype::float32_);
  const Tensor x = pattern(dtype::float32_, {2, 3, 7, 6});
  for (const auto& [name, attrs] :
       std::vector<std::pair<std::string, ir::AttrMap>>{{"nn.max_pool2d", attributes(kWindows[2])},
                                                        {"nn.avg_pool2d", attributes(kWindows[5])},
                                                        {"nn.global_avg_pool2d", {}},
                                                        {"nn.adaptive_avg_pool2d", {{"output_size", Ints{4, 3}}}}}) {
    const Tensor y = run({{type, x}}, [&](const std::vector<ir::Expr>& v) { return call(name, {v[0]}, attrs); });
    expect_close(y, run_op(name, {x}, attrs));
  }
}

TEST(Pool, FollowsBlockedLayouts) {
  const ir::Expr y = call("nn.max_pool2d", {var("x", {1, 8, 6, 6})}, {{"pool_size", Ints{2, 2}}});
  const ir::LayoutAnswer answer = y.as<ir::Call>()->op()->layout({*y.as<ir::Call>(), {Layout("NCHW8c")}});
  EXPECT_EQ(answer.inputs[0].text(), "NCHW8c");
  EXPECT_EQ(answer.outputs[0].text(), "NCHW8c");
  EXPECT_EQ(std::get<std::string>(answer.attrs->get("layout")), "NCHW8c");
}

TEST(Pool, RefusesWithNumbers) {
  const Type x = tensor_type({1, 3, 4, 4}, dtype::float32_);
  EXPECT_THAT(error_of([&] { type_of("nn.max_pool2d", {x}, {{"pool_size", Ints{5, 5}}}); }),
              ::testing::HasSubstr("spans 5 elements but the padded input has only 4"));
  EXPECT_THAT(error_of([&] { type_of("nn.max_pool2d", {x}); }), ::testing::HasSubstr("pool_size"));
  EXPECT_THAT(error_of([&] { type_of("nn.avg_pool2d", {x}, {{"pool_size", Ints{2, 2}}, {"strides", Ints{0, 1}}}); }),
              ::testing::HasSubstr("strides"));
  EXPECT_THAT(
      error_of([&] { type_of("nn.max_pool2d", {x}, {{"pool_size", Ints{2, 2}}, {"layout", std::string("NCHW4h")}}); }),
      ::testing::HasSubstr("splits the spatial axis H"));
  EXPECT_THAT(error_of([&] { type_of("nn.adaptive_avg_pool2d", {x}, {{"output_size", Ints{1, 2, 3}}}); }),
              ::testing::HasSubstr("output_size has 3 values"));
}

TEST(PoolGrad, SpreadsOverTheWindows) {
  const Tensor x = pattern(dtype::float32_, {1, 2, 6, 7});
  for (const Window& w : kWindows) {
    const Tensor dy = pattern(dtype::float32_, {1, 2, extent(6, w), extent(7, w)}, 3);
    Tensor max_grad = Tensor::zeros(dtype::float32_, x.shape()), avg_grad = max_grad.clone();
    for (int64_t c = 0; c < 2; ++c)
      for (int64_t p = 0; p < dy.shape()[2]; ++p)
        for (int64_t q = 0; q < dy.shape()[3]; ++q) {
          int64_t best = -1, count = 0;
          for_taps(w, 6, 7, p, q, [&](int64_t y, int64_t v, bool inside, bool) {
            if (!inside) return;
            ++count;
            const int64_t here = at(x, {0, c, y, v});
            if (best < 0 || x.at(here) > x.at(best)) best = here;
          });
          const float g = static_cast<float>(dy.at(at(dy, {0, c, p, q})));
          if (best >= 0) max_grad.values<float>()[static_cast<size_t>(best)] += g;
          for_taps(w, 6, 7, p, q, [&](int64_t y, int64_t v, bool inside, bool) {
            if (inside)
              avg_grad.values<float>()[static_cast<size_t>(at(x, {0, c, y, v}))] += g / static_cast<float>(count);
          });
        }
    expect_close(run_op("nn.max_pool2d_grad", {dy, x}, attributes(w)), max_grad, 1e-5, 1e-5);
    expect_close(run_op("nn.avg_pool2d_grad", {dy, x}, attributes(w)), avg_grad, 1e-5, 1e-5);
  }
}

}  // namespace
}  // namespace treadle::op::test
