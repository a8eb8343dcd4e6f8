// SPDX-License-Identifier: Apache-2.0
#include "schedule/abstract_constants.h"

#include <gtest/gtest.h>

#include "schedule/schedule.h"
#include "schedule/simplify.h"
#include "schedule/testing.h"

namespace treadle::schedule {
namespace {

using namespace loop;  // NOLINT(google-build-using-namespace)
using T = loop::Tensor;

// A 1x1 convolution with n output and k input channels in blocks of 16, m pixels; tiles of 4 pixels and two blocks.
struct Product {
  Product(int64_t m, int64_t n, int64_t k) {
    a = placeholder("a", {k / 16, m, 16}, dtype::float32_);
    b = placeholder("b", {n / 16, k / 16, 16, 16}, dtype::float32_);
    c = reduce("c", {n / 16, m, 16}, ReduceOp::Sum, {k / 16, 16},
               [&](const auto& i, const auto& r) { return a(r[0], i[1], r[1]) * b(i[0], r[0], r[1], i[2]); });
    Schedule s("f", {a, b}, {c});
    Stage& out = s.stage(c);
    Stage& acc = s.cache_write(out);
    const auto [x, y, xi, yi] = out.tile(out.axis(0), out.axis(1), 2, 4);
    out.parallel(x);
    out.unroll(xi);
    out.unroll(yi);
    out.vectorize(out.axis(2));
    acc.compute_at(out, y, Scope::Local);
    acc.reorder({acc.reduce_axis(0), acc.reduce_axis(1), acc.axis(0), acc.axis(1), acc.axis(2)});
    acc.unroll(acc.axis(0));
    acc.unroll(acc.axis(1));
    acc.vectorize(acc.axis(2));
    function = finish(s.lower());
  }
  T a, b, c;
  Function function;
};

// The generic function with its arguments does what the function does.
void expect_equal_values(const Product& p) {
  const Abstracted shared = abstract_constants(p.function);
  verify(shared.function);
  std::vector<treadle::Tensor> args = {
      testing::random_tensor(dtype::float32_, {*as_int(p.function.buffers[0]->shape[0])}, 1),
      testing::random_tensor(dtype::float32_, {*as_int(p.function.buffers[1]->shape[0])}, 2),
      treadle::Tensor::zeros(dtype::float32_, {*as_int(p.function.buffers[2]->shape[0])})};
  std::vector<treadle::Tensor> other = {args[0], args[1], treadle::Tensor::zeros(dtype::float32_, args[2].shape())};
  interpret(p.function, args);
  std::vector<int64_t> scalars;
  for (const Expr& e : shared.arguments) scalars.push_back(*as_int(e));
  interpret(shared.function, other, scalars);
  EXPECT_TRUE(args[2].identical(other[2])) << to_string(shared.function);
}

TEST(AbstractConstants, SizesBecomeArguments) {
  const Product small(48, 320, 160), large(64, 640, 320);
  EXPECT_FALSE(structural_equal(small.function, large.function));
  const Abstracted a = abstract_constants(small.function), b = abstract_constants(large.function);
  EXPECT_TRUE(structural_equal(a.function, b.function)) << to_string(a.function) << to_string(b.function);
  EXPECT_EQ(structural_hash(a.function), structural_hash(b.function));
  ASSERT_EQ(a.arguments.size(), a.function.scalars.size());
  expect_equal_values(small);
  expect_equal_values(large);
}

TEST(AbstractConstants, OtherTilesStayDifferent) {
  const Product even(48, 320, 160), ragged(50, 320, 160);  // the last tile has two pixels
  EXPECT_FALSE(
      structural_equal(abstract_constants(even.function).function, abstract_constants(ragged.function).function));
  expect_equal_values(ragged);
}

}  // namespace
}  // namespace treadle::schedule
