// SPDX-License-Identifier: Apache-2.0
#include "ir/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/infer.h"
#include "ir/test_ops.h"
#include "ir/visitor.h"

namespace treadle::ir {
namespace {

class TextTest : public ::testing::Test {
 protected:
  void SetUp() override { test::register_test_ops(); }
};

// Splits a file of cases: text, "-->", expectation, separated by "====".
void run_cases(const std::string& path) {
  const std::string file = test::read_file(path);
  size_t begin = 0, count = 0;
  while (begin < file.size()) {
    size_t end = file.find("\n====\n", begin);
    const std::string block = file.substr(begin, end == std::string::npos ? end : end - begin);
    begin = end == std::string::npos ? file.size() : end + 6;
    const size_t arrow = block.find("\n--> ");
    ASSERT_NE(arrow, std::string::npos) << block;
    const std::string text = block.substr(0, arrow);
    std::string expected = block.substr(arrow + 5);
    while (!expected.empty() && expected.back() == '\n') expected.pop_back();
    ++count;
    std::string got;
    try {
      const Module module = parse(text);
      verify(module);
      got = print(module);
      const Module again = parse(got);
      EXPECT_EQ(structural_difference(again, module), std::nullopt) << got;
      EXPECT_EQ(structural_hash(again), structural_hash(module)) << got;
    } catch (const Error& error) {
      got = error.what();
    }
    if (expected.starts_with("error ")) {
      const size_t space = expected.find(' ', 6);
      EXPECT_TRUE(got.starts_with(expected.substr(0, space))) << text << "\n" << got;
      expected = expected.substr(space + 1);
    }
    EXPECT_NE(got.find(expected), std::string::npos) << text << "\n" << got;
  }
  EXPECT_GT(count, 5u);
}

TEST_F(TextTest, Inference) { run_cases("src/ir/test/infer.relay"); }
TEST_F(TextTest, Errors) { run_cases("src/ir/test/errors.relay"); }

// Parses, prints and parses again; gives the printed text.
std::string round_trip(const Module& module) {
  const std::string text = print(module);
  const Module again = parse(text);
  verify(again);
  EXPECT_EQ(structural_difference(again, module), std::nullopt) << text;
  EXPECT_EQ(structural_hash(again), structural_hash(module)) << text;
  return text;
}

Module of(std::vector<Expr> params, Expr body) {
  Module module;
  module.functions["main"] = function(std::move(params), std::move(body));
  return module;
}

TEST_F(TextTest, ScalarsOfEveryDtypeAreExact) {
  std::vector<Expr> fields;
  for (DType dtype : all_dtypes()) {
    for (double value : {0.0, 1.0, 100.0}) fields.push_back(constant(Tensor::scalar(dtype, value)));
    if (!dtype.is_float()) continue;
    for (double value : {-0.0, 0.1, -1e-5, 1e4, std::numeric_limits<double>::infinity(),
                         -std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
      fields.push_back(constant(Tensor::scalar(dtype, value)));
    }
  }
  fields.push_back(constant(Tensor::from<int64_t>({std::numeric_limits<int64_t>::min()}, {})));
  fields.push_back(constant(Tensor::from<int32_t>({std::numeric_limits<int32_t>::min()}, {})));
  fields.push_back(constant(Tensor::from<uint64_t>({std::numeric_limits<uint64_t>::max()}, {})));
  fields.push_back(constant(Tensor::from<float>({std::numeric_limits<float>::denorm_min()}, {})));
  fields.push_back(constant(Tensor::from<double>({std::numeric_limits<double>::max()}, {})));
  round_trip(of({}, tuple(fields)));
}

TEST_F(TextTest, TensorsStandInTheMetadata) {
  std::vector<Expr> fields;
  for (DType dtype : all_dtypes()) fields.push_back(constant(Tensor::zeros(dtype, {2, 3})));
  fields.push_back(constant(Tensor::from<float>({1.5f, std::nanf("7"), -0.0f}, {3})));
  fields.push_back(constant(Tensor::zeros(dtype::float32_, {0, 4})));
  const std::string text = round_trip(of({}, tuple(fields)));
  EXPECT_NE(text.find("meta[relay.Constant][0] /* ty=Tensor[(2, 3), bool] */"), std::string::npos) << text;
}

TEST_F(TextTest, NamesThatAreNoIdentifiers) {
  const Type type = tensor_type({2}, dtype::float32_);
  const Expr a = var("layer 1/x:0", type), b = var("0", type), c = var("a\"\n", type), d = var("0", type);
  const std::string text = round_trip(of({a, b, c, d}, tuple({a, b, c, d})));
  const Module again = parse(text);
  EXPECT_EQ(again.main().params[0].as<Var>()->name, "layer 1/x:0");
  EXPECT_EQ(again.main().params[2].as<Var>()->name, "a\"\n");
}

TEST_F(TextTest, SharedNodesStandWhereAllUsersSeeThem) {
  const Type type = tensor_type({2}, dtype::float32_);
  const Expr c = var("c", tensor_type({}, dtype::bool_)), x = var("x", type), y = var("y", type), z = var("z", type);
  const Expr shared = call("add", {x, x}), inner = call("multiply", {shared, y});
  // `shared` is used in both branches and in a let's value and body; the let stands in the middle of a call.
  const Expr branch = if_expr(c, call("test.relu", {shared}), call("add", {shared, x}));
  const Expr body = call("add", {let(y, shared, call("subtract", {inner, inner})), branch});
  const Expr closure = function({z}, call("add", {z, shared}));
  const std::string text = round_trip(of({c, x}, call(closure, {body})));
  EXPECT_EQ(text.find("add(%x, %x)"), text.rfind("add(%x, %x)")) << text;
}

TEST_F(TextTest, LoopsAndAttributes) {
  const Type type = tensor_type({3}, dtype::float32_);
  const Expr i = var("i", tensor_type({}, dtype::int64_)), k = var("c", type), x = var("x", type),
             n = var("n", tensor_type({}, dtype::int64_));
  const Expr body = function({i, k}, tuple({call("add", {k, x}), k}));
  const Expr full =
      call("test.full", {},
           {{"shape", Shape{2, Dim::symbol("N") + 1}}, {"pads", IntLists{{0, 1}, {2, 3}}}, {"dtype", dtype::int8_}});
  AttrMap attrs{
      {"Primitive", int64_t{1}}, {"hash", std::string("eb\"01")}, {"list", Strings{"a", "b"}}, {"scale", 1e-5}};
  const Expr primitive = function({}, full, nullptr, attrs);
  const std::string text = round_trip(of({x, n}, tuple({loop(n, {}, body, {x}, 1), call(primitive, {})})));
  EXPECT_NE(text.find("loop(trip=%n, body=fn ("), std::string::npos) << text;
  EXPECT_NE(text.find("shape=[2, \"N + 1\"], dtype=\"int8\", pads=[[0, 1], [2, 3]]"), std::string::npos) << text;
}

TEST_F(TextTest, InfixBindsAsInRelay) {
  const Module a = parse("def @main(%x: int32, %y: int32) { %x - %y - 1 * -2 + %x }");
  const Module b = parse("def @main(%a: int32, %b: int32) { add(subtract(subtract(%a, %b), multiply(1, -2)), %a) }");
  EXPECT_EQ(structural_difference(a, b), std::nullopt);
  EXPECT_EQ(structural_hash(a), structural_hash(b));
}

TEST_F(TextTest, DifferenceSaysWhere) {
  const Module a = parse("def @main(%x: Tensor[(4), float32]) { %0 = test.relu(%x); add(%0, 1f) }");
  const Module b = parse("def @main(%x: Tensor[(4), float32]) { %0 = test.relu(%x); add(%0, 2f) }");
  EXPECT_EQ(structural_difference(a, b).value_or(""),
            "@main, body, argument 1 of add: constants with different values");
  const Module c = parse("def @main(%x: Tensor[(4), float32], %y: Tensor[(4), float32]) { subtract(%x, %y) }");
  const Module d = parse("def @main(%x: Tensor[(4), float32], %y: Tensor[(4), float32]) { subtract(%y, %x) }");
  EXPECT_EQ(structural_difference(c, d).value_or(""),
            "@main, body, argument 0 of subtract: %x and %y are different variables");
  EXPECT_NE(structural_hash(c), structural_hash(d));
  const Module e = parse("def @main(%x: Tensor[(4), float32]) { test.split(%x, sections=2) }");
  const Module f = parse("def @main(%x: Tensor[(4), float32]) { test.split(%x, sections=2, axes=[1]) }");
  EXPECT_EQ(structural_difference(e, f).value_or(""), "@main, body: test.split: attribute axes: [0] and [1]");
}

TEST_F(TextTest, NestingIsBounded) {
  std::string text = "def @main(%x: int32) { ";
  for (int i = 0; i < 5000; ++i) text += "(";
  EXPECT_THROW(parse(text), Error);
  text = "def @main(%x: int32) { add";
  for (int i = 0; i < 5000; ++i) text += "(%x, add";
  try {
    parse(text);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Limit);
  }
  Expr value = var("x", tensor_type({}, dtype::bool_));
  const Expr x = value;
  for (int i = 0; i < 5000; ++i) value = if_expr(x, value, x);
  try {
    print(of({x}, value));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Limit);
  }
}

TEST_F(TextTest, VerifierFindsBrokenModules) {
  const Type type = tensor_type({2}, dtype::float32_);
  const Expr x = var("x", type), y = var("y", type);
  const auto rule = [](const Module& module) -> std::string {
    try {
      verify(module);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::VerifyFailed);
      return error.message().substr(0, 7);
    }
    return "";
  };
  EXPECT_EQ(rule(of({x}, call("add", {x, x}))), "");
  EXPECT_EQ(rule(of({x}, call(global_var("f", func_type({type}, type)), {x}))), "rule 1 ");
  EXPECT_EQ(rule(of({x}, call("add", {x, y}))), "rule 2 ");
  EXPECT_EQ(rule(of({x}, let(x, x, x))), "rule 2 ");
  EXPECT_EQ(rule(of({x}, call("add", {let(y, x, y), y}))), "rule 2 ");  // y is used outside its let
  const Expr untyped = var("u");
  EXPECT_EQ(rule(of({untyped}, untyped)), "rule 3 ");
  const Expr wrong = std::make_shared<Call>(op_expr(OpRegistry::instance().find("add")), std::vector<Expr>{x, x},
                                            OpRegistry::instance().get("add").make_attrs({}),
                                            tensor_type({3}, dtype::float32_), nullptr);
  EXPECT_EQ(rule(of({x}, wrong)), "rule 4 ");
  const Expr primitive = function({}, x, nullptr, {{"Primitive", int64_t{1}}});
  EXPECT_EQ(rule(of({x}, call(primitive, {}))), "rule 9 ");
}

}  // namespace
}  // namespace treadle::ir
