// SPDX-License-Identifier: Apache-2.0
#include "type/assume.h"

#include <gtest/gtest.h>

namespace treadle {
namespace {

using Kind = Assumption::Kind;

// What assume says, and how many assumptions the innermost scope kept.
std::pair<bool, size_t> of(Kind kind, const Dim& a, const Dim& b) {
  AssumptionScope scope;
  const bool possible = assume(kind, a, b);
  return {possible, scope.assumptions().size()};
}

const std::pair<bool, size_t> kProven{true, 0}, kKept{true, 1}, kRefused{false, 0};

TEST(Assume, Equal) {
  const Dim n = Dim::symbol("N"), m = Dim::symbol("M");
  EXPECT_EQ(of(Kind::Equal, 3, 3), kProven);
  EXPECT_EQ(of(Kind::Equal, 2 * n, n + n), kProven);
  EXPECT_EQ(of(Kind::Equal, 3, 4), kRefused);
  EXPECT_EQ(of(Kind::Equal, n, n + 1), kRefused);
  EXPECT_EQ(of(Kind::Equal, n + 4, 3), kRefused);
  EXPECT_EQ(of(Kind::Equal, n, m), kKept);
  EXPECT_EQ(of(Kind::Equal, n, 3), kKept);
}

TEST(Assume, AtMost) {
  const Dim n = Dim::symbol("N");
  EXPECT_EQ(of(Kind::AtMost, 0, n), kProven);
  EXPECT_EQ(of(Kind::AtMost, n, n + 1), kProven);
  EXPECT_EQ(of(Kind::AtMost, n + 1, 0), kRefused);
  EXPECT_EQ(of(Kind::AtMost, 1, n), kKept);
  EXPECT_EQ(of(Kind::AtMost, 0, n - 2), kKept);
}

TEST(Assume, Broadcast) {
  const Dim n = Dim::symbol("N"), m = Dim::symbol("M");
  EXPECT_EQ(of(Kind::Broadcast, 1, n + 1), kProven);
  EXPECT_EQ(of(Kind::Broadcast, 2, 3), kRefused);
  EXPECT_EQ(of(Kind::Broadcast, 3, n + 4), kRefused);
  EXPECT_EQ(of(Kind::Broadcast, 3, n), kKept);
  EXPECT_EQ(of(Kind::Broadcast, n, m), kKept);
  EXPECT_EQ(of(Kind::BroadcastTo, n, 3), kKept);
  EXPECT_EQ(of(Kind::BroadcastTo, 1, n), kProven);
  EXPECT_EQ(of(Kind::BroadcastTo, 3, 1), kRefused);
}

TEST(Assume, Divides) {
  const Dim n = Dim::symbol("N");
  AssumptionScope outer;
  EXPECT_TRUE(assume_divides(3, 6));
  EXPECT_FALSE(assume_divides(4, 6));
  EXPECT_TRUE(assume_divides(2, 2 * n));
  {
    AssumptionScope inner;
    EXPECT_TRUE(assume_divides(2, n));
    EXPECT_EQ(inner.assumptions().size(), 1u);
  }
  EXPECT_TRUE(outer.assumptions().empty());
}

}  // namespace
}  // namespace treadle
