// SPDX-License-Identifier: Apache-2.0
// Runs what CONTRIBUTING.md adds as examples.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "ir/op.h"
#include "loop/stmt.h"
#include "op/register.h"
#include "op/relations.h"
#include "remove_identity.h"
#include "shrink.h"

namespace treadle {
namespace {

class Example : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    op::register_operators();
    static std::once_flag once;
    std::call_once(once, [] { op::register_example_shrink(ir::OpRegistry::instance()); });
  }
};

ir::Expr input(Shape shape, DType dtype = dtype::float32_) {
  return ir::var("x", tensor_type(std::move(shape), dtype));
}

// The value of a call of one tensor, by the reference interpreter.
Tensor evaluate(const ir::Expr& expr, const Tensor& x) {
  const auto& call = *expr.as<ir::Call>();
  const loop::Tensor data = loop::placeholder("x", loop::to_exprs(expr.tensor_type().shape), x.dtype());
  const loop::Function function = loop::lower_naive("f", {data}, call.op()->compute(call, {data}));
  Tensor result = Tensor::zeros(x.dtype(), x.shape());
  loop::interpret(function, {x, result});
  return result;
}

TEST_F(Example, ShrinkComputesItsFormula) {
  const Tensor x = Tensor::from<float>({-2.0f, -0.5f, 0.25f, 0.5f, 3.0f, NAN});
  const Tensor y = evaluate(op::shrink(input({6}), 0.5, 0.125), x);
  EXPECT_THAT(y.values<float>(), testing::ElementsAre(-1.875f, 0.0f, 0.0f, 0.0f, 2.875f, 0.0f));
}

TEST_F(Example, ShrinkOfAnEmptyTensorIsEmpty) {
  EXPECT_EQ(evaluate(op::shrink(input({0, 3}), 0.5, 0), Tensor::zeros(dtype::float32_, {0, 3})).size(), 0);
}

TEST_F(Example, ShrinkOfIntegersIsAnError) {
  try {
    op::shrink(input({2}, dtype::int32_), 0.5, 0);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::TypeMismatch);
    EXPECT_THAT(error.what(), testing::HasSubstr("int32"));
  }
}

TEST_F(Example, ShrinkRefusesANegativeBand) {
  EXPECT_THROW(ir::call("example.shrink", {input({2})}, {{"lambd", -1.0}}), Error);
}

ir::Module negated_copy() {
  const ir::Expr x = input({2, 3});
  ir::Module module;
  module.functions["main"] = ir::function({x}, op::call_op("negative", {op::call_op("copy", {x})}));
  return module;
}

const ir::Expr& argument_of_result(const ir::Module& module) { return module.main().body.as<ir::Call>()->args[0]; }

TEST_F(Example, RemoveIdentityDropsACopy) {
  pass::PassContext context;
  const ir::Module module = pass::remove_identity(negated_copy(), context);
  EXPECT_TRUE(argument_of_result(module).same_as(module.main().params[0]));
  EXPECT_EQ(context.rewrites, 1);
}

TEST_F(Example, RemoveIdentityStopsWhenToldTo) {
  pass::PassContext context;
  context.stop_after = 0;
  const ir::Module module = pass::remove_identity(negated_copy(), context);
  EXPECT_EQ(argument_of_result(module).as<ir::Call>()->op()->name, "copy");
}

}  // namespace
}  // namespace treadle
