// SPDX-License-Identifier: Apache-2.0
#include "op/tensor/reshape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "op/op_test.h"
#include "op/tensor/transform.h"

namespace treadle::op {
namespace {

using test::counting;
using test::numbers;
using test::run;
using testing::ElementsAre;

std::vector<double> count_to(int64_t n) {
  std::vector<double> result(n);
  std::iota(result.begin(), result.end(), 0.0);
  return result;
}

TEST(Reshape, Codes) {
  const Shape from = to_shape({2, 3, 4});
  const auto resolve = [&](const Shape& codes) { return static_extents(resolve_reshape(from, codes, false)); };
  EXPECT_THAT(resolve({4, 0, 2}), ElementsAre(4, 3, 2));
  EXPECT_THAT(resolve({-1, 4}), ElementsAre(6, 4));
  EXPECT_THAT(resolve({-2}), ElementsAre(2, 3, 4));
  EXPECT_THAT(resolve({2, -2}), ElementsAre(2, 3, 4));
  EXPECT_THAT(resolve({-3, 4}), ElementsAre(6, 4));
  EXPECT_THAT(resolve({0, -3}), ElementsAre(2, 12));
  EXPECT_THAT(resolve({-4, 1, 2, -2}), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(resolve({2, -4, -1, 3, -2}), ElementsAre(2, 1, 3, 4));
  EXPECT_THAT(static_extents(resolve_reshape(to_shape({10, 5, 4}), {-1, 0}, false, true)), ElementsAre(50, 4));
  EXPECT_THAT(static_extents(resolve_reshape(to_shape({0, 3}), {3, 0}, true)), ElementsAre(3, 0));
}

TEST(Reshape, SymbolicCodes) {
  const Dim n = Dim::symbol("N"), l = Dim::symbol("L");
  EXPECT_EQ(to_string(resolve_reshape({n, l, 768}, {0, 0, 12, 64}, false)), "(N, L, 12, 64)");
  EXPECT_EQ(to_string(resolve_reshape({n, l, 768}, {-1, 768}, false)), "(L*N, 768)");
  EXPECT_EQ(to_string(resolve_reshape({n, 3, 4}, {n, -1}, false)), "(N, 12)");
}

TEST(Reshape, RefusesWhatDoesNotFit) {
  const Shape from = to_shape({2, 3});
  EXPECT_THROW(resolve_reshape(from, {4}, false), Error);
  EXPECT_THROW(resolve_reshape(from, {-1, -1}, false), Error);
  EXPECT_THROW(resolve_reshape(from, {-1, 4}, false), Error);
  EXPECT_THROW(resolve_reshape(from, {0, 0, 0}, false), Error);
  EXPECT_THROW(resolve_reshape(from, {-4, 2}, false), Error);
  EXPECT_THROW(resolve_reshape(from, {-7}, false), Error);
  EXPECT_THROW(resolve_reshape(to_shape({0, 3}), {0, -1}, false), Error);
}

TEST(Reshape, MovesNoElement) {
  register_operators();
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{24}, {4, 6}, {2, 1, 3, 4}, {3, 8}, {1, 24, 1}, {6, 2, 2}}) {
    const Tensor result = run(reshape(counting({2, 3, 4}), to_shape(shape)));
    EXPECT_EQ(result.shape(), shape);
    EXPECT_EQ(numbers(result), count_to(24));
  }
  EXPECT_EQ(run(reshape(counting({1, 1}), {})).at(0), 0);
  EXPECT_EQ(run(reshape(test::constant<float>({}, {0, 3}), {3, 0}, true)).size(), 0);
}

TEST(Reshape, SymbolicExtentsMoveNoElement) {
  const Dim n = Dim::symbol("N"), l = Dim::symbol("L");
  const Type type = tensor_type({n, l, 6}, dtype::float32_);
  const Tensor value = counting({2, 3, 6}).as<ir::Constant>()->value;
  for (const Shape& shape : {Shape{n, l, 2, 3}, Shape{n * l, 6}, Shape{-1}, Shape{n, -1}, Shape{n * l * Dim(2), 3}}) {
    EXPECT_EQ(numbers(run({{type, value}}, [&](const auto& x) { return reshape(x[0], shape); })), count_to(36))
        << to_string(shape);
  }
}

TEST(Reshape, ExpandAndSqueeze) {
  register_operators();
  const auto shape = [](const ir::Expr& e) { return to_string(e.tensor_type().shape); };
  EXPECT_EQ(shape(expand_dims(counting({2, 3}), 1)), "(2, 1, 3)");
  EXPECT_EQ(shape(expand_dims(counting({2, 3}), -1, 2)), "(2, 3, 1, 1)");
  EXPECT_EQ(shape(expand_dims(counting({2, 3}), -3)), "(1, 2, 3)");
  EXPECT_THROW(expand_dims(counting({2, 3}), 3), Error);
  EXPECT_EQ(shape(squeeze(counting({1, 3, 1}))), "(3)");
  EXPECT_EQ(shape(squeeze(counting({1, 3, 1}), ir::Ints{-1})), "(1, 3)");
  EXPECT_THROW(squeeze(counting({1, 3}), ir::Ints{1}), Error);
  EXPECT_EQ(numbers(run(squeeze(expand_dims(counting({2, 3}), 0), ir::Ints{0}))), count_to(6));
}

TEST(Reshape, ReshapeLike) {
  const auto result = test::call(
      "reshape_like", {counting({2, 6, 5}), counting({3, 4, 9})},
      {{"lhs_begin", int64_t{0}}, {"lhs_end", int64_t{2}}, {"rhs_begin", int64_t{0}}, {"rhs_end", int64_t{2}}});
  EXPECT_EQ(to_string(result.tensor_type().shape), "(3, 4, 5)");
  EXPECT_EQ(numbers(run(result)), count_to(60));
  EXPECT_THROW(test::call("reshape_like", {counting({2, 6}), counting({3, 5})}), Error);
}

TEST(Reshape, TwoReshapesBecomeOne) {
  register_operators();
  const ir::Expr x = ir::var("x", tensor_type({2, 3}, dtype::float32_));
  const auto canonical = [](const ir::Expr& e) { return e.as<ir::Call>()->op()->canonicalise(*e.as<ir::Call>()); };
  EXPECT_TRUE(canonical(reshape(reshape(x, {6}), {2, 3})).same_as(x));
  EXPECT_TRUE(canonical(expand_dims(reshape(x, {6}), 0)).as<ir::Call>()->args[0].same_as(x));
  EXPECT_FALSE(canonical(reshape(x, {6})).defined());
}

// ---- transform ----

TEST(Transform, Transpose) {
  register_operators();
  EXPECT_THAT(numbers(run(transpose(counting({2, 3})))), ElementsAre(0, 3, 1, 4, 2, 5));
  const Tensor result = run(transpose(counting({2, 3, 4}), ir::Ints{-1, 0, 1}));
  EXPECT_THAT(result.shape(), ElementsAre(4, 2, 3));
  EXPECT_EQ(result.at(1 * 6 + 1 * 3 + 2), 12 + 2 * 4 + 1);
  EXPECT_THROW(transpose(counting({2, 3}), ir::Ints{0}), Error);
  EXPECT_THROW(transpose(counting({2, 3}), ir::Ints{0, 0}), Error);
  const ir::Expr x = ir::var("x", tensor_type({2, 3, 4}, dtype::float32_));
  const ir::Expr twice = transpose(transpose(x, ir::Ints{1, 2, 0}), ir::Ints{2, 0, 1});
  EXPECT_TRUE(twice.as<ir::Call>()->op()->canonicalise(*twice.as<ir::Call>()).same_as(x));
}

TEST(Transform, LayoutsThereAndBack) {
  register_operators();
  const ir::Expr x = counting({2, 8, 3, 5});
  for (const char* layout : {"NHWC", "NCHW4c", "NCHW8c", "HWNC2n2c", "CNHW4c2n"}) {
    EXPECT_EQ(numbers(run(layout_transform(layout_transform(x, "NCHW", layout), layout, "NCHW"))), count_to(240))
        << layout;
  }
  const Tensor blocked = run(layout_transform(x, "NCHW", "NCHW4c"));
  EXPECT_THAT(blocked.shape(), ElementsAre(2, 2, 3, 5, 4));
  EXPECT_EQ(blocked.at(((0 * 2 + 1) * 15 + 7) * 4 + 3), 7 * 15 + 7);  // channel 1*4+3
}

TEST(Transform, AnIncompleteBlockIsFilledWithZeros) {
  register_operators();
  const Tensor result = run(layout_transform(test::constant<float>({1, 2, 3}, {1, 3, 1, 1}), "NCHW", "NCHW2c"));
  EXPECT_THAT(result.shape(), ElementsAre(1, 2, 1, 1, 2));
  EXPECT_THAT(numbers(result), ElementsAre(1, 2, 3, 0));
  EXPECT_THROW(layout_transform(counting({1, 2}), "NCHW", "NHWC"), Error);
}

TEST(Transform, ReverseRepeatTile) {
  const auto x = test::constant<float>({1, 2, 3, 4}, {2, 2});
  EXPECT_THAT(numbers(run(test::call("reverse", {x}, {{"axis", int64_t{-1}}}))), ElementsAre(2, 1, 4, 3));
  EXPECT_THAT(numbers(run(test::call("repeat", {x}, {{"repeats", int64_t{2}}, {"axis", int64_t{1}}}))),
              ElementsAre(1, 1, 2, 2, 3, 3, 4, 4));
  EXPECT_THAT(numbers(run(test::call("repeat", {x}, {{"repeats", int64_t{2}}}))), ElementsAre(1, 1, 2, 2, 3, 3, 4, 4));
  const Tensor tiled = run(test::call("tile", {x}, {{"reps", to_shape({2, 1, 2})}}));
  EXPECT_THAT(tiled.shape(), ElementsAre(2, 2, 4));
  EXPECT_THAT(numbers(tiled), ElementsAre(1, 2, 1, 2, 3, 4, 3, 4, 1, 2, 1, 2, 3, 4, 3, 4));
  EXPECT_EQ(run(test::call("tile", {x}, {{"reps", to_shape({0})}})).size(), 0);
}

TEST(Transform, BroadcastAndCollapse) {
  register_operators();
  const auto x = test::constant<float>({1, 2}, {2, 1});
  const Tensor wide = run(broadcast_to(x, to_shape({2, 2, 3})));
  EXPECT_THAT(numbers(wide), ElementsAre(1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2));
  EXPECT_THAT(numbers(run(test::call("collapse_sum_like", {ir::constant(wide), x}))), ElementsAre(6, 12));
  EXPECT_THAT(numbers(run(test::call("collapse_sum_to", {ir::constant(wide)}, {{"shape", to_shape({1, 3})}}))),
              ElementsAre(6, 6, 6));
  EXPECT_THROW(broadcast_to(x, to_shape({3, 3})), Error);
  EXPECT_THROW(broadcast_to(x, to_shape({2})), Error);
}

}  // namespace
}  // namespace treadle::op
