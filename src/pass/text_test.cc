// SPDX-License-Identifier: Apache-2.0
// The text tests of the passes: every file of src/pass/test holds cases, separated by ==== lines:
//
//   // A sentence that says why.
//   // RUN: FoldScaleAxis FoldConstant
//   def @main(…) { … }
//   -->
//   the module after those passes, as printed without the data of constants
//
// Every case is also evaluated before and after, on the same random inputs. TREADLE_BLESS=1 rewrites what stands behind
// -->; read the difference before committing it.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "ir/infer.h"
#include "ir/text.h"
#include "ir/visitor.h"
#include "op/register.h"
#include "pass/interpreter.h"
#include "pass/pass.h"

namespace treadle::pass {
namespace {

namespace fs = std::filesystem;
using ir::Expr;

const fs::path kFolder = fs::path(TREADLE_SOURCE_DIR) / "src" / "pass" / "test";

struct Case {
  std::string input;  // comments and module
  std::string expected;
  std::vector<std::string> passes;
};

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string trimmed(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(std::min(text.find_first_not_of('\n'), text.size()));
}

std::vector<Case> read_cases(const std::string& text) {
  std::vector<Case> cases;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find("\n====\n", begin), text.size());
    const std::string block = text.substr(begin, end - begin);
    begin = end + 6;
    const size_t arrow = block.find("\n-->");
    Case entry;
    entry.input = trimmed(block.substr(0, arrow));
    entry.expected = arrow == std::string::npos ? "" : trimmed(block.substr(arrow + 4));
    const size_t run = entry.input.find("// RUN:");
    if (run == std::string::npos) {
      ADD_FAILURE() << "a case without RUN:\n" << block;
      continue;
    }
    std::istringstream names(entry.input.substr(run + 7, entry.input.find('\n', run) - run - 7));
    for (std::string name; names >> name;) entry.passes.push_back(name);
    cases.push_back(std::move(entry));
  }
  return cases;
}

// The module without primitive functions: the interpreter knows operators, not calls.
Expr without_kernels(const Expr& root) {
  class Opener : public ir::Mutator {
   protected:
    Expr rewrite(const Expr&, const Expr& after) override {
      const auto* call = after.as<ir::Call>();
      const auto* function = call ? call->callee.as<ir::Function>() : nullptr;
      if (!function) return after;
      std::map<const ir::ExprNode*, Expr> values;
      for (size_t i = 0; i < call->args.size(); ++i) values[function->params[i].get()] = call->args[i];
      return ir::substitute(function->body, values);
    }
  };
  return Opener().mutate(root);
}

// Random values for every parameter: small, so that no operator overflows; extents of symbols are 3.
std::vector<std::vector<Tensor>> random_inputs(const ir::Function& main) {
  std::mt19937 random(1);
  std::vector<std::vector<Tensor>> inputs;
  for (const Expr& param : main.params) {
    std::vector<const TensorType*> leaves;
    if (const TensorType* tensor = as_tensor(param.type())) leaves = {tensor};
    if (const TupleType* tuple = as_tuple(param.type())) {
      for (const Type& field : tuple->fields) leaves.push_back(as_tensor(field));
    }
    inputs.emplace_back();
    for (const TensorType* type : leaves) {
      std::vector<int64_t> shape;
      for (const Dim& dim : type->shape) shape.push_back(dim.is_const() ? dim.value() : 3);
      Tensor tensor(type->dtype, shape);
      visit(type->dtype, [&]<typename T>() {
        for (T& value : tensor.values<T>()) {
          const int number = static_cast<int>(random() % 17) - 8;
          value = type->dtype.is_float() ? static_cast<T>(static_cast<float>(number) / 4)
                                         : static_cast<T>(static_cast<float>(std::abs(number) % 2));
        }
      });
      inputs.back().push_back(tensor);
    }
  }
  return inputs;
}

