// SPDX-License-Identifier: Apache-2.0
// What each construct of the language computes when it is compiled.
#include "driver/testing.h"

namespace treadle {
namespace {

using test::boolean;
using test::expect_refused;
using test::expect_values;
using test::scalar;
using test::tensor;

TEST(Language, LetIsAnEdge) {
  expect_values("def @main(%x: Tensor[(2), float32]) { let %a = add(%x, %x); let %b = multiply(%a, %x); add(%b, %a) }",
                {{{tensor<float>({1, 2})}, {tensor<float>({4, 12})}}});
}

TEST(Language, IfNestsAndCapturesWhatIsOutside) {
  const std::string text =
      "def @main(%c: bool, %d: bool, %x: Tensor[(2), float32]) {\n"
      "  %0 = add(%x, %x);\n"
      "  if (%c) { if (%d) { add(%0, %x) } else { %x } } else { let %y = negative(%0); add(%y, %0) }\n}";
  const Tensor x = tensor<float>({1, 2});
  expect_values(text, {{{boolean(true), boolean(true), x}, {tensor<float>({3, 6})}},
                       {{boolean(true), boolean(false), x}, {x}},
                       {{boolean(false), boolean(true), x}, {tensor<float>({0, 0})}}});
}

TEST(Language, BranchesGiveOuterValuesConstantsAndTuples) {
  const std::string text =
      "def @main(%c: bool, %x: Tensor[(2), float32], %y: Tensor[(2), float32]) {\n"
      "  if (%c) { (%x, (%y, 3f)) } else { (%y, (add(%x, %y), sum(%x))) }\n}";
  const Tensor x = tensor<float>({1, 2}), y = tensor<float>({5, 7});
  expect_values(text, {{{boolean(true), x, y}, {x, y, tensor<float>({3}, {})}},
                       {{boolean(false), x, y}, {y, tensor<float>({6, 9}), tensor<float>({3}, {})}}});
}

// What a branch needs is computed in the branch only, and what both and the code behind need must be there for all.
TEST(Language, ValuesOfBranchesAreNotSeenOutside) {
  const std::string text =
      "def @main(%c: bool, %x: Tensor[(2), float32]) {\n"
      "  %0 = exp(%x);\n"
      "  %1 = if (%c) { negative(%0) } else { %x };\n"
      "  add(%1, %0)\n}";
  const Tensor x = tensor<float>({0, 0});
  expect_values(text, {{{boolean(true), x}, {tensor<float>({0, 0})}}, {{boolean(false), x}, {tensor<float>({1, 1})}}});
}

TEST(Language, TuplesAsParametersAndResults) {
  const std::string text =
      "def @f(%a: Tensor[(2), float32], %b: (Tensor[(2), float32], Tensor[(1), float32])) { (add(%a, %b.0), "
      "multiply(%a, %b.1)) }\n"
      "def @main(%x: Tensor[(2), float32], %t: (Tensor[(2), float32], Tensor[(1), float32])) { let %r = @f(%x, %t); "
      "(%r.1, %r, %t) }";
  const Tensor x = tensor<float>({1, 2}), a = tensor<float>({10, 20}), b = tensor<float>({3});
  const Tensor sum = tensor<float>({11, 22}), product = tensor<float>({3, 6});
  expect_values(text, {{{x, a, b}, {product, sum, product, a, b}}});
}

TEST(Language, OutputsThatAreInputsConstantsAndTwiceTheSame) {
  const std::string text =
      "def @main(%x: Tensor[(2), float32]) { %0 = add(%x, %x); (%x, 3f, %0, %0, %x, 3f, reshape(%0, newshape=[2, 1])) "
      "}";
  const Tensor x = tensor<float>({1, 2}), three = tensor<float>({3}, {}), y = tensor<float>({2, 4});
  expect_values(text, {{{x}, {x, three, y, y, x, three, y.reshaped({2, 1})}}});
}

TEST(Language, NothingAtAll) {
  expect_values("def @main(%x: Tensor[(2), float32]) { () }", {{{tensor<float>({1, 2})}, {}}});
  expect_values("def @main() { 3f }", {{{}, {tensor<float>({3}, {})}}});
  expect_values("def @main(%x: Tensor[(2), float32]) { ((), (%x, ())) }",
                {{{tensor<float>({1, 2})}, {tensor<float>({1, 2})}}});
}

TEST(Language, EmptyTensorsAndScalars) {
  const Tensor empty = Tensor::zeros(dtype::float32_, {0, 3});
  expect_values(
      "def @main(%x: Tensor[(0, 3), float32]) { (exp(%x), sum(%x, axis=[0]), concatenate((%x, %x)), transpose(%x, "
      "axes=[1, 0])) }",
      {{{empty}, {empty, tensor<float>({0, 0, 0}), empty, Tensor::zeros(dtype::float32_, {3, 0})}}});
  expect_values("def @main(%x: float32, %n: int64) { (add(%x, 1f), multiply(%n, %n), cast(%n, dtype=\"float32\")) }",
                {{{tensor<float>({2}, {}), scalar(-3)}, {tensor<float>({3}, {}), scalar(9), tensor<float>({-3}, {})}}});
}

TEST(Language, LoopOfConstantTrips) {
  const std::string text =
      "def @main(%x: Tensor[(2), float32]) {\n"
      "  loop(trip=3i64, body=fn (%i: int64, %a: Tensor[(2), float32]) { (add(%a, %x), multiply(%a, %x)) }, "
      "scanned=1)(%x)\n}";
  expect_values(text, {{{tensor<float>({1, 2})}, {tensor<float>({4, 8}), tensor<float>({1, 4, 2, 8, 3, 12}, {3, 2})}}});
}

TEST(Language, LoopOfTripsKnownWhileRunning) {
  const std::string text =
      "def @main(%n: int64, %x: Tensor[(2), float32]) {\n"
      "  %0 = loop(trip=%n, body=fn (%i: int64, %a: Tensor[(2), float32]) { (add(%a, %x), add(%a, cast(%i, "
      "dtype=\"float32\"))) }, scanned=1)(%x);\n"
      "  (%0.0, sum(%0.1, axis=[0]))\n}";
  const Tensor x = tensor<float>({1, 2});
  expect_values(text, {{{scalar(3), x}, {tensor<float>({4, 8}), tensor<float>({9, 15})}},
                       {{scalar(0), x}, {x, tensor<float>({0, 0})}},
                       {{scalar(-1), x}, {x, tensor<float>({0, 0})}},
                       {{scalar(1), x}, {tensor<float>({2, 4}), x}}});
}

TEST(Language, LoopEndsByItsCondition) {
  const std::string text =
      "def @main(%x: Tensor[(2), float32], %limit: float32) {\n"
      "  loop(trip=100i64, cond=fn (%i: int64, %a: Tensor[(2), float32], %n: int64) { less(sum(%a), %limit) },\n"
      "       body=fn (%i: int64, %a: Tensor[(2), float32], %n: int64) { (add(%a, %x), add(%n, 1i64)) }, "
      "scanned=0)(%x, 0i64)\n}";
  const Tensor x = tensor<float>({1, 2});
  expect_values(text, {{{x, tensor<float>({10}, {})}, {tensor<float>({4, 8}), scalar(3)}},
                       {{x, tensor<float>({0}, {})}, {x, scalar(0)}},
                       {{x, tensor<float>({3.5}, {})}, {tensor<float>({2, 4}), scalar(1)}}});
}

// At most as many rows as trips; how many depends on the condition.
TEST(Language, LoopStacksUntilItsConditionFails) {
  const std::string text =
      "def @main(%x: Tensor[(2), float32], %limit: float32) {\n"
      "  %0 = loop(trip=4i64, cond=fn (%i: int64, %a: Tensor[(2), float32]) { less(sum(%a), %limit) },\n"
      "       body=fn (%i: int64, %a: Tensor[(2), float32]) { (add(%a, %x), %a) }, scanned=1)(%x);\n"
      "  (%0.1, sum(%0.1, axis=[0]))\n}";
  const Tensor x = tensor<float>({1, 2});
  expect_values(text, {{{x, tensor<float>({8}, {})}, {tensor<float>({1, 2, 2, 4}, {2, 2}), tensor<float>({3, 6})}},
                       {{x, tensor<float>({0}, {})}, {Tensor::zeros(dtype::float32_, {0, 2}), tensor<float>({0, 0})}},
                       {{x, tensor<float>({1000}, {})},
                        {tensor<float>({1, 2, 2, 4, 3, 6, 4, 8}, {4, 2}), tensor<float>({10, 20})}}});
}

// Carried values that exchange places need all old values until the last is written.
TEST(Language, LoopSwapsCarriedValues) {
  const std::string text =
      "def @main(%n: int64, %x: Tensor[(2), float32], %y: Tensor[(2), float32], %z: Tensor[(2), float32]) {\n"
      "  loop(trip=%n, body=fn (%i: int64, %a: Tensor[(2), float32], %b: Tensor[(2), float32], %c: Tensor[(2), "
      "float32]) { (%b, %c, add(%a, %b)) },\n"
      "       scanned=0)(%x, %y, %z)\n}";
  const Tensor x = tensor<float>({1, 2}), y = tensor<float>({10, 20}), z = tensor<float>({100, 200});
  expect_values(text, {{{scalar(0), x, y, z}, {x, y, z}},
                       {{scalar(1), x, y, z}, {y, z, tensor<float>({11, 22})}},
                       {{scalar(2), x, y, z}, {z, tensor<float>({11, 22}), tensor<float>({110, 220})}}});
}

TEST(Language, LoopInIfInLoop) {
  const std::string text =
      "def @main(%n: int64, %x: Tensor[(2), float32]) {\n"
      "  loop(trip=%n, body=fn (%i: int64, %a: Tensor[(2), float32]) {\n"
      "    (if (equal(%i, 1i64)) {\n"
      "       %0 = loop(trip=%i, body=fn (%j: int64, %b: Tensor[(2), float32]) { (multiply(%b, %x), %b) }, "
      "scanned=1)(%a);\n"
      "       add(%0.0, sum(%0.1, axis=[0]))\n"
      "     } else { add(%a, %x) },)\n"
      "  }, scanned=0)(%x)\n}";
  const Tensor x = tensor<float>({1, 2});
  // a = x; i=0: a = 2x = (2, 4); i=1: a*x + a = (4, 12); i=2: a + x.
  expect_values(text, {{{scalar(1), x}, {tensor<float>({2, 4})}},
                       {{scalar(2), x}, {tensor<float>({4, 12})}},
                       {{scalar(3), x}, {tensor<float>({5, 14})}}});
}

// What a loop needs from outside is alive until its last iteration.
TEST(Language, LoopReadsOuterValuesInEveryIteration) {
  const std::string text =
      "def @main(%n: int64, %x: Tensor[(64), float32]) {\n"
      "  %0 = exp(%x);\n"
      "  %1 = loop(trip=%n, body=fn (%i: int64, %a: Tensor[(64), float32]) {\n"
      "    %2 = sum(nn.relu(cumsum(add(%a, %0), axis=0)));\n"
      "    (add(multiply(%a, 0f), add(%0, multiply(%2, 0f))),) }, scanned=0)(%x);\n"
      "  %1.0\n}";
  expect_values(text,
                {{{scalar(4), Tensor::zeros(dtype::float32_, {64})}, {tensor<float>(std::vector<float>(64, 1))}}});
}

TEST(Language, SymbolicSizesCompileOnce) {
  const std::string text =
      "def @main(%x: Tensor[(N, 3), float32], %y: Tensor[(M, 3), float32]) {\n"
      "  %0 = concatenate((%x, %y));\n"
      "  (%0, sum(%0, axis=[0]), add(%x, 1f), reshape(%x, newshape=[-1]), transpose(exp(%x), axes=[1, 0]))\n}";
  std::vector<test::Example> examples;
  for (int64_t n : {0, 1, 2, 5, 17}) {
    for (int64_t m : {0, 1, 3}) {
      Tensor x(dtype::float32_, {n, 3}), y(dtype::float32_, {m, 3}), both(dtype::float32_, {n + m, 3}),
          sum = Tensor::zeros(dtype::float32_, {3}), plus(dtype::float32_, {n, 3}), turned(dtype::float32_, {3, n});
      for (int64_t i = 0; i < (n + m) * 3; ++i) {
        const float value = static_cast<float>(i % 7) / 2;
        both.values<float>()[i] = value;
        sum.values<float>()[i % 3] += value;
        if (i >= n * 3) {
          y.values<float>()[i - n * 3] = value;
          continue;
        }
        x.values<float>()[i] = value;
        plus.values<float>()[i] = value + 1;
        turned.values<float>()[i % 3 * n + i / 3] = std::exp(value);
      }
      examples.push_back({{x, y}, {both, sum, plus, x.reshaped({n * 3}), turned}});
    }
  }
  expect_values(text, examples);
}

// One symbol at two inputs is one extent; another size is refused before anything runs.
TEST(Language, SymbolsAreCheckedWhenRunning) {
  const auto session =
      test::session_of("def @main(%x: Tensor[(N), float32], %y: Tensor[(N), float32]) { add(%x, %y) }", 3);
  EXPECT_THROW(session->run({tensor<float>({1, 2}), tensor<float>({1, 2, 3})}), Error);
}

TEST(Language, SizesThatDataDecides) {
  const std::string text =
      "def @main(%x: Tensor[(4), float32]) { %0 = argwhere(greater(%x, 0f)); (%0, add(%0, 1i32), sum(%0, axis=[0]), "
      "take(%x, reshape(%0, newshape=[-1]), mode=\"clip\")) }";
  auto ints = [](std::vector<int32_t> values) {
    return tensor<int32_t>(values, {static_cast<int64_t>(values.size()), 1});
  };
  expect_values(text, {{{tensor<float>({1, -1, 2, -2})},
                        {ints({0, 2}), ints({1, 3}), tensor<int32_t>({2}), tensor<float>({1, 2})}},
                       {{tensor<float>({-1, -1, -1, -1})},
                        {ints({}), ints({}), tensor<int32_t>({0}), Tensor::zeros(dtype::float32_, {0})}},
                       {{tensor<float>({1, 1, 1, 1})},
                        {ints({0, 1, 2, 3}), ints({1, 2, 3, 4}), tensor<int32_t>({6}), tensor<float>({1, 1, 1, 1})}}});
}

// Each value that is overwritten in place must be needed no more.
TEST(Language, ElementwiseChainsKeepWhatIsNeededLater) {
  const std::string text =
      "def @main(%x: Tensor[(4), float32]) {\n"
      "  %0 = cumsum(%x, axis=0); %1 = cumsum(%0, axis=0); %2 = add(%0, %1); %3 = cumsum(%2, axis=0);\n"
      "  %4 = multiply(%2, %2); %5 = cumsum(%4, axis=0); %6 = add(%1, %5);\n"
      "  (add(%6, %3), %4)\n}";
  // x = 1 1 1 1: %0 = 1 2 3 4, %1 = 1 3 6 10, %2 = 2 5 9 14, %3 = 2 7 16 30, %4 = 4 25 81 196, %5 = 4 29 110 306, %6 =
  // 5 32 116 316
  expect_values(text,
                {{{tensor<float>({1, 1, 1, 1})}, {tensor<float>({7, 39, 132, 346}), tensor<float>({4, 25, 81, 196})}}});
}

TEST(Language, PiecesOfOneAnother) {
  const std::string text =
      "def @main(%x: Tensor[(4), float32], %y: Tensor[(2), float32]) {\n"
      "  %0 = split(cumsum(%x, axis=0), indices_or_sections=2);\n"
      "  %1 = concatenate((%0.1, %y, %0.0));\n"
      "  %2 = concatenate((cumsum(%1, axis=0), %y));\n"
      "  (%1, %2, %0.0, add(%0.1, %y), concatenate((%1, %1)))\n}";
  const Tensor x = tensor<float>({1, 1, 1, 1}), y = tensor<float>({10, 20});
  const std::vector<float> one = {3, 4, 10, 20, 1, 2};
  std::vector<float> twice = one;
  twice.insert(twice.end(), one.begin(), one.end());
  expect_values(text, {{{x, y},
                        {tensor<float>(one), tensor<float>({3, 7, 17, 37, 38, 40, 10, 20}), tensor<float>({1, 2}),
                         tensor<float>({13, 24}), tensor<float>(twice)}}});
}

TEST(Language, ClosuresAndRecursionAreRefused) {
  expect_refused(
      "def @f(%n: int32) -> int32 { if (less_equal(%n, 0)) { 0 } else { @f(subtract(%n, 1)) } }\ndef @main(%n: int32) "
      "{ @f(%n) }",
      ErrorCode::CodegenUnsupported, "recursion");
  expect_refused(
      "def @main(%n: int32) { let %f: fn (int32) -> int32 = fn (%k: int32) -> int32 { if (less_equal(%k, 0)) { 0 } "
      "else { %f(subtract(%k, 1)) } }; %f(%n) }",
      ErrorCode::CodegenUnsupported, "recursion");
  expect_refused(
      "def @main(%c: bool, %n: int32) { let %f = if (%c) { fn (%k: int32) { add(%k, 1) } } else { fn (%k: int32) { %k "
      "} }; %f(%n) }",
      ErrorCode::CodegenUnsupported, "");
  expect_refused("def @main(%n: int32) { fn (%k: int32) { add(%k, %n) } }", ErrorCode::CodegenUnsupported, "");
}

}  // namespace
}  // namespace treadle
