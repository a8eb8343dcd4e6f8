// SPDX-License-Identifier: Apache-2.0
// Padding, upsampling and moves between depth, batch and space, against small results written out or loops.
#include "op/nn/rearrange.h"

#include <limits>

#include "op/nn/activation.h"
#include "op/nn/nn_test.h"

namespace treadle::op::test {
namespace {

using ir::IntLists;
using ir::Ints;
using Index = std::vector<int64_t>;

Tensor row(const std::vector<float>& values) { return Tensor::from<float>(values); }

TEST(Pad, Modes) {
  const Tensor x = row({1, 2, 3}), value = Tensor::scalar(dtype::int32_, 9);
  const auto pad = [&](std::string mode, int64_t before, int64_t after) {
    return run_op("nn.pad", {x, value}, {{"pad_width", IntLists{{before, after}}}, {"pad_mode", mode}});
  };
  const auto mirror = [&](std::string mode, int64_t before, int64_t after) {
    return run_op("nn.mirror_pad", {x}, {{"pad_width", IntLists{{before, after}}}, {"mode", mode}});
  };
  expect_close(pad("constant", 2, 1), row({9, 9, 1, 2, 3, 9}), 0, 0);
  expect_close(pad("edge", 2, 1), row({1, 1, 1, 2, 3, 3}), 0, 0);
  expect_close(pad("reflect", 2, 1), row({3, 2, 1, 2, 3, 2}), 0, 0);
  expect_close(mirror("SYMMETRIC", 3, 2), row({3, 2, 1, 1, 2, 3, 3, 2}), 0, 0);
  expect_close(mirror("REFLECT", 2, 2), row({3, 2, 1, 2, 3, 2, 1}), 0, 0);
  // Beyond the extent: back and forth.
  expect_close(pad("reflect", 0, 6), row({1, 2, 3, 2, 1, 2, 3, 2, 1}), 0, 0);
  expect_close(mirror("SYMMETRIC", 0, 5), row({1, 2, 3, 3, 2, 1, 1, 2}), 0, 0);
  // Negative widths crop.
  expect_close(pad("constant", -1, 2), row({2, 3, 9, 9}), 0, 0);
  expect_close(pad("edge", 1, -2), row({1, 1}), 0, 0);
  expect_close(pad("constant", -3, 0), row({}), 0, 0);
}

TEST(Pad, OneElementAndSymbols) {
  const Tensor one = row({7});
  expect_close(run_op("nn.pad", {one, Tensor::scalar(dtype::float32_, 0)},
                      {{"pad_width", IntLists{{2, 1}}}, {"pad_mode", std::string("reflect")}}),
               row({7, 7, 7, 7}), 0, 0);
  for (const std::string mode : {"constant", "edge", "reflect"}) {
    const ir::AttrMap attrs{{"pad_width", IntLists{{2, 1}}}, {"pad_mode", mode}};
    const Tensor x = row({1, 2, 3, 4}), zero = Tensor::scalar(dtype::float32_, 0);
    const Tensor y = run({{tensor_type({Dim::symbol("N")}, dtype::float32_), x}}, [&](const std::vector<ir::Expr>& v) {
      return call("nn.pad", {v[0], ir::constant(zero)}, attrs);
    });
    expect_close(y, run_op("nn.pad", {x, zero}, attrs), 0, 0);
  }
}

TEST(Pad, RefusesWithNumbers) {
  const Type x = tensor_type({2, 3}, dtype::float32_), value = tensor_type({}, dtype::float32_);
  EXPECT_THAT(error_of([&] { type_of("nn.pad", {x, value}, {{"pad_width", IntLists{{1, 1}}}}); }),
              ::testing::HasSubstr("1 pairs but the data (2, 3) has rank 2"));
  EXPECT_THAT(error_of([&] { type_of("nn.pad", {x, value}, {{"pad_width", IntLists{{-3, 0}, {0, 0}}}}); }),
              ::testing::HasSubstr("axis 0 of extent 2 with pad_width -3 and 0 has -1 elements left"));
  EXPECT_THAT(error_of([&] { type_of("nn.mirror_pad", {x}, {{"pad_width", IntLists{{-1, 0}, {0, 0}}}}); }),
              ::testing::HasSubstr("pad_width"));
  EXPECT_THAT(error_of([&] {
                type_of("nn.pad", {tensor_type({0}, dtype::float32_), value},
                        {{"pad_width", IntLists{{1, 0}}}, {"pad_mode", std::string("edge")}});
              }),
              ::testing::HasSubstr("axis 0 is empty"));
}

TEST(DepthToSpace, BothModesAndBack) {
  const Tensor x = pattern(dtype::float32_, {2, 8, 3, 2});
  for (const std::string mode : {"DCR", "CDR"}) {
    const Tensor y = run_op("nn.depth_to_space", {x}, {{"block_size", int64_t{2}}, {"mode", mode}});
    expect_close(
        y,
        filled({2, 2, 6, 4},
               [&](const Index& i) {
                 const int64_t offset = 2 * (i[2] % 2) + i[3] % 2;
                 return x.at(at(x, {i[0], mode == "DCR" ? offset * 2 + i[1] : i[1] * 4 + offset, i[2] / 2, i[3] / 2}));
               }),
        0, 0);
    if (mode == "DCR") expect_close(run_op("nn.space_to_depth", {y}, {{"block_size", int64_t{2}}}), x, 0, 0);
    const Tensor nhwc = run_op("nn.depth_to_space", {relayout(x, "NCHW", "NHWC")},
                               {{"block_size", int64_t{2}}, {"mode", mode}, {"layout", std::string("NHWC")}});
    expect_close(relayout(nhwc, "NHWC", "NCHW"), y, 0, 0);
  }
  EXPECT_THAT(error_of([] {
                type_of("nn.depth_to_space", {tensor_type({1, 6, 2, 2}, dtype::float32_)},
                        {{"block_size", int64_t{2}}});
              }),
              ::testing::HasSubstr("extent 6, which 4 does not divide"));
}

TEST(SpaceToBatch, AndBack) {
  const Tensor x = pattern(dtype::float32_, {2, 3, 4, 2});
  const Tensor y = run_op("nn.space_to_batch_nd", {x},
                          {{"block_shape", Ints{2, 3}}, {"paddings", IntLists{{1, 0}, {0, 2}}}, {"pad_value", 5.0}});
  ASSERT_EQ(y.shape(), (Index{12, 2, 2, 2}));
  EXPECT_EQ(y.at(0), 5.0);
  const Tensor z =
      run_op("nn.batch_to_space_nd", {y}, {{"block_shape", Ints{2, 3}}, {"crops", IntLists{{1, 0}, {0, 2}}}});
  expect_close(z, x, 0, 0);
}

TEST(Dilate, PutsValuesBetween) {
  const Tensor y = run_op("nn.dilate", {Tensor::from<int32_t>({1, 2, 3, 4}, {2, 2})},
                          {{"strides", Ints{1, 3}}, {"dilation_value", -1.0}});
  expect_close(y, Tensor::from<int32_t>({1, -1, -1, 2, 3, -1, -1, 4}, {2, 4}), 0, 0);
  EXPECT_EQ(run_op("nn.dilate", {Tensor(dtype::float32_, {0, 2})}, {{"strides", Ints{3, 1}}}).shape(), (Index{0, 2}));
}

TEST(FifoBuffer, KeepsTheNewest) {
  expect_close(run_op("nn.fifo_buffer", {row({4, 5}), row({1, 2, 3})}, {{"axis", int64_t{0}}}), row({3, 4, 5}), 0, 0);
}

TEST(Upsampling, NearestAndLinear) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4}, {1, 1, 2, 2});
  const Tensor nearest = run_op("nn.upsampling", {x}, {{"scale_h", 2.0}, {"scale_w", 3.0}});
  expect_close(nearest, filled({1, 1, 4, 6}, [&](const Index& i) { return x.at(at(x, {0, 0, i[2] / 2, i[3] / 3})); }),
               0, 0);
  const Tensor linear = run_op("nn.upsampling", {x}, {{"scale_w", 2.0}, {"method", std::string("bilinear")}});
  expect_close(linear, Tensor::from<float>({1, 1.5f, 2, 2, 3, 3.5f, 4, 4}, {1, 1, 2, 4}));
  const Tensor corners =
      run_op("nn.upsampling", {x}, {{"scale_w", 2.0}, {"method", std::string("bilinear")}, {"align_corners", true}});
  expect_close(corners, Tensor::from<float>({1, 4 / 3.f, 5 / 3.f, 2, 3, 10 / 3.f, 11 / 3.f, 4}, {1, 1, 2, 4}));
  const Tensor wide = pattern(dtype::float32_, {1, 8, 3, 2});
  const ir::AttrMap attrs{{"scale_h", 1.5}, {"scale_w", 2.0}, {"method", std::string("bicubic")}};
  ir::AttrMap blocked = attrs;
  blocked["layout"] = std::string("NCHW4c");
  expect_close(relayout(run_op("nn.upsampling", {relayout(wide, "NCHW", "NCHW4c")}, blocked), "NCHW4c", "NCHW"),
               run_op("nn.upsampling", {wide}, attrs));
  EXPECT_EQ(type_of("nn.upsampling", {tensor_type({1, 3, Dim::symbol("H"), 4}, dtype::float32_)}, {{"scale_h", 2.0}}),
            "Tensor[(1, 3, 2*H, 4), float32]");
}

