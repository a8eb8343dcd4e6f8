// SPDX-License-Identifier: Apache-2.0
#include "runtime/extent.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace treadle {
namespace {

const std::vector<std::string> kSymbols = {"H", "Height", "batch-size", "?3"};

int64_t value(std::string_view text, std::vector<int64_t> values = {5, 7, 11, 13}) {
  return Extent::parse(text, kSymbols).evaluate(values);
}

TEST(Extent, ReadsWhatDimPrints) {
  EXPECT_EQ(value("42"), 42);
  EXPECT_EQ(value("2*H - 1"), 9);
  EXPECT_EQ(value("floordiv(H + 1, 4)"), 1);
  EXPECT_EQ(value("-1*H + 3"), -2);
  EXPECT_EQ(value("min(H, Height) + max(H, Height)"), 12);
  EXPECT_EQ(value("H*H*Height"), 175);
  EXPECT_EQ(value("(H + 2) / 2 % 2"), 1);
  EXPECT_EQ(value("-H"), -5);
}

TEST(Extent, RoundsTowardMinusInfinity) {
  EXPECT_EQ(value("floordiv(-7, 2)"), -4);
  EXPECT_EQ(value("mod(-7, 2)"), 1);
  EXPECT_EQ(value("floordiv(7, -2)"), -4);
  EXPECT_EQ(value("mod(H, -1)"), 0);
}

TEST(Extent, TakesTheLongestSymbol) {
  EXPECT_EQ(value("Height"), 7);
  EXPECT_EQ(value("batch-size*2"), 22);
  EXPECT_EQ(value("?3 - 1"), 12);
  EXPECT_THROW(value("Heigh"), Error);
}

TEST(Extent, KnowsConstantsAndSymbols) {
  EXPECT_EQ(Extent::parse("2*3", kSymbols).constant(), 6);
  EXPECT_EQ(Extent::parse("2*H", kSymbols).constant(), std::nullopt);
  EXPECT_EQ(Extent::parse("Height", kSymbols).symbol(), 1u);
  EXPECT_EQ(Extent::parse("H + 1", kSymbols).symbol(), std::nullopt);
  EXPECT_EQ(Extent::parse("H*Height + H", kSymbols).symbols(), (std::vector<size_t>{0, 1}));
}

TEST(Extent, BadTextsAreErrors) {
  for (const char* text : {"", "W", "2*", "(H", "H)", "pow(H, 2)", "min(H)", "2 3"})
    EXPECT_THROW(value(text), Error) << text;
  EXPECT_THROW(value("99999999999999999999"), Error);
  EXPECT_THROW(value(std::string(10000, '(')), Error);
  EXPECT_THROW(value("floordiv(1, H - 5)"), Error);
  EXPECT_THROW(value("H*H*H", {1ll << 40, 0, 0, 0}), Error);
}

}  // namespace
}  // namespace treadle
