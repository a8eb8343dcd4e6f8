// SPDX-License-Identifier: Apache-2.0
// Values whose size only running the program tells: outputs without a bound, branches and iterations that differ.
#include "driver/testing.h"

namespace treadle {
namespace {

using test::boolean;
using test::expect_values;
using test::scalar;
using test::tensor;

const Tensor kEmpty = Tensor::zeros(dtype::float32_, {0, 2});

TEST(Dynamic, StackedOutputOfTripsKnownWhileRunning) {
  const std::string text =
      "def @main(%n: int64, %x: Tensor[(2), float32]) {\n"
      "  loop(trip=%n, body=fn (%i: int64, %a: Tensor[(2), float32]) { (add(%a, %x), %a) }, scanned=1)(%x)\n}";
  const Tensor x = tensor<float>({1, 2});
  expect_values(text, {{{scalar(2), x}, {tensor<float>({3, 6}), tensor<float>({1, 2, 2, 4}, {2, 2})}},
                       {{scalar(0), x}, {x, kEmpty}},
                       {{scalar(1), x}, {tensor<float>({2, 4}), tensor<float>({1, 2}, {1, 2})}}});
}

// Nothing bounds the number of iterations: the stack grows. Given twice, and used on.
TEST(Dynamic, StackGrowsUntilTheConditionFails) {
  const std::string text =
      "def @main(%limit: float32, %x: Tensor[(2), float32]) {\n"
      "  %0 = loop(cond=fn (%i: int64, %a: Tensor[(2), float32]) { less(sum(%a), %limit) },\n"
      "            body=fn (%i: int64, %a: Tensor[(2), float32]) { (add(%a, %x), %a) }, scanned=1)(%x);\n"
      "  (%0.1, %0.1, multiply(%0.1, 2f), sum(%0.1, axis=[0]))\n}";
  const Tensor x = tensor<float>({1, 2});
  const Tensor rows = tensor<float>({1, 2, 2, 4, 3, 6}, {3, 2}), twice = tensor<float>({2, 4, 4, 8, 6, 12}, {3, 2});
  expect_values(text, {{{tensor<float>({10}, {}), x}, {rows, rows, twice, tensor<float>({6, 12})}},
                       {{tensor<float>({0}, {}), x}, {kEmpty, kEmpty, kEmpty, tensor<float>({0, 0})}}});
}

TEST(Dynamic, CarriedValueGrows) {
  const std::string text =
      "def @main(%n: int64, %x: Tensor[(2), float32]) {\n"
      "  loop(trip=%n, body=fn (%i: int64, %a: Tensor[(?), float32], %b: Tensor[(?), float32]) {\n"
      "    (concatenate((%a, %x)), %a) }, scanned=0)(%x, %x)\n}";
  const Tensor x = tensor<float>({1, 2});
  expect_values(text, {{{scalar(0), x}, {x, x}},
                       {{scalar(1), x}, {tensor<float>({1, 2, 1, 2}), x}},
                       {{scalar(2), x}, {tensor<float>({1, 2, 1, 2, 1, 2}), tensor<float>({1, 2, 1, 2})}}});
}

TEST(Dynamic, CarriedValueShrinksWhileTheConditionSeesIt) {
  const std::string text =
      "def @main(%limit: float32, %x: Tensor[(N), float32]) {\n"
      "  loop(cond=fn (%i: int64, %a: Tensor[(?), float32]) { greater(sum(%a), %limit) },\n"
      "       body=fn (%i: int64, %a: Tensor[(?), float32]) {\n"
      "         (strided_slice(%a, begin=[1], end=[1000], strides=[1], axes=[0]),) }, scanned=0)(%x)\n}";
  expect_values(text, {{{tensor<float>({5}, {}), tensor<float>({4, 3, 2, 1})}, {tensor<float>({2, 1})}},
                       {{tensor<float>({50}, {}), tensor<float>({4, 3})}, {tensor<float>({4, 3})}}});
}

TEST(Dynamic, BranchesOfDifferentExtents) {
  const std::string text =
      "def @main(%c: bool, %x: Tensor[(4), float32]) {\n"
      "  %0 = if (%c) { %x } else { concatenate((%x, %x)) };\n"
      "  (%0, sum(%0), add(%0, 1f))\n}";
  const Tensor x = tensor<float>({1, 2, 3, 4}), y = tensor<float>({1, 2, 3, 4, 1, 2, 3, 4});
  expect_values(text, {{{boolean(true), x}, {x, tensor<float>({10}, {}), tensor<float>({2, 3, 4, 5})}},
                       {{boolean(false), x}, {y, tensor<float>({20}, {}), tensor<float>({2, 3, 4, 5, 2, 3, 4, 5})}}});
}

TEST(Dynamic, BranchesWhoseExtentsDependOnData) {
  const std::string text =
      "def @main(%c: bool, %x: Tensor[(4), float32]) {\n"
      "  if (%c) { argwhere(greater(%x, 0f)) } else { argwhere(less(%x, 0f)) }\n}";
  const Tensor x = tensor<float>({1, -2, 3, 4});
  expect_values(text, {{{boolean(true), x}, {tensor<int32_t>({0, 2, 3}, {3, 1})}},
                       {{boolean(false), x}, {tensor<int32_t>({1}, {1, 1})}}});
}

// A function whose result's extent depends on data, called twice: two extents.
TEST(Dynamic, FunctionsCalledTwice) {
  const std::string text =
      "def @f(%x: Tensor[(4), float32]) { cumsum(reshape(argwhere(greater(%x, 0f)), newshape=[-1]), axis=0) }\n"
      "def @main(%x: Tensor[(4), float32], %y: Tensor[(4), float32]) { (@f(%x), @f(%y), concatenate((@f(%x), @f(%y)))) "
      "}";
  const Tensor x = tensor<float>({1, -2, 3, 4}), y = tensor<float>({-1, -1, -1, 1});
  expect_values(text, {{{x, y}, {tensor<int32_t>({0, 2, 5}), tensor<int32_t>({3}), tensor<int32_t>({0, 2, 5, 3})}}});
}

// One function for extents of different values: what is checked for one call is checked for the next, too.
TEST(Dynamic, ChecksOfEachCall) {
  const std::string text =
      "def @main(%x: Tensor[(4), float32], %y: Tensor[(4), float32], %z: Tensor[(N), float32]) {\n"
      "  let %f = fn (%a: Tensor[(4), float32]) { cast(reshape(argwhere(greater(%a, 0f)), newshape=[-1]), "
      "dtype=\"float32\") };\n"
      "  (add(%f(%x), %z), add(%f(%y), %z))\n}";
  const Tensor two = tensor<float>({1, -2, 3, -4}), three = tensor<float>({1, 2, 3, -4}), z = tensor<float>({10, 20});
  expect_values(text, {{{two, two, z}, {tensor<float>({10, 22}), tensor<float>({10, 22})}}});
  Session session(build(test::module_of(text), test::options_of(3)).executable());
  EXPECT_THROW(session.run({two, three, z}), Error);
  EXPECT_THROW(session.run({three, two, z}), Error);
}

// A branch inside a loop, whose result the next iteration takes.
TEST(Dynamic, BranchInsideALoop) {
  const std::string text =
      "def @main(%n: int64, %x: Tensor[(1), float32]) {\n"
      "  loop(trip=%n, body=fn (%i: int64, %a: Tensor[(?), float32]) {\n"
      "    (if (less(sum(%a), 3f)) { concatenate((%a, %a)) } else { add(%a, %a) },) }, scanned=0)(%x)\n}";
  const Tensor x = tensor<float>({1});
  expect_values(text, {{{scalar(0), x}, {x}},
                       {{scalar(2), x}, {tensor<float>({1, 1, 1, 1})}},
                       {{scalar(4), x}, {tensor<float>({4, 4, 4, 4})}}});
}

}  // namespace
}  // namespace treadle
