// SPDX-License-Identifier: Apache-2.0
#include "ir/expr.h"

#include <gtest/gtest.h>

#include "ir/infer.h"
#include "ir/test_ops.h"
#include "ir/text.h"
#include "ir/visitor.h"

namespace treadle::ir {
namespace {

class ExprTest : public ::testing::Test {
 protected:
  void SetUp() override { test::register_test_ops(); }
};

Type floats(Shape shape) { return tensor_type(std::move(shape), dtype::float32_); }

template <typename F>
std::string error_of(F f, ErrorCode code) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

TEST_F(ExprTest, CallIsInferredWhenItIsMade) {
  const Expr x = var("x", floats({2, 3}));
  EXPECT_EQ(to_string(call("test.dense", {x, var("w", floats({5, 3}))}).type()), "Tensor[(2, 5), float32]");
  EXPECT_EQ(to_string(tuple_get(call("test.split", {x}, {{"sections", int64_t{2}}}), 1).type()),
            "Tensor[(1, 3), float32]");
  // Not known yet is no error.
  EXPECT_EQ(call("test.dense", {x, var("w")}).type(), nullptr);
  EXPECT_EQ(to_string(call("test.dense", {x, var("w")}, {{"units", int64_t{7}}}).type()), "Tensor[(2, 7), float32]");
}

TEST_F(ExprTest, IllTypedCallNamesOperatorAndArguments) {
  const Expr x = var("x", floats({2, 3}));
  auto span = std::make_shared<SpanInfo>();
  span->node = "layer1 (Gemm)";
  const std::string text =
      error_of([&] { call("test.dense", {x, var("w", floats({5, 4}))}, {}, span); }, ErrorCode::TypeMismatch);
  EXPECT_NE(text.find("data has 3 columns but weight has 4"), std::string::npos) << text;
  EXPECT_NE(text.find("data: Tensor[(2, 3), float32]   weight: Tensor[(5, 4), float32]"), std::string::npos) << text;
  EXPECT_NE(text.find("layer1 (Gemm)"), std::string::npos) << text;
  error_of([&] { call("test.dense", {x}); }, ErrorCode::TypeMismatch);
  error_of([&] { tuple_get(tuple({x}), 1); }, ErrorCode::TypeMismatch);
  error_of([&] { if_expr(x, x, x); }, ErrorCode::TypeMismatch);
}

TEST_F(ExprTest, UnknownOperatorNamesNearOnes) {
  EXPECT_NE(error_of([] { call("test.dence", {}); }, ErrorCode::InvalidArgument).find("test.dense"), std::string::npos);
  EXPECT_NE(error_of([] { call("dense", {}); }, ErrorCode::InvalidArgument).find("test.dense"), std::string::npos);
}

TEST_F(ExprTest, AttributesAreCoercedAndChecked) {
  const Op& dense = OpRegistry::instance().get("test.dense");
  EXPECT_EQ(std::get<double>(dense.make_attrs({{"scale", int64_t{2}}})->get("scale")), 2.0);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(dense.make_attrs({})->get("units")));
  error_of([&] { dense.make_attrs({{"unit", int64_t{2}}}); }, ErrorCode::TypeAttribute);
  error_of([&] { dense.make_attrs({{"units", int64_t{0}}}); }, ErrorCode::TypeAttribute);
  error_of([&] { dense.make_attrs({{"units", 2.5}}); }, ErrorCode::TypeAttribute);
  error_of([&] { dense.make_attrs({{"layout", std::string("XY")}}); }, ErrorCode::TypeAttribute);
  error_of([&] { OpRegistry::instance().get("test.split").make_attrs({}); }, ErrorCode::TypeAttribute);
  const Op& full = OpRegistry::instance().get("test.full");
  const AttrsRef attrs =
      full.make_attrs({{"shape", list_value({int64_t{2}, std::string("N + 1")})}, {"dtype", std::string("int8")}});
  EXPECT_EQ(to_string(attrs->get("shape")), "[2, \"N + 1\"]");
  EXPECT_EQ(to_string(attrs->get("dtype")), "\"int8\"");
  EXPECT_TRUE(attrs->equals(*full.make_attrs({{"shape", Shape{2, Dim::symbol("N") + 1}}, {"dtype", dtype::int8_}})));
  EXPECT_FALSE(attrs->equals(*full.make_attrs({{"shape", Ints{2}}})));
  EXPECT_TRUE(std::holds_alternative<std::monostate>(
      full.make_attrs({{"shape", Ints{}}, {"dtype", std::string()}})->get("dtype")));
}

TEST_F(ExprTest, LoopTypes) {
  const Expr i = var("i", tensor_type({}, dtype::int64_)), c = var("c", floats({3}));
  const Expr body = function({i, c}, tuple({call("add", {c, c}), c}));
  const Expr trip = constant(Tensor::scalar(dtype::int64_, 4));
  EXPECT_EQ(to_string(loop(trip, {}, body, {var("x", floats({3}))}, 1).type()),
            "(Tensor[(3), float32], Tensor[(4, 3), float32])");
  error_of([&] { loop(trip, {}, body, {var("x", floats({2}))}, 1); }, ErrorCode::TypeMismatch);
  error_of([&] { loop(trip, {}, body, {c}, 0); }, ErrorCode::TypeMismatch);
  error_of([&] { loop({}, {}, body, {c}, 1); }, ErrorCode::InvalidArgument);
}

TEST_F(ExprTest, VisitorsSeeEachNodeOnce) {
  const Expr x = var("x", floats({2})), y = call("add", {x, x}), z = call("multiply", {y, y});
  std::vector<Expr> order;
  post_order(z, [&](const Expr& expr) { order.push_back(expr); });
  ASSERT_EQ(order.size(), 3u);
  EXPECT_TRUE(order[0].same_as(x) && order[1].same_as(y) && order[2].same_as(z));
  EXPECT_EQ(count_uses(z).at(y.get()), 2);
  const Expr other = var("o", floats({2}));
  const Expr replaced = substitute(z, {{x.get(), other}});
  EXPECT_EQ(free_vars(replaced).size(), 1u);
  EXPECT_TRUE(free_vars(replaced)[0].same_as(other));
  EXPECT_TRUE(free_vars(function({x}, z)).empty());
  EXPECT_TRUE(substitute(z, {{other.get(), x}}).same_as(z));  // nothing to do: nothing is copied
}

}  // namespace
}  // namespace treadle::ir
