// SPDX-License-Identifier: Apache-2.0
// Iterative traversals and rewriting of the graph IR.
#include "ir/visitor.h"

#include <algorithm>
#include <unordered_set>

#include "ir/op.h"
#include "ir/unify.h"

namespace treadle::ir {

std::vector<Expr> children(const Expr& expr) {
  switch (expr.kind()) {
    case ExprKind::Var:
    case ExprKind::GlobalVar:
    case ExprKind::Op:
    case ExprKind::Constant:
      return {};
    case ExprKind::Call: {
      const Call& call = *expr.as<Call>();
      std::vector<Expr> result;
      result.reserve(call.args.size() + 1);
      if (!call.op()) result.push_back(call.callee);
      result.insert(result.end(), call.args.begin(), call.args.end());
      return result;
    }
    case ExprKind::Tuple:
      return expr.as<Tuple>()->fields;
    case ExprKind::TupleGetItem:
      return {expr.as<TupleGetItem>()->tuple};
    case ExprKind::Let:
      return {expr.as<Let>()->value, expr.as<Let>()->body};
    case ExprKind::If: {
      const If& node = *expr.as<If>();
      return {node.condition, node.then_branch, node.else_branch};
    }
    case ExprKind::Function:
      return {expr.as<Function>()->body};
    case ExprKind::Loop: {
      const Loop& node = *expr.as<Loop>();
      std::vector<Expr> result;
      if (node.trip_count.defined()) result.push_back(node.trip_count);
      result.insert(result.end(), node.initial.begin(), node.initial.end());
      if (node.condition.defined()) result.push_back(node.condition);
      result.push_back(node.body);
      return result;
    }
  }
  return {};
}

namespace {

// A node on the explicit stack of a depth-first walk, and how many of its operands are done.
struct Frame {
  Expr expr;
  std::vector<Expr> operands;
  size_t next = 0;
};

// Type that a rebuilt function declares: the old one, unless the body has become something else.
Type declared_result(const Function& before, const Expr& body) {
  if (!before.ret_type || !body.type() || compatible(before.ret_type, body.type())) return before.ret_type;
  return body.type();
}

}  // namespace

void post_order(const Expr& root, const std::function<void(const Expr&)>& f) {
  if (!root.defined()) return;
  std::unordered_set<const ExprNode*> seen{root.get()};
  std::vector<Frame> stack;
  stack.push_back({root, children(root)});
  while (!stack.empty()) {
    Frame& top = stack.back();
    if (top.next == top.operands.size()) {
      f(top.expr);
      stack.pop_back();
      continue;
    }
    const Expr operand = top.operands[top.next++];
    if (seen.insert(operand.get()).second) stack.push_back({operand, children(operand)});
  }
}

Expr Mutator::mapped(const Expr& before) const {
  const auto found = memo_.find(before.get());
  return found == memo_.end() ? before : found->second;
}

Expr Mutator::mutate(const Expr& root) {
  std::vector<Frame> stack;
  auto visit = [&](const Expr& expr) {
    if (memo_.count(expr.get())) return;
    keep_alive_.push_back(expr);  // the memo's keys are addresses
    if (Expr replaced = enter(expr); replaced.defined()) {
      memo_[expr.get()] = std::move(replaced);
      return;
    }
    stack.push_back({expr, children(expr)});
  };
  visit(root);
  while (!stack.empty()) {
    Frame& top = stack.back();
    if (top.next < top.operands.size()) {
      const Expr operand = top.operands[top.next++];
      visit(operand);
      continue;
    }
    const Frame done = std::move(top);
    stack.pop_back();
    std::vector<Expr> operands;
    operands.reserve(done.operands.size());
    bool changed = false;
    for (const Expr& operand : done.operands) {
      operands.push_back(mapped(operand));
      changed |= !operands.back().same_as(operand);
    }
    const Expr after = changed ? with_children(done.expr, operands) : done.expr;
    Expr result = rewrite(done.expr, after);
    if (!result.defined()) result = after;
    memo_[done.expr.get()] = std::move(result);
  }
  return mapped(root);
}

Expr with_children(const Expr& expr, const std::vector<Expr>& operands) {
  switch (expr.kind()) {
    case ExprKind::Var:
    case ExprKind::GlobalVar:
    case ExprKind::Op:
    case ExprKind::Constant:
      return expr;
    case ExprKind::Call: {
      const Call& node = *expr.as<Call>();
      if (node.op()) {
        Expr made = call(node.op(), operands, node.attrs, node.span);
        // Extents that the call brings into being keep the symbols by which others know them.
        if (node.op()->has(kDataDependentShape) && is_complete(node.type) &&
            same_up_to_anonymous(made.type(), node.type))
          return std::make_shared<Call>(node.callee, operands, node.attrs, node.type, node.span);
        return made;
      }
      return call(operands.at(0), {operands.begin() + 1, operands.end()}, node.span);
    }
    case ExprKind::Tuple:
      return tuple(operands, expr->span);
    case ExprKind::TupleGetItem:
      return tuple_get(operands.at(0), expr.as<TupleGetItem>()->index, expr->span);
    case ExprKind::Let:
      return let(expr.as<Let>()->var, operands.at(0), operands.at(1), expr->span);
    case ExprKind::If:
      return if_expr(operands.at(0), operands.at(1), operands.at(2), expr->span);
    case ExprKind::Function: {
      const Function& node = *expr.as<Function>();
      return function(node.params, operands.at(0), declared_result(node, operands.at(0)), node.attrs, node.type_params,
                      node.span);
    }
    case ExprKind::Loop: {
      const Loop& node = *expr.as<Loop>();
      size_t next = 0;
      Expr trip_count = node.trip_count.defined() ? operands.at(next++) : Expr();
      std::vector<Expr> initial(operands.begin() + next, operands.begin() + next + node.initial.size());
      next += node.initial.size();
      Expr condition = node.condition.defined() ? operands.at(next++) : Expr();
      return loop(std::move(trip_count), std::move(condition), operands.at(next), std::move(initial), node.num_scanned,
                  node.span);
    }
  }
  return expr;
}

Expr substitute(const Expr& expr, const std::map<const ExprNode*, Expr>& values) {
  class Substitute : public Mutator {
   public:
    explicit Substitute(const std::map<const ExprNode*, Expr>& values) : values_(values) {}

   protected:
    Expr enter(const Expr& expr) override {
      const auto found = values_.find(expr.get());
      return found == values_.end() ? Expr() : found->second;
    }
    Expr rewrite(const Expr&, const Expr& after) override { return after; }

   private:
    const std::map<const ExprNode*, Expr>& values_;
  };
  if (values.empty()) return expr;
  return Substitute(values).mutate(expr);
}

std::vector<Expr> free_vars(const Expr& expr) {
  std::vector<Expr> used;
  std::unordered_set<const ExprNode*> bound;
  post_order(expr, [&](const Expr& e) {
    if (e.kind() == ExprKind::Var)
      used.push_back(e);
    else if (const auto* let = e.as<Let>())
      bound.insert(let->var.get());
    else if (const auto* function = e.as<Function>()) {
      for (const Expr& param : function->params) bound.insert(param.get());
    }
  });
  // A variable is bound once in a well-formed graph, so being bound anywhere inside means not being free.
  std::erase_if(used, [&](const Expr& e) { return bound.count(e.get()) != 0; });
  return used;
}

std::unordered_map<const ExprNode*, int> count_uses(const Expr& root) {
  std::unordered_map<const ExprNode*, int> uses;
  if (!root.defined()) return uses;
  uses[root.get()] = 1;
  post_order(root, [&](const Expr& e) {
    for (const Expr& operand : children(e)) ++uses[operand.get()];
  });
  return uses;
}

int64_t first_free_anonymous(const Module& module) {
  int64_t first = 0;
  std::unordered_set<const TypeNode*> seen;
  const auto look = [&](const Type& type) {
    if (!type || !seen.insert(type.get()).second) return;
    for_each_anonymous(type, [&](const std::string& name) {
      if (const auto number = anonymous_number(name)) first = std::max(first, *number + 1);
    });
  };
  for (const auto& [name, function] : module.functions) {
    post_order(function, [&](const Expr& expr) {
      look(expr.type());
      if (const auto* let = expr.as<Let>()) look(let->var.type());
    });
  }
  return first;
}

}  // namespace treadle::ir
