// SPDX-License-Identifier: Apache-2.0
#include "type/dim.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace treadle {
namespace {

const Dim H = Dim::symbol("H"), W = Dim::symbol("W"), N = Dim::symbol("N");

TEST(Dim, EqualExpressionsHaveOneForm) {
  EXPECT_EQ(to_string(H + H + 1 - 1), "2*H");
  EXPECT_TRUE((H + 1) * (W - 2) == H * W - Dim(2) * H + W - 2);
  EXPECT_TRUE(H - H == Dim(0));
  EXPECT_TRUE((H - H).is_const());
  EXPECT_FALSE(H == W);
}

TEST(Dim, ConvolutionExtents) {
  auto out = [](Dim in, Dim pad, Dim kernel, Dim stride) { return floordiv(in + Dim(2) * pad - kernel, stride) + 1; };
  EXPECT_TRUE(out(H, 1, 3, 1) == H);
  EXPECT_TRUE(out(H, 3, 7, 2) == floordiv(H - 1, 2) + 1);
  EXPECT_TRUE(floordiv(floordiv(H + 1, 2) + 1, 2) == floordiv(H + 3, 4));
  EXPECT_TRUE(out(Dim(32) * H, 0, 2, 2) == Dim(16) * H);
  EXPECT_EQ(out(224, 3, 7, 2).value(), 112);
}

TEST(Dim, DivisionAndRemainder) {
  EXPECT_TRUE(floordiv(Dim(12) * N * W, N * W) == Dim(12));
  EXPECT_TRUE(floordiv((H + 1) * (W + 2), W + 2) == H + 1);
  EXPECT_TRUE(mod(Dim(4) * N + 3, 4) == Dim(3));
  EXPECT_TRUE(floordiv(mod(N, 4), 4) == Dim(0)) << to_string(floordiv(mod(N, 4), 4));
  EXPECT_EQ(floordiv(Dim(-7), 2).value(), -4);
  EXPECT_EQ(mod(Dim(-7), 2).value(), 1);
  EXPECT_FALSE(exact_divide(H + 1, 2).has_value());
  EXPECT_THROW(floordiv(H, 0), Error);
}

TEST(Dim, MinimumAndMaximum) {
  EXPECT_TRUE(max(N, 0) == N);
  EXPECT_TRUE(min(N + 1, N) == N);
  EXPECT_TRUE(min(H, W) == min(W, H));
  EXPECT_TRUE(max(min(H, 512), H) == H);
  EXPECT_TRUE(min(H, max(W, H)) == H);
  EXPECT_TRUE(max(W, max(W, H)) == max(W, H));
  EXPECT_EQ(to_string(max(H, W)), "max(H, W)");
}

TEST(Dim, TextRoundTrip) {
  for (const char* text :
       {"0", "-3", "N", "2*H - 1", "floordiv(H + 1, 2)", "H*W + 3*N", "min(H, W)", "floordiv(N*W, H)"}) {
    EXPECT_EQ(to_string(parse_dim(text)), text);
  }
  EXPECT_TRUE(parse_dim("(H + 2*1 - 3)/1 + 1") == H);
  for (const char* text : {"", "2*", "f(1,2)", "(H", "99999999999999999999", "H H", "1/0"})
    EXPECT_THROW(parse_dim(text), Error) << text;
  EXPECT_THROW(parse_dim(std::string(100000, '(')), Error);
}

TEST(Dim, Evaluates) {
  EXPECT_EQ(floordiv(H * W + 5, 3).evaluate({{"H", 4}, {"W", 5}}), 8);
  EXPECT_THROW(H.evaluate({}), Error);
}

TEST(Dim, OverflowIsAnError) { EXPECT_THROW(Dim(INT64_MAX) * 2, Error); }

}  // namespace
}  // namespace treadle
