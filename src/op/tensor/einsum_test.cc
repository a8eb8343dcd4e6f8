// SPDX-License-Identifier: Apache-2.0
#include "op/tensor/einsum.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "op/op_test.h"

namespace treadle::op {
namespace {

using test::numbers;
using test::run;
using testing::ElementsAre;

const std::vector<float> kA{1, 2, 3, 4}, kB{5, 6, 7, 8};

TEST(Einsum, ProductsSumsDiagonals) {
  register_operators();
  const auto a = test::constant(kA, {2, 2}), b = test::constant(kB, {2, 2});
  EXPECT_THAT(numbers(run(einsum({a, b}, "ij,jk->ik"))), ElementsAre(19, 22, 43, 50));
  EXPECT_THAT(numbers(run(einsum({a, b}, "ij, jk"))), ElementsAre(19, 22, 43, 50));
  EXPECT_THAT(numbers(run(einsum({a, b}, "ij,ij->"))), ElementsAre(70));
  EXPECT_THAT(numbers(run(einsum({a}, "ij->ji"))), ElementsAre(1, 3, 2, 4));
  EXPECT_THAT(numbers(run(einsum({a}, "ba"))), ElementsAre(1, 3, 2, 4));
  EXPECT_THAT(numbers(run(einsum({a}, "ii->i"))), ElementsAre(1, 4));
  EXPECT_THAT(numbers(run(einsum({a}, "ii"))), ElementsAre(5));
  EXPECT_THAT(numbers(run(einsum({a, b, a}, "ij,jk,kl->il"))), ElementsAre(85, 126, 193, 286));
}

TEST(Einsum, Ellipsis) {
  register_operators();
  const auto batch = test::constant<float>({1, 2, 3, 4, 5, 6, 7, 8}, {2, 2, 2}), b = test::constant(kB, {2, 2});
  EXPECT_THAT(numbers(run(einsum({batch, b}, "...ij,jk->...ik"))), ElementsAre(19, 22, 43, 50, 67, 78, 91, 106));
  EXPECT_THAT(numbers(run(einsum({batch, test::constant(kB, {1, 2, 2})}, "...ij,...jk"))),
              ElementsAre(19, 22, 43, 50, 67, 78, 91, 106));
}

TEST(Einsum, RefusesWhatDoesNotFit) {
  register_operators();
  const auto a = test::constant(kA, {2, 2});
  for (const char* equation : {"ij,jk->ik", "ijk->i", "ij->k", "ij->ii", "i->i", "i?->i", "......->"})
    EXPECT_THROW(einsum({a}, equation), Error) << equation;
  EXPECT_THROW(einsum({a, test::constant<float>({1, 2, 3})}, "ij,j->i"), Error);
}

TEST(Einsum, SymbolicExtents) {
  const Dim n = Dim::symbol("N");
  EXPECT_THAT(numbers(run({{tensor_type({n, 2}, dtype::float32_), Tensor::from(kA, {2, 2})}},
                          [](const auto& x) { return einsum({x[0], x[0]}, "ni,mi->nm"); })),
              ElementsAre(5, 11, 11, 25));
}

}  // namespace
}  // namespace treadle::op
