// SPDX-License-Identifier: Apache-2.0
#include "ir/print.h"
#include "ir/visitor.h"

namespace treadle::ir {
namespace {

PrintScope* common(PrintScope* a, PrintScope* b) {
  while (a != b) {
    PrintScope*& deeper = a->depth >= b->depth ? a : b;
    deeper = const_cast<PrintScope*>(deeper->parent);
  }
  return a;
}

// Written where they are used whatever the number of uses.
bool is_atom(const Expr& expr) {
  switch (expr.kind()) {
    case ExprKind::Var:
    case ExprKind::GlobalVar:
    case ExprKind::Op:
    case ExprKind::Constant:
    case ExprKind::TupleGetItem:
      return true;
    default:
      return false;
  }
}

}  // namespace

PrintPlan::PrintPlan(const Expr& function) {
  std::vector<Expr> order;
  post_order(function, [&](const Expr& expr) { order.push_back(expr); });
  uses_[function.get()] = {nullptr, 1, true};
  // Users come before operands, so that a node's block is known when its operands are looked at.
  for (auto expr = order.rbegin(); expr != order.rend(); ++expr) place_operands(*expr);
  for (const Expr& expr : order) {
    if (!is_inline(expr)) uses_.at(expr.get()).scope->bindings.push_back(expr);
  }
}

void PrintPlan::use(const Expr& operand, PrintScope* scope, bool in_place) {
  Use& use = uses_[operand.get()];
  use.in_place = in_place && use.count == 0;
  use.scope = use.count == 0 ? scope : common(use.scope, scope);
  ++use.count;
}

PrintScope* PrintPlan::open(const Expr& owner, PrintScope* parent, const Expr& tail) {
  auto& scopes = scopes_[owner.get()];
  scopes.push_back(std::make_unique<PrintScope>(PrintScope{parent, parent ? parent->depth + 1 : 0, tail, {}}));
  return scopes.back().get();
}

void PrintPlan::place_operands(const Expr& expr) {
  PrintScope* scope = uses_.at(expr.get()).scope;
  if (const auto* let = expr.as<Let>()) {
    // A let in the middle of an expression stands in a block of its own: the bindings of its value must not leave it.
    use(let->value, scope, true);
    use(let->body, open(expr, scope, let->body), true);
  } else if (const auto* node = expr.as<If>()) {
    use(node->condition, scope, false);
    use(node->then_branch, open(expr, scope, node->then_branch), true);
    use(node->else_branch, open(expr, scope, node->else_branch), true);
  } else if (const auto* function = expr.as<Function>()) {
    use(function->body, open(expr, scope, function->body), true);
  } else if (const auto* loop = expr.as<Loop>()) {
    for (const Expr& operand : children(expr)) {
      use(operand, scope, operand.same_as(loop->body) || operand.same_as(loop->condition));
    }
  } else {
    for (const Expr& operand : children(expr)) use(operand, scope, false);
  }
}

bool PrintPlan::is_inline(const Expr& expr) const { return is_atom(expr) || uses_.at(expr.get()).in_place; }

}  // namespace treadle::ir
