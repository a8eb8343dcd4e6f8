// SPDX-License-Identifier: Apache-2.0
#include "driver/evaluator.h"

#include "driver/package.h"
#include "ir/visitor.h"
#include "lower/kernel.h"
#include "pass/interpreter.h"
#include "runtime/session.h"

namespace treadle::driver {
namespace {

using ir::Expr;

// Larger constants are inputs of the program, so that they are not copied into it.
constexpr int64_t kMaxEmbedded = 64;
// Below so many results of so few elements, interpreting costs less than starting the code generator.
constexpr size_t kMaxInterpretedRoots = 64;
constexpr int64_t kMaxInterpretedElements = 4096;

int64_t elements_of(const Type& type) {
  int64_t elements = 0;
  for (const TensorType* leaf : lower::tensors_of(type)) elements += product(leaf->shape).value();
  return elements;
}

// Elements that evaluating the expressions touches.
int64_t total_elements(const std::vector<Expr>& roots) {
  int64_t total = 0;
  ir::post_order(ir::tuple(roots), [&](const Expr& expr) {
    if (expr.kind() == ir::ExprKind::Call || expr.kind() == ir::ExprKind::Constant) total += elements_of(expr.type());
  });
  return total;
}

std::vector<std::vector<Tensor>> run_compiled(const std::vector<Expr>& roots, BuildOptions options) {
  std::map<const ir::ExprNode*, Expr> params;
  std::vector<Expr> variables;
  std::vector<Tensor> inputs;
  const Expr all = ir::tuple(roots);
  ir::post_order(all, [&](const Expr& expr) {
    const auto* constant = expr.as<ir::Constant>();
    if (!constant || constant->value.size() <= kMaxEmbedded) return;
    variables.push_back(ir::var(fmt::format("c{}", variables.size()), expr.type()));
    params[expr.get()] = variables.back();
    inputs.push_back(constant->value);
  });
  ir::Module module;
  module.functions["main"] = ir::function(variables, ir::substitute(all, params));
  // Nothing is left to fold, and nothing here is worth the passes that look for it.
  options.disabled_passes.insert({"FoldConstant", "AlterOpLayout", "FoldScaleAxis", "EliminateCommonSubexpr"});
  options.cache = options.profile = false;
  options.print = nullptr;
  options.stop_after = -1;
  options.target = "llvm -mcpu=native";  // this machine computes them, whatever runs the model
  Session session(build(module, options).executable());
  const std::vector<Tensor> outputs = session.run(inputs);
  std::vector<std::vector<Tensor>> results;
  size_t next = 0;
  for (const Expr& root : roots) {
    const size_t count = lower::tensors_of(root.type()).size();
    results.emplace_back(outputs.begin() + next, outputs.begin() + next + count);
    next += count;
  }
  return results;
}

}  // namespace

pass::Evaluator compiled_evaluator(const BuildOptions& options) {
  return [options](const std::vector<Expr>& roots) {
    if (roots.size() <= kMaxInterpretedRoots && total_elements(roots) <= kMaxInterpretedElements) {
      std::vector<std::vector<Tensor>> results;
      for (const Expr& root : roots) results.push_back(pass::interpret(root));
      return results;
    }
    return run_compiled(roots, options);
  };
}

}  // namespace treadle::driver