// The extents decide where an element is read, also where they are no exact multiple of each other.
TEST(Upsampling, RoundedExtents) {
  const Tensor x = row({0, 1, 2, 3, 4}).reshaped({1, 1, 1, 5});
  const auto up = [&](double scale, std::string method) {
    return run_op("nn.upsampling", {x}, {{"scale_w", scale}, {"method", method}});
  };
  for (double scale : {0.5, 1.3, 1.5, 2.5}) {
    const auto out = static_cast<int64_t>(std::floor(5 * scale + 0.5));
    expect_close(up(scale, "nearest_neighbor"),
                 filled({1, 1, 1, out}, [&](const Index& i) { return static_cast<double>(i[3] * 5 / out); }), 0, 0);
    expect_close(up(scale, "bilinear"), filled({1, 1, 1, out}, [&](const Index& i) {
                   return std::min(static_cast<double>(i[3] * 5) / static_cast<double>(out), 4.0);
                 }));
  }
}

// A factor that is whole for every extent reads as it does for fixed extents.
TEST(Upsampling, SymbolicExtents) {
  const Tensor x = pattern(dtype::float32_, {1, 1, 3, 4});
  for (const std::string method : {"nearest_neighbor", "bilinear", "bicubic"}) {
    const ir::AttrMap attrs{{"scale_h", 2.0}, {"scale_w", 1.5}, {"method", method}};
    const Type type = tensor_type({1, 1, Dim::symbol("H"), Dim::symbol("W")}, dtype::float32_);
    const Tensor y =
        run({{type, x}}, [&](const std::vector<ir::Expr>& v) { return call("nn.upsampling", {v[0]}, attrs); });
    expect_close(y, run_op("nn.upsampling", {x}, attrs), 0, 0);
  }
}