std::vector<Tensor> evaluate(const ir::Module& module, const std::vector<std::vector<Tensor>>& inputs) {
  const ir::Function& main = module.main();
  const Expr body = without_kernels(main.body);
  Bindings bindings;
  for (size_t i = 0; i < inputs.size(); ++i) bindings[main.params[i].get()] = inputs[i];
  return interpret(body, bindings);
}

void expect_same_values(const ir::Module& before, const ir::Module& after, const std::string& text) {
  // Loops and calls of functions are checked where they are compiled (driver/language_test.cc).
  bool known = true;
  ir::post_order(before.main().body, [&](const Expr& expr) {
    const auto* call = expr.as<ir::Call>();
    if (expr.kind() == ir::ExprKind::Loop || (call && !(call->op() && call->op()->has(ir::kPure)))) known = false;
  });
  if (!known) return;
  const auto inputs = random_inputs(before.main());
  const std::vector<Tensor> expected = evaluate(before, inputs), got = evaluate(after, inputs);
  ASSERT_EQ(expected.size(), got.size()) << text;
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(expected[i].shape(), got[i].shape()) << text;
    ASSERT_EQ(to_string(expected[i].dtype()), to_string(got[i].dtype())) << text;
    for (int64_t e = 0; e < got[i].size(); ++e) {
      const double a = expected[i].at(e), b = got[i].at(e);
      if (std::isnan(a) && std::isnan(b)) continue;
      ASSERT_TRUE(a == b || std::fabs(a - b) <= 1e-4 + 1e-4 * std::fabs(a))
          << text << "\noutput " << i << ", element " << e << ": " << b << " instead of " << a;
    }
  }
}

std::string run_case(const Case& entry) {
  const ir::Module before = ir::parse(entry.input, "case");
  PassContext context;
  context.verify = true;
  context.target.triple = "x86_64-unknown-linux-gnu";
  context.target.features = {"+avx2", "+fma"};
  context.target.vector_bytes = 32;
  context.target.fma = true;
  const ir::Module after = run_passes(before, entry.passes, context);
  expect_same_values(before, after, entry.input);
  return trimmed(ir::print(after, {.types = false, .spans = false, .constants = false}));
}

std::vector<std::string> files() {
  std::vector<std::string> names;
  for (const auto& file : fs::directory_iterator(kFolder)) {
    if (file.path().extension() == ".relay") names.push_back(file.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class PassText : public ::testing::TestWithParam<std::string> {};

TEST_P(PassText, GivesWhatTheFileSays) {
  op::register_operators();
  const bool bless = std::getenv("TREADLE_BLESS") != nullptr;
  const fs::path path = kFolder / (GetParam() + ".relay");
  std::string blessed;
  for (const Case& entry : read_cases(read_text(path))) {
    std::string got;
    try {
      got = run_case(entry);
    } catch (const Error& error) {
      got = std::string("error: ") + error.what();
      if (!entry.expected.starts_with("error: ")) ADD_FAILURE() << entry.input << "\n" << got;
    }
    if (!bless) {
      EXPECT_EQ(got, entry.expected) << entry.input;
    }
    blessed += (blessed.empty() ? "" : "====\n") + entry.input + "\n-->\n" + got + "\n";
  }
  if (bless) std::ofstream(path, std::ios::binary | std::ios::trunc) << blessed;
}

INSTANTIATE_TEST_SUITE_P(Files, PassText, ::testing::ValuesIn(files()), [](const auto& info) { return info.param; });

// Every pass has a file of cases.
TEST(PassTextFiles, CoverEveryPass) {
  std::string all;
  for (const std::string& name : files()) {
    for (const Case& entry : read_cases(read_text(kFolder / (name + ".relay")))) {
      for (const std::string& pass : entry.passes) all += " " + pass + " ";
    }
  }
  for (const Pass& pass : all_passes()) EXPECT_NE(all.find(" " + pass.name + " "), std::string::npos) << pass.name;
}

}  // namespace
}  // namespace treadle::pass
