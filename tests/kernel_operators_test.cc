// SPDX-License-Identifier: Apache-2.0
// The operators that kernels of the runtime stand for, through their type relations and the interpreter: that operator
// and kernel agree on parameters, outputs and symbols. The kernels' own tests lie beside them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "op/op_test.h"
#include "op/tensor/scatter.h"
#include "op/tensor/sort.h"
#include "op/vision/nms.h"
#include "pass/interpreter.h"

namespace treadle::op {
namespace {

using test::constant;
using test::numbers;
using testing::ElementsAre;

std::vector<Tensor> run_all(const ir::Expr& expr) { return pass::interpret(expr); }
std::vector<double> run(const ir::Expr& expr) { return numbers(run_all(expr).at(0)); }

class KernelOperators : public testing::Test {
 protected:
  void SetUp() override { register_operators(); }
};

TEST_F(KernelOperators, SortAndArgsort) {
  const auto x = constant<float>({3, 1, 2, 1, 5, 4}, {2, 3});
  EXPECT_THAT(run(sort(x)), ElementsAre(1, 2, 3, 1, 4, 5));
  EXPECT_THAT(run(sort(x, 0, false)), ElementsAre(3, 5, 4, 1, 1, 2));
  EXPECT_THAT(run(argsort(constant<int32_t>({2, 1, 2, 0}))), ElementsAre(3, 1, 0, 2));
  EXPECT_THAT(run(argsort(constant<int32_t>({2, 1, 2, 0}), 0, false, dtype::int64_)), ElementsAre(0, 2, 1, 3));
  EXPECT_THROW(sort(x, 2), Error);
  EXPECT_THROW(argsort(x, 0, true, dtype::float32_), Error);
}

TEST_F(KernelOperators, Topk) {
  const auto x = constant<float>({3, 1, 2, 3}, {1, 4});
  const auto both = run_all(topk(x, 2));
  EXPECT_THAT(numbers(both.at(0)), ElementsAre(3, 3));
  EXPECT_THAT(numbers(both.at(1)), ElementsAre(0, 3));
  EXPECT_THAT(run(topk(x, 2, 1, "values", true)), ElementsAre(1, 2));
  const auto indices = run_all(topk(x, 0, -1, "indices", false, dtype::int64_));
  EXPECT_THAT(numbers(indices.at(0)), ElementsAre(0, 3, 2, 1));
  EXPECT_EQ(indices.at(0).dtype(), dtype::int64_);
  EXPECT_THROW(topk(x, 5), Error);
}

TEST_F(KernelOperators, RunningSums) {
  const auto x = constant<int32_t>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_THAT(run(scan("cumsum", x, 1)), ElementsAre(1, 3, 6, 4, 9, 15));
  EXPECT_THAT(run(scan("cumsum", x, -2)), ElementsAre(1, 2, 3, 5, 7, 9));
  EXPECT_THAT(run(scan("cumsum", x, 1, true)), ElementsAre(0, 1, 3, 0, 4, 9));
  EXPECT_THAT(run(scan("cumsum", x, 1, false, true)), ElementsAre(6, 5, 3, 15, 11, 6));
  EXPECT_THAT(run(scan("cumprod", x, std::nullopt)), ElementsAre(1, 2, 6, 24, 120, 720));
  const auto wide =
      test::call("cumsum", {constant<int8_t>({100, 100})}, {{"axis", int64_t{0}}, {"dtype", dtype::int32_}});
  EXPECT_THAT(run(wide), ElementsAre(100, 200));
}

TEST_F(KernelOperators, Scatter) {
  const auto x = constant<float>({0, 0, 0, 0}, {2, 2});
  const auto indices = constant<int64_t>({1, 1}, {1, 2}), updates = constant<float>({5, 6}, {1, 2});
  EXPECT_THAT(run(scatter_elements(x, indices, updates, 0)), ElementsAre(0, 0, 5, 6));
  EXPECT_THAT(run(scatter_elements(x, indices, updates, 1, "add")), ElementsAre(0, 11, 0, 0));
  EXPECT_THAT(run(scatter_elements(x, indices, updates, 1, "max")), ElementsAre(0, 6, 0, 0));
  EXPECT_THAT(run(scatter_nd(x, constant<int64_t>({0, 1, 1, 0}, {2, 2}), constant<float>({7, 8}))),
              ElementsAre(0, 7, 8, 0));
  EXPECT_THAT(run(scatter_nd(x, constant<int64_t>({1}, {1, 1}), constant<float>({7, 8}, {1, 2}), "add")),
              ElementsAre(0, 0, 7, 8));
  EXPECT_THROW(scatter_elements(x, indices, constant<float>({1}, {1, 1}), 0), Error);
  EXPECT_THROW(scatter_nd(x, constant<int64_t>({0, 0, 0}, {3, 1}), constant<float>({1})), Error);
  EXPECT_THROW(run_all(scatter_elements(x, constant<int64_t>({9, 0}, {1, 2}), updates, 0)), Error);
}

TEST_F(KernelOperators, ArgwhereBindsItsExtent) {
  const auto rows = test::call("argwhere", {constant<float>({0, 2, 0, 3}, {2, 2})});
  const auto result = run_all(rows);
  EXPECT_THAT(result.at(0).shape(), ElementsAre(2, 2));
  EXPECT_THAT(numbers(result.at(0)), ElementsAre(0, 1, 1, 1));
  // An operator behind it sees the extent that came out.
  EXPECT_THAT(run(test::call("add", {rows, ir::constant(Tensor::scalar(dtype::int32_, 10))})),
              ElementsAre(10, 11, 11, 11));
}

TEST_F(KernelOperators, AllClassNonMaxSuppression) {
  const auto boxes = constant<float>({0, 0, 1, 1, 0, 0, 1, 0.9F, 0, 2, 1, 3}, {1, 3, 4});
  const auto scores = constant<float>({0.5F, 0.9F, 0.2F, 0.1F, 0.1F, 0.8F}, {1, 2, 3});
  const auto number = [](double value) { return ir::constant(Tensor::scalar(dtype::float32_, value)); };
  const auto select = [&](int64_t most, double least, int64_t room) {
    return run_all(all_class_non_max_suppression(boxes, scores, constant<int64_t>({most}), number(0.5), number(least),
                                                 false, room));
  };
  // Boxes 0 and 1 overlap: the better one stays.
  const auto all = select(3, 0.0, -1);
  EXPECT_THAT(all.at(0).shape(), ElementsAre(6, 3));
  EXPECT_THAT(numbers(all.at(1)), ElementsAre(4));
  EXPECT_THAT(numbers(all.at(0)), ElementsAre(0, 0, 1, 0, 0, 2, 0, 1, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0));
  const auto few = select(1, 0.85, 1);
  EXPECT_THAT(few.at(0).shape(), ElementsAre(2, 3));
  EXPECT_THAT(numbers(few.at(0)), ElementsAre(0, 0, 1, 0, 0, 0));
  EXPECT_THAT(numbers(few.at(1)), ElementsAre(1));
  EXPECT_THROW(select(3, 0.0, 1), Error);  // no room
  EXPECT_THROW(all_class_non_max_suppression(scores, scores, number(1), number(0), number(0)), Error);
}

TEST_F(KernelOperators, SearchAndUnique) {
  const auto sequence = constant<float>({1, 3, 3, 5}), values = constant<float>({0, 3, 9});
  EXPECT_THAT(run(test::call("searchsorted", {sequence, values})), ElementsAre(0, 1, 4));
  EXPECT_THAT(run(test::call("searchsorted", {sequence, values}, {{"right", true}})), ElementsAre(0, 3, 4));
  const auto outputs = run_all(test::call("unique", {constant<int32_t>({4, 2, 4, 2, 2})}, {{"return_counts", true}}));
  ASSERT_EQ(outputs.size(), 5);
  EXPECT_THAT(numbers(outputs[3]), ElementsAre(2));
  EXPECT_THAT(numbers(outputs[2]), ElementsAre(1, 0, 1, 0, 0));
  EXPECT_EQ(outputs[0].at(0), 2);
  EXPECT_EQ(outputs[4].at(1), 2);
}

}  // namespace
}  // namespace treadle::op