TEST(Activation, KeepsNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const Tensor x = row({-2, -0.5f, 0, 3, nan, inf, -inf});
  expect_close(run_op("nn.relu", {x}), row({0, 0, 0, 3, nan, inf, 0}), 0, 0);
  expect_close(run_op("nn.leaky_relu", {x}, {{"alpha", 0.5}}), row({-1, -0.25f, 0, 3, nan, inf, -inf}), 0, 0);
  expect_close(run_op("nn.leaky_relu", {row({-4})}), row({-1}), 0, 0);  // the text format's default is 0.25
  expect_close(run_op("nn.relu", {Tensor::from<int8_t>({-3, 4})}), Tensor::from<int8_t>({0, 4}), 0, 0);
}

TEST(PRelu, EqualsItsCanonicalForm) {
  register_operators();
  for (int64_t axis : {0, 1, -1}) {
    const Tensor x = pattern(dtype::float32_, {2, 3, 4}),
                 alpha = pattern(dtype::float32_, {x.shape()[static_cast<size_t>(axis < 0 ? axis + 3 : axis)]}, 2);
    const ir::Expr call = prelu(ir::constant(x), ir::constant(alpha), axis);
    const ir::Expr canonical = call.as<ir::Call>()->op()->canonicalise(*call.as<ir::Call>());
    EXPECT_EQ(to_string(canonical.type()), to_string(call.type()));
    expect_close(run(canonical), run(call), 0, 0);
  }
  EXPECT_THAT(
      error_of([] { type_of("nn.prelu", {tensor_type({2, 3}, dtype::float32_), tensor_type({2}, dtype::float32_)}); }),
      ::testing::HasSubstr("alpha has 2 elements but axis 1 of the data has 3"));
}

}  // namespace
}  // namespace treadle::op::test
