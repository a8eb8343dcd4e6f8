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

TEST(TupleType, LeavesStandInOrder) {
  const Type a = tensor_type({1}, dtype::float32_), b = tensor_type({2}, dtype::int8_), empty = tuple_type({});
  const Type function = func_type({a}, b);
  const Type type = tuple_type({empty, tuple_type({a, tuple_type({b, function})}), nullptr, a});
  const std::vector<const TensorType*> leaves = {as_tensor(a), as_tensor(b), nullptr, nullptr, as_tensor(a)};
  EXPECT_EQ(flatten_tuple_type(type), leaves);
  EXPECT_EQ(flatten_tuple_type(a), std::vector<const TensorType*>{as_tensor(a)});
  EXPECT_EQ(leaf_offset(*as_tuple(type), 0), 0);
  EXPECT_EQ(leaf_offset(*as_tuple(type), 1), 0);
  EXPECT_EQ(leaf_offset(*as_tuple(type), 2), 3);
  EXPECT_EQ(leaf_offset(*as_tuple(type), 3), 4);
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
