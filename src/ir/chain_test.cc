// SPDX-License-Identifier: Apache-2.0
// Long chains on a small stack: every traversal is iterative.
#include <gtest/gtest.h>
#include <pthread.h>

#include <functional>

#include "ir/infer.h"
#include "ir/test_ops.h"
#include "ir/text.h"
#include "ir/visitor.h"

namespace treadle::ir {
namespace {

constexpr int kLength = 100000;

// Runs f on a thread with a stack of 512 KiB.
void on_small_stack(std::function<void()> f) {
  test::register_test_ops();
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 512 << 10), 0);
  struct Task {
    std::function<void()> f;
    std::string error;
  } task{std::move(f), ""};
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, &attributes,
                [](void* pointer) -> void* {
                  auto* task = static_cast<Task*>(pointer);
                  try {
                    task->f();
                  } catch (const std::exception& error) {
                    task->error = error.what();
                  }
                  return nullptr;
                },
                &task),
            0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  EXPECT_EQ(task.error, "");
}

Module of(Expr body, std::vector<Expr> params) {
  Module module;
  module.functions["main"] = function(std::move(params), std::move(body));
  return module;
}

void exercise(const Module& module) {
  verify(module);
  const Module inferred = infer_types(module);
  EXPECT_TRUE(is_complete(inferred.main().body.type()));
  const std::string text = print(module);
  const Module again = parse(text);
  EXPECT_EQ(structural_difference(again, module), std::nullopt);
  EXPECT_EQ(structural_hash(again), structural_hash(module));
  const Expr& param = module.main().params[0];
  const Expr other = var("other", param.type());
  EXPECT_EQ(free_vars(substitute(module.main().body, {{param.get(), other}})).size(), 1u);
}

TEST(Chain, Calls) {
  on_small_stack([] {
    const Expr x = var("x", tensor_type({2}, dtype::float32_));
    Expr y = x;
    for (int i = 0; i < kLength; ++i) y = call("add", {y, x});
    exercise(of(y, {x}));
  });
}

TEST(Chain, Lets) {
  on_small_stack([] {
    const Type type = tensor_type({2}, dtype::float32_);
    const Expr x = var("x", type);
    std::vector<Expr> vars{x};
    for (int i = 0; i < kLength; ++i) vars.push_back(var("y", type));
    Expr body = vars.back();
    for (int i = kLength; i > 0; --i)
      body = let(vars[static_cast<size_t>(i)], call("test.relu", {vars[static_cast<size_t>(i - 1)]}), body);
    exercise(of(body, {x}));
  });
}

// The type of the parameter follows from its last use, so that all calls before it wait.
TEST(Chain, UntypedTextIsSolved) {
  on_small_stack([] {
    std::string text = "def @main(%x) {\n  %0 = test.relu(%x);\n";
    for (int i = 1; i < kLength; ++i) text += fmt::format("  %{} = test.relu(%{});\n", i, i - 1);
    text += fmt::format("  let %f = fn (%a: Tensor[(2), float32]) {{ %a }};\n  (%{}, %f(%x))\n}}\n", kLength - 1);
    const Module module = parse(text);
    EXPECT_EQ(to_string(module.main().body.type()), "(Tensor[(2), float32], Tensor[(2), float32])");
  });
}

}  // namespace
}  // namespace treadle::ir
