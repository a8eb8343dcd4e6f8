// SPDX-License-Identifier: Apache-2.0
// Limits of types: tuples that share their fields, and extents that grow.
#include "type/type.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace treadle {
namespace {

TEST(TupleType, SharedFieldsAreCountedEachTime) {
  Type type = tensor_type({}, dtype::float32_);
  for (int i = 0; i < 16; ++i) type = tuple_type({type, type});
  EXPECT_EQ(as_tuple(type)->leaves, TupleType::kMaxLeaves);
  EXPECT_THROW(tuple_type({type, type}), Error);
}

TEST(TupleType, NestingHasALimit) {
  Type type = tensor_type({}, dtype::float32_);
  for (int i = 0; i < TupleType::kMaxDepth; ++i) type = tuple_type({type});
  EXPECT_EQ(as_tuple(type)->depth, TupleType::kMaxDepth);
  EXPECT_THROW(tuple_type({type}), Error);
}

TEST(Dim, PowersHaveALimit) {
  Dim power = Dim::symbol("N");
  for (int i = 0; i < 10; ++i) power = power * power;  // 1024 factors
  EXPECT_THROW(power * power, Error);
}

TEST(Dim, TextHasALimit) {
  Dim dim = Dim::symbol(std::string(100, 'N'));
  EXPECT_THROW(
      {
        for (int i = 0; i < 200; ++i) dim = max(dim, floordiv(dim, Dim(i + 2)) + Dim::symbol(std::string(100, 'M')));
      },
      Error);
}

}  // namespace
}  // namespace treadle
