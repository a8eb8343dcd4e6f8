// SPDX-License-Identifier: Apache-2.0
// Convolutions against loops written here, in all layouts; their types, and the layouts that they ask for.
#include "op/nn/conv.h"

#include "op/nn/nn_test.h"

namespace treadle::op::test {
namespace {

using ir::AttrMap;
using ir::Ints;

struct Geometry {
  Ints strides{1, 1}, dilation{1, 1}, begin{0, 0}, end{0, 0};
  int64_t groups = 1;
};

// y[n, o, p, q] of NCHW data and OIHW weights, in double.
Tensor reference(const Tensor& x, const Tensor& w, const Geometry& g, DType out = dtype::float32_) {
  const auto& xs = x.shape();
  const auto& ws = w.shape();
  std::vector<int64_t> shape{xs[0], ws[0]};
  for (int s = 0; s < 2; ++s)
    shape.push_back((xs[2 + s] + g.begin[s] + g.end[s] - (ws[2 + s] - 1) * g.dilation[s] - 1) / g.strides[s] + 1);
  return filled(
      shape,
      [&](const std::vector<int64_t>& i) {
        double sum = 0;
        const int64_t first = i[1] / (ws[0] / g.groups) * ws[1];
        for (int64_t c = 0; c < ws[1]; ++c) {
          for (int64_t u = 0; u < ws[2]; ++u) {
            for (int64_t v = 0; v < ws[3]; ++v) {
              const int64_t h = i[2] * g.strides[0] + u * g.dilation[0] - g.begin[0],
                            k = i[3] * g.strides[1] + v * g.dilation[1] - g.begin[1];
              if (h < 0 || h >= xs[2] || k < 0 || k >= xs[3]) continue;
              sum += x.at(at(x, {i[0], first + c, h, k})) * w.at(at(w, {i[1], c, u, v}));
            }
          }
        }
        return sum;
      },
      out);
}

AttrMap attributes(const Geometry& g) {
  return {{"strides", g.strides},
          {"dilation", g.dilation},
          {"padding", Ints{g.begin[0], g.begin[1], g.end[0], g.end[1]}},
          {"groups", g.groups}};
}

const std::vector<Geometry> kGeometries = {
    {},
    {{2, 1}, {1, 1}, {1, 1}, {1, 1}, 1},
    {{1, 2}, {2, 1}, {2, 0}, {1, 3}, 1},
    {{1, 1}, {1, 1}, {1, 0}, {0, 1}, 2},
    {{2, 2}, {1, 1}, {1, 1}, {1, 1}, 8},
};

TEST(Conv2D, EqualsTheLoops) {
  for (const Geometry& g : kGeometries) {
    const Tensor x = pattern(dtype::float32_, {2, 8, 7, 6}), w = pattern(dtype::float32_, {16, 8 / g.groups, 3, 2}, 2);
    expect_close(run_op("nn.conv2d", {x, w}, attributes(g)), reference(x, w, g), 1e-5, 1e-5);
  }
}

TEST(Conv2D, AllLayoutsGiveTheSame) {
  struct Layouts {
    std::string data, kernel, out;
  };
  const std::vector<Layouts> layouts = {
      {"NHWC", "HWIO", "NHWC"},          {"NHWC", "OHWI", "NCHW"},           {"HWCN", "HWIO", "HWCN"},
      {"NCHW4c", "OIHW4i8o", "NCHW8c"},  {"NCHW4c", "OIHW", "NCHW4c"},       {"NCHW", "OIHW8o", "NCHW8c"},
      {"NCHW8c", "OIHW4i8o", "NCHW16c"}, {"NCHW4c", "OIHW2i8o2i", "NCHW8c"}, {"NCHW4c", "OIHW4o", "NCHW4c"}};
  for (const Geometry& g : kGeometries) {
    const int64_t per_group = 8 / g.groups;
    const Tensor x = pattern(dtype::float32_, {1, 8, 5, 6}), w = pattern(dtype::float32_, {16, per_group, 3, 2}, 2);
    const Tensor expected = reference(x, w, g);
    for (const Layouts& l : layouts) {
      if (per_group % Layout(l.kernel).block_of('I') != 0) continue;
      SCOPED_TRACE(l.data + " " + l.kernel + " " + l.out + " groups " + std::to_string(g.groups));
      AttrMap attrs = attributes(g);
      attrs["data_layout"] = l.data;
      attrs["kernel_layout"] = l.kernel;
      attrs["out_layout"] = l.out;
      const Tensor y = run_op("nn.conv2d", {relayout(x, "NCHW", l.data), relayout(w, "OIHW", l.kernel)}, attrs);
      expect_close(relayout(y, l.out, "NCHW"), expected, 1e-5, 1e-5);
    }
  }
}

TEST(Conv2D, DepthwiseWithTheMultiplierOnAxisI) {
  const Tensor x = pattern(dtype::float32_, {1, 3, 5, 5}), w = pattern(dtype::float32_, {3, 2, 3, 3}, 2);
  const Tensor y =
      run_op("nn.conv2d", {x, w}, {{"groups", int64_t{3}}, {"channels", int64_t{6}}, {"kernel_size", Ints{3, 3}}});
  Geometry g;
  g.groups = 3;
  expect_close(y, reference(x, w.reshaped({6, 1, 3, 3}), g), 1e-5, 1e-5);
}

TEST(Conv2D, SumsInTheOutputsDtype) {
  const Tensor x = pattern(dtype::int8_, {1, 4, 5, 5}), w = pattern(dtype::int8_, {3, 4, 3, 3}, 2);
  expect_close(run_op("nn.conv2d", {x, w}, {{"out_dtype", std::string("int32")}}), reference(x, w, {}, dtype::int32_),
               0, 0);
  const Tensor h = pattern(dtype::float16_, {1, 64, 4, 4}), v = pattern(dtype::float16_, {2, 64, 3, 3}, 2);
  expect_close(run_op("nn.conv2d", {h, v}), reference(h, v, {}, dtype::float16_), 1e-3, 1e-3);
  const Tensor d = pattern(dtype::float64_, {1, 2, 4, 4}), e = pattern(dtype::float64_, {2, 2, 3, 3}, 2);
  expect_close(run_op("nn.conv2d", {d, e}), reference(d, e, {}, dtype::float64_), 1e-12, 1e-12);
}

TEST(Conv2D, SymbolicExtents) {
  const ir::Expr x = var("x", {Dim::symbol("N"), 4, Dim::symbol("H"), Dim::symbol("W")}), w = var("w", {6, 4, 3, 3});
  auto attrs = Conv2DAttrs::defaults();
  attrs->padding = {1, 1};
  attrs->strides = {2, 2};
  const ir::Expr y = conv2d(x, w, attrs);
  EXPECT_EQ(to_string(y.type()), "Tensor[(N, 6, floordiv(H + 1, 2), floordiv(W + 1, 2)), float32]");
  const Tensor a = pattern(dtype::float32_, {2, 4, 5, 8}), b = pattern(dtype::float32_, {6, 4, 3, 3}, 2);
  Evaluator evaluator;
  evaluator.set(x, a);
  evaluator.set(w, b);
  expect_close(evaluator.evaluate(y).at(0), reference(a, b, {{2, 2}, {1, 1}, {1, 1}, {1, 1}, 1}), 1e-5, 1e-5);
}

TEST(Conv2D, EmptyBatch) {
  const Tensor y = run_op("nn.conv2d", {Tensor(dtype::float32_, {0, 3, 4, 4}), pattern(dtype::float32_, {2, 3, 3, 3})});
  EXPECT_EQ(y.shape(), (std::vector<int64_t>{0, 2, 2, 2}));
}

TEST(Conv1D3D, EqualTheTwoDimensional) {
  const Tensor x = pattern(dtype::float32_, {2, 4, 1, 9}), w = pattern(dtype::float32_, {6, 2, 1, 3}, 2);
  const Geometry g{{1, 2}, {1, 2}, {0, 2}, {0, 1}, 2};
  const Tensor expected = reference(x, w, g);
  const Tensor y =
      run_op("nn.conv1d", {x.reshaped({2, 4, 9}), w.reshaped({6, 2, 3})},
             {{"strides", Ints{2}}, {"dilation", Ints{2}}, {"padding", Ints{2, 1}}, {"groups", int64_t{2}}});
  expect_close(y.reshaped(expected.shape()), expected, 1e-5, 1e-5);
  const Tensor z = run_op("nn.conv3d", {x.reshaped({2, 4, 1, 1, 9}), w.reshaped({6, 2, 1, 1, 3})},
                          {{"strides", Ints{1, 1, 2}},
                           {"dilation", Ints{1, 1, 2}},
                           {"padding", Ints{0, 0, 2, 0, 0, 1}},
                           {"groups", int64_t{2}}});
  expect_close(z.reshaped(expected.shape()), expected, 1e-5, 1e-5);
}

TEST(Conv2D, InfersTheWeight) {
  const ir::Expr x = var("x", {1, 3, 8, 8});
  const ir::Expr y = ir::call("nn.conv2d", {x, ir::var("w")}, {{"channels", int64_t{4}}, {"kernel_size", Ints{3, 3}}});
  const ir::Expr typed = ir::infer_types(y);
  EXPECT_EQ(to_string(typed.as<ir::Call>()->args[1].type()), "Tensor[(4, 3, 3, 3), float32]");
  EXPECT_EQ(to_string(typed.type()), "Tensor[(1, 4, 6, 6), float32]");
}

Type f32(Shape shape) { return tensor_type(std::move(shape), dtype::float32_); }

TEST(Conv2D, RefusesWithNumbers) {
  const auto error = [](std::vector<Type> types, AttrMap attrs) {
    return error_of([&] { type_of("nn.conv2d", types, attrs); });
  };
  EXPECT_THAT(error({f32({1, 3, 8, 8}), f32({64, 4, 7, 7})}, {}),
              ::testing::HasSubstr("input has 3 channels but weight expects 4 (groups=1)"));
  EXPECT_THAT(error({f32({1, 3, 2, 8}), f32({4, 3, 3, 3})}, {}),
              ::testing::HasSubstr("spans 3 elements but the padded input has only 2"));
  EXPECT_THAT(error({f32({1, 3, 8, 8}), f32({4, 3, 3, 3})}, {{"channels", int64_t{5}}}),
              ::testing::HasSubstr("4 output channels but channels is 5"));
  EXPECT_THAT(error({f32({1, 3, 8, 8}), f32({4, 3, 3, 3})}, {{"strides", Ints{0, 1}}}),
              ::testing::HasSubstr("strides"));
  EXPECT_THAT(error({f32({1, 3, 8, 8}), f32({4, 3, 3, 3})}, {{"padding", Ints{1, 1, 1}}}),
              ::testing::HasSubstr("padding has 3 values"));
  EXPECT_THAT(error({f32({1, 4, 8, 8}), f32({6, 1, 3, 3})}, {{"groups", int64_t{3}}}),
              ::testing::HasSubstr("groups=3 does not divide the 4 input channels"));
  EXPECT_THAT(error({f32({1, 3, 8}), f32({4, 3, 3, 3})}, {}), ::testing::HasSubstr("rank 3"));
  EXPECT_THAT(error({f32({1, 3, 8, 8}), f32({4, 3, 3, 3})}, {{"data_layout", std::string("NCXY")}}),
              ::testing::HasSubstr("data_layout"));
  EXPECT_THAT(error({f32({1, 3, 8, 8}), tensor_type({4, 3, 3, 3}, dtype::int8_)}, {}),
              ::testing::HasSubstr("data is float32 but weight is int8"));
}

// The blocks that a target of 8 float lanes gets.
TEST(Conv2D, AltersToBlocks) {
  Target target;
  target.vector_bytes = 32;
  const auto kernel_of = [&](std::vector<int64_t> data, std::vector<int64_t> weight, int64_t groups) -> std::string {
    const ir::Expr x = var("x", to_shape(data)), w = ir::constant(Tensor::zeros(dtype::float32_, weight));
    auto attrs = Conv2DAttrs::defaults();
    attrs->groups = groups;
    const ir::Expr call = conv2d(x, w, attrs);
    const auto alternative = call.as<ir::Call>()->op()->alter(*call.as<ir::Call>(), target);
    if (!alternative) return "none";
    return alternative->inputs[0].text() + " " + alternative->inputs[1].text() + " " + alternative->outputs[0].text();
  };
  EXPECT_EQ(kernel_of({1, 64, 9, 9}, {32, 64, 3, 3}, 1), "NCHW8c OIHW8i8o NCHW8c");
  EXPECT_EQ(kernel_of({1, 3, 9, 9}, {32, 3, 3, 3}, 1), "NCHW OIHW8o NCHW8c");
  EXPECT_EQ(kernel_of({1, 12, 9, 9}, {20, 12, 3, 3}, 1), "NCHW4c OIHW4i4o NCHW4c");
  EXPECT_EQ(kernel_of({1, 12, 9, 9}, {7, 12, 3, 3}, 1), "none");
  EXPECT_EQ(kernel_of({1, 24, 9, 9}, {24, 1, 3, 3}, 24), "NCHW8c OIHW8o NCHW8c");
  EXPECT_EQ(kernel_of({1, 32, 9, 9}, {16, 8, 3, 3}, 4), "NCHW8c OIHW8i4o NCHW4c");
  EXPECT_EQ(kernel_of({1, 6, 9, 9}, {6, 3, 3, 3}, 2), "none");
}

}  // namespace
}  // namespace treadle::op::test
