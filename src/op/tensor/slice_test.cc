// SPDX-License-Identifier: Apache-2.0
#include "op/tensor/slice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "op/op_test.h"
#include "op/tensor/join.h"

namespace treadle::op {
namespace {

using test::counting;
using test::numbers;
using test::run;
using testing::ElementsAre;

// NumPy's rule, element by element: which positions of 0 … n-1 does begin:end:stride name?
std::vector<double> named_positions(int64_t n, int64_t begin, int64_t end, int64_t stride) {
  if (begin < 0) begin += n;
  if (end < 0) end += n;
  std::vector<double> result;
  if (stride > 0) {
    for (int64_t i = std::max<int64_t>(begin, 0); i < std::min(end, n); i += stride)
      result.push_back(static_cast<double>(i));
  } else {
    for (int64_t i = std::min(begin, n - 1); i > std::max<int64_t>(end, -1); i += stride)
      result.push_back(static_cast<double>(i));
  }
  return result;
}

TEST(Slice, EveryBeginEndStrideOfAShortAxis) {
  register_operators();
  for (int64_t n : {0, 1, 5}) {
    for (int64_t begin = -7; begin <= 7; ++begin) {
      for (int64_t end = -7; end <= 7; ++end) {
        for (int64_t stride : {-3, -1, 1, 2}) {
          const SliceRange range = slice_range(n, begin, end, stride);
          std::vector<double> positions;
          for (int64_t i = 0; i < range.length.value(); ++i)
            positions.push_back(static_cast<double>(range.start.value() + i * stride));
          ASSERT_EQ(positions, named_positions(n, begin, end, stride))
              << n << " " << begin << ":" << end << ":" << stride;
          // With a symbolic extent the same comes out when it runs.
          const SliceRange symbolic = slice_range(Dim::symbol("N"), begin, end, stride);
          const std::map<std::string, int64_t> value{{"N", n}};
          ASSERT_EQ(symbolic.length.evaluate(value), range.length.value())
              << n << " " << begin << ":" << end << ":" << stride;
          if (range.length.value() > 0) {
            ASSERT_EQ(symbolic.start.evaluate(value), range.start.value())
                << n << " " << begin << ":" << end << ":" << stride;
          }
        }
      }
    }
  }
}

TEST(Slice, FarEndsMeanToTheEnd) {
  const int64_t far = std::numeric_limits<int64_t>::max(), low = std::numeric_limits<int64_t>::min();
  const Dim n = Dim::symbol("N");
  EXPECT_EQ(to_string(slice_range(n, 0, far, 1).length), "N");
  EXPECT_EQ(to_string(slice_range(n, 0, n, 1).length), "N");
  EXPECT_EQ(to_string(slice_range(n, n - Dim(1), n, 1).length), "min(1, N)");
  EXPECT_EQ(to_string(slice_range(n, 1, n, 1).length), "max(0, N - 1)");
  EXPECT_EQ(to_string(slice_range(512, 0, n, 1).length), "min(512, N)");
  EXPECT_EQ(slice_range(5, 0, far, 1).length.value(), 5);
  EXPECT_EQ(slice_range(5, -1, low, -1).length.value(), 5);
  EXPECT_EQ(slice_range(n, -1, low, -1).length.evaluate({{"N", 5}}), 5);
}

TEST(Slice, AxesStridesAndSizes) {
  register_operators();
  EXPECT_THAT(numbers(run(strided_slice(counting({3, 4}), {1, 3}, {0, 0}, ir::Ints{-1, -2}))), ElementsAre(7, 5));
  EXPECT_THAT(numbers(run(strided_slice(counting({3, 4}), {1}, {3}, std::nullopt, ir::Ints{-1}))),
              ElementsAre(1, 2, 5, 6, 9, 10));
  EXPECT_THAT(numbers(run(test::call(
                  "strided_slice", {counting({3, 4})},
                  {{"begin", to_shape({1, 1})}, {"end", to_shape({-1, 2})}, {"slice_mode", std::string("size")}}))),
              ElementsAre(5, 6, 9, 10));
  EXPECT_THROW(strided_slice(counting({3}), {0}, {3}, ir::Ints{0}), Error);
  EXPECT_THROW(strided_slice(counting({3}), {0, 0}, {3, 3}), Error);
}

TEST(Slice, SymbolicExtent) {
  const Type type = tensor_type({Dim::symbol("N"), 2}, dtype::float32_);
  const Tensor value = counting({3, 2}).as<ir::Constant>()->value;
  const auto tail = [](const auto& x) { return strided_slice(x[0], {-2}, {2147483647}); };
  EXPECT_THAT(numbers(run({{type, value}}, tail)), ElementsAre(2, 3, 4, 5));
  const auto backwards = [](const auto& x) { return strided_slice(x[0], {-1}, {-2147483647}, ir::Ints{-2}); };
  EXPECT_THAT(numbers(run({{type, value}}, backwards)), ElementsAre(4, 5, 0, 1));
}

TEST(Slice, LikeSetWindow) {
  const auto x = counting({3, 4});
  EXPECT_THAT(numbers(run(test::call("slice_like", {x, counting({2, 1})}))), ElementsAre(0, 4));
  EXPECT_THAT(numbers(run(test::call("slice_like", {x, counting({2, 1})}, {{"axes", ir::Ints{0}}}))),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THROW(test::call("slice_like", {x, counting({4, 1})}), Error);
  const auto set =
      test::call("strided_set", {counting({5}), test::constant<float>({-1, -2}), test::constant<int32_t>({3}),
                                 test::constant<int32_t>({0}), test::constant<int32_t>({-2})});
  EXPECT_THAT(numbers(run(set)), ElementsAre(0, -2, 2, -1, 4));
  const auto window = test::call("sliding_window", {counting({5})},
                                 {{"axis", int64_t{0}}, {"window_shape", ir::Ints{3}}, {"strides", ir::Ints{2}}});
  EXPECT_THAT(numbers(run(window)), ElementsAre(0, 1, 2, 2, 3, 4));
}

TEST(Slice, BlockedLayoutOfWholeBlocks) {
  register_operators();
  const auto x = ir::var("x", tensor_type({1, 64, 8, 8}, dtype::float32_));
  const auto ask = [&](const ir::Expr& e) {
    return e.as<ir::Call>()->op()->layout({*e.as<ir::Call>(), {Layout("NCHW16c")}});
  };
  const ir::LayoutAnswer whole = ask(strided_slice(x, {16, 1}, {48, 8}, ir::Ints{1, 2}, ir::Ints{1, 2}));
  const auto& attrs = static_cast<const StridedSliceAttrs&>(*whole.attrs);
  EXPECT_EQ(whole.outputs[0].text(), "NCHW16c");
  EXPECT_EQ(to_string(attrs.begin), "(1, 1)");
  EXPECT_EQ(to_string(attrs.end), "(3, 8)");
  EXPECT_FALSE(ask(strided_slice(x, {8}, {48}, std::nullopt, ir::Ints{1})).outputs[0].defined());
}

// ---- join ----

TEST(Join, Concatenate) {
  register_operators();
  const Tensor result = run(concatenate({counting({2, 1}), counting({2, 0}), counting({2, 2})}, -1));
  EXPECT_THAT(result.shape(), ElementsAre(2, 3));
  EXPECT_THAT(numbers(result), ElementsAre(0, 0, 1, 1, 2, 3));
  EXPECT_THROW(concatenate({counting({2, 1}), counting({3, 1})}, 1), Error);
  EXPECT_THROW(concatenate({counting({2}), test::constant<double>({1})}, 0), Error);
  EXPECT_THROW(concatenate({}, 0), Error);
}

TEST(Join, ConcatenateOfSymbolicExtents) {
  const Type a = tensor_type({Dim::symbol("N")}, dtype::float32_), b = tensor_type({Dim::symbol("M")}, dtype::float32_);
  EXPECT_THAT(numbers(run({{a, Tensor::from<float>({1, 2})}, {b, Tensor::from<float>({3})}},
                          [](const auto& x) { return concatenate({x[0], x[1]}, 0); })),
              ElementsAre(1, 2, 3));
}

TEST(Join, StackAndSplit) {
  register_operators();
  EXPECT_THAT(numbers(run(stack({counting({2}), counting({2})}, 1))), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(run(stack({counting({2}), counting({2})}, -1)).shape(), ElementsAre(2, 2));
  const auto equal_parts = test::run_all(split(counting({2, 4}), int64_t{2}, 1));
  ASSERT_EQ(equal_parts.size(), 2);
  EXPECT_THAT(numbers(equal_parts[1]), ElementsAre(2, 3, 6, 7));
  const auto parts = test::run_all(split(counting({4}), ir::Ints{1, 1}, 0));
  ASSERT_EQ(parts.size(), 3);
  EXPECT_EQ(parts[1].size(), 0);
  EXPECT_THAT(numbers(parts[2]), ElementsAre(1, 2, 3));
  EXPECT_THROW(split(counting({4}), int64_t{3}, 0), Error);
  EXPECT_THROW(split(counting({4}), ir::Ints{3, 1}, 0), Error);
  EXPECT_THROW(split(counting({4}), ir::Ints{5}, 0), Error);
}

}  // namespace
}  // namespace treadle::op
