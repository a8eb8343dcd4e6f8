// SPDX-License-Identifier: Apache-2.0
// Gathering, creation and masks.
#include "op/tensor/gather.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "op/op_test.h"
#include "op/tensor/creation.h"
#include "op/tensor/mask.h"

namespace treadle::op {
namespace {

using test::counting;
using test::numbers;
using test::run;
using testing::ElementsAre;

TEST(Gather, TakeModes) {
  register_operators();
  const auto indices = test::constant<int32_t>({-1, 1, 9});
  EXPECT_THAT(numbers(run(take(counting({4}), indices, 0))), ElementsAre(0, 1, 3));
  EXPECT_THAT(numbers(run(take(counting({4}), indices, 0, "wrap"))), ElementsAre(3, 1, 1));
  EXPECT_THAT(numbers(run(take(counting({2, 4}), indices, std::nullopt))), ElementsAre(0, 1, 7));
  EXPECT_THAT(numbers(run(take(counting({2, 4}), test::constant<int64_t>({2, 0}), 1))), ElementsAre(2, 0, 6, 4));
  const Tensor scalar = run(take(counting({2, 4}), ir::constant(Tensor::scalar(dtype::int32_, 1)), 0));
  EXPECT_THAT(scalar.shape(), ElementsAre(4));
  const Tensor batched = run(take(counting({2, 3, 4}), test::constant<int32_t>({0, 3, 1, 1}, {2, 2}), 2, "clip", 1));
  EXPECT_THAT(batched.shape(), ElementsAre(2, 3, 2));
  EXPECT_THAT(numbers(batched), ElementsAre(0, 3, 4, 7, 8, 11, 13, 13, 17, 17, 21, 21));
  EXPECT_THROW(take(counting({4}), test::constant<float>({1}), 0), Error);
  EXPECT_THROW(take(test::constant<float>({}, {0}), indices, 0), Error);
}

TEST(Gather, GatherAndGatherNd) {
  register_operators();
  EXPECT_THAT(numbers(run(gather(counting({2, 2}), test::constant<int32_t>({0, 0, 1, 0}, {2, 2}), 1))),
              ElementsAre(0, 0, 3, 2));
  EXPECT_THAT(numbers(run(gather_nd(counting({3, 4}), test::constant<int32_t>({0, 2, 1, 3}, {2, 2})))),
              ElementsAre(1, 11));
  EXPECT_THAT(numbers(run(gather_nd(counting({3, 2}), test::constant<int32_t>({2, 0}, {1, 2})))),
              ElementsAre(4, 5, 0, 1));
  EXPECT_THAT(numbers(run(gather_nd(counting({2, 3}), test::constant<int32_t>({2, 0}, {1, 2}), 1))), ElementsAre(2, 3));
  EXPECT_THROW(gather_nd(counting({3}), test::constant<int32_t>({0, 0}, {2, 1})), Error);
}

TEST(Gather, IndexArraysUnravelInvert) {
  const auto picked = test::call(
      "adv_index",
      {ir::tuple({counting({3, 4}), test::constant<int32_t>({0, 2}, {2, 1}), test::constant<int32_t>({1, -1})})});
  EXPECT_THAT(numbers(run(picked)), ElementsAre(1, 3, 9, 11));
  EXPECT_THAT(
      numbers(run(test::call("unravel_index", {test::constant<int32_t>({7, 22}), test::constant<int32_t>({4, 6})}))),
      ElementsAre(1, 3, 1, 4));
  EXPECT_THAT(numbers(run(test::call("invert_permutation", {test::constant<int32_t>({2, 0, 3, 1})}))),
              ElementsAre(1, 3, 0, 2));
}

TEST(Creation, FillAndShapes) {
  register_operators();
  EXPECT_THAT(numbers(run(zeros(to_shape({2}), dtype::int32_))), ElementsAre(0, 0));
  EXPECT_THAT(numbers(run(ones(to_shape({2}), dtype::bool_))), ElementsAre(1, 1));
  EXPECT_THAT(numbers(run(full(ir::constant(Tensor::scalar(dtype::float32_, 2.5)), to_shape({2, 1})))),
              ElementsAre(2.5, 2.5));
  EXPECT_THAT(numbers(run(test::call("full_like", {counting({3}), ir::constant(Tensor::scalar(dtype::float32_, 7))}))),
              ElementsAre(7, 7, 7));
  EXPECT_THAT(numbers(run(test::call("ones_like", {counting({2})}))), ElementsAre(1, 1));
  EXPECT_THAT(numbers(run(shape_of(counting({2, 3, 4})))), ElementsAre(2, 3, 4));
  EXPECT_EQ(run(shape_of(ir::constant(Tensor::scalar(dtype::float32_, 1)))).size(), 0);
  EXPECT_EQ(run(test::call("ndarray_size", {counting({2, 3})})).int_at(0), 6);
  EXPECT_THROW(zeros({-1}, dtype::float32_), Error);
}

TEST(Creation, Arange) {
  register_operators();
  EXPECT_THAT(numbers(run(arange(1, 2, 0.25, dtype::float32_))), ElementsAre(1, 1.25, 1.5, 1.75));
  EXPECT_THAT(numbers(run(arange(5.0, 0.0, -2.0, dtype::int64_))), ElementsAre(5, 3, 1));
  EXPECT_EQ(run(arange(1.0, 1.0, 1.0, dtype::int32_)).size(), 0);
  EXPECT_THROW(arange(0.0, 1.0, 0.0, dtype::float32_), Error);
  const Type type = tensor_type({Dim::symbol("N")}, dtype::float32_);
  EXPECT_THAT(numbers(run({{type, Tensor::from<float>({0, 0, 0})}},
                          [](const auto&) { return arange(Dim(1), Dim::symbol("N") + Dim(1), 1, dtype::int32_); })),
              ElementsAre(1, 2, 3));
}

TEST(Creation, MeshgridAndOneHot) {
  const auto grids = test::run_all(
      test::call("meshgrid", {ir::tuple({counting({2}), counting({3})})}, {{"indexing", std::string("xy")}}));
  EXPECT_THAT(grids[0].shape(), ElementsAre(3, 2));
  EXPECT_THAT(numbers(grids[0]), ElementsAre(0, 1, 0, 1, 0, 1));
  EXPECT_THAT(numbers(grids[1]), ElementsAre(0, 0, 1, 1, 2, 2));
  const auto on = ir::constant(Tensor::scalar(dtype::float32_, 2)),
             off = ir::constant(Tensor::scalar(dtype::float32_, -1));
  EXPECT_THAT(numbers(run(one_hot(test::constant<int32_t>({1, 5}), on, off, 2, -1, dtype::float32_))),
              ElementsAre(-1, 2, -1, -1));
  EXPECT_THAT(numbers(run(one_hot(test::constant<int32_t>({1, 0}), on, off, 2, 0, dtype::int8_))),
              ElementsAre(-1, 2, 2, -1));
}

TEST(Mask, Sequences) {
  const auto lengths = test::constant<int32_t>({1, 2});
  EXPECT_THAT(numbers(run(test::call("sequence_mask", {counting({3, 2}), lengths}, {{"mask_value", -1.0}}))),
              ElementsAre(0, 1, -1, 3, -1, -1));
  EXPECT_THAT(numbers(run(test::call("sequence_mask", {counting({2, 3}), lengths}, {{"axis", int64_t{1}}}))),
              ElementsAre(0, 0, 0, 3, 4, 0));
  EXPECT_THAT(numbers(run(test::call("reverse_sequence", {counting({2, 3}), test::constant<int32_t>({2, 9})}))),
              ElementsAre(1, 0, 2, 5, 4, 3));
  EXPECT_THROW(test::call("sequence_mask", {counting({3, 3}), lengths}), Error);
}

TEST(Mask, DiagonalsAndTriangles) {
  const auto zero = ir::constant(Tensor::scalar(dtype::int64_, 0));
  register_operators();
  EXPECT_THAT(numbers(run(trilu(test::constant<float>({1, 2, 3, 4}, {2, 2}), zero, true))), ElementsAre(1, 2, 0, 4));
  EXPECT_THAT(numbers(run(trilu(test::constant<float>({1, 2, 3, 4}, {2, 2}), zero, false))), ElementsAre(1, 0, 3, 4));
  EXPECT_THAT(numbers(run(test::call("matrix_set_diag", {test::constant<float>({7, 7, 7, 7, 7, 7}, {2, 3}),
                                                         test::constant<float>({1, 2})}))),
              ElementsAre(1, 7, 7, 7, 2, 7));
  // TensorFlow's example: diagonals 1, 0, -1 with alignment RIGHT_LEFT.
  const auto diagonals = test::constant<float>({0, 9, 1, 6, 5, 8, 4, 5, 0}, {3, 3});
  const auto banded =
      test::call("matrix_set_diag", {test::constant<float>(std::vector<float>(9, 7), {3, 3}), diagonals},
                 {{"k1", int64_t{-1}}, {"k2", int64_t{1}}});
  EXPECT_THAT(numbers(run(banded)), ElementsAre(6, 9, 7, 4, 5, 1, 7, 5, 8));
}

}  // namespace
}  // namespace treadle::op
