// SPDX-License-Identifier: Apache-2.0
// Turns calls of functions that are not recursive into what they compute, and let-bound values into edges of the graph.
//
//   let %y = f(%x); g(%y, %y)                 =>   %0 = f(%x); g(%0, %0)
//   def @f(%a) { relu(%a) }  …  @f(%x)        =>   relu(%x)
//
// When:   the callee is a global function, a literal or a let-bound one, and does not reach itself.
// Not:    primitive functions (kernels), functions passed as values, global functions that call recursive ones.
// Limits: Error Limit when inserted bodies have more than kMaxNodes expressions.
// What cannot be lowered must go, so PassContext::stop_after does not stop it.
#include <algorithm>
#include <set>
#include <unordered_map>

#include "ir/op.h"
#include "ir/visitor.h"
#include "pass/passes.h"

namespace treadle::pass {
namespace {

using ir::Expr;

constexpr size_t kMaxNodes = 1'000'000;
constexpr int kMaxRounds = 64;  // of one function: each inlines calls of functions that came in as arguments

bool mentions(const Expr& root, const Expr& var) {
  bool found = false;
  ir::post_order(root, [&](const Expr& expr) { found = found || expr.same_as(var); });
  return found;
}

// A copy of a function's body with arguments for parameters, and fresh variables for what it binds, since a variable is
// bound once.
class Instantiator : public ir::Mutator {
 public:
  Instantiator(const ir::Function& function, const std::vector<Expr>& args, size_t& nodes) : nodes_(nodes) {
    for (size_t i = 0; i < args.size(); ++i) values_[function.params[i].get()] = args[i];
  }

 protected:
  Expr enter(const Expr& expr) override {
    if (++nodes_ > kMaxNodes) fail(ErrorCode::Limit, "inlining inserts more than {} expressions", kMaxNodes);
    if (expr.as<ir::Var>()) {
      auto found = values_.find(expr.get());
      return found == values_.end() ? Expr() : found->second;
    }
    if (const auto* let = expr.as<ir::Let>()) rename(let->var);
    if (const auto* function = expr.as<ir::Function>()) {
      if (function->is_primitive()) return expr;
      for (const Expr& param : function->params) rename(param);
    }
    return Expr();
  }

  Expr rewrite(const Expr&, const Expr& after) override {
    if (const auto* let = after.as<ir::Let>())
      return ir::let(values_.at(let->var.get()), let->value, let->body, let->span);
    if (const auto* call = after.as<ir::Call>(); call && call->op() && call->op()->has(ir::kDataDependentShape))
      return ir::call(call->op(), call->args, call->attrs, call->span);  // each copy has extents of its own
    const auto* function = after.as<ir::Function>();
    if (!function) return after;
    std::vector<Expr> params;
    for (const Expr& param : function->params) params.push_back(values_.at(param.get()));
    return ir::function(std::move(params), function->body, function->ret_type, function->attrs, function->type_params,
                        function->span);
  }

 private:
  void rename(const Expr& var) { values_[var.get()] = ir::var(var.as<ir::Var>()->name, var.type(), var->span); }

  std::unordered_map<const ir::ExprNode*, Expr> values_;
  size_t& nodes_;
};

// Inlines lets, and calls of literal functions and of those global functions that are finished already.
class Inliner : public ir::Mutator {
 public:
  Inliner(const ir::Module& module, const std::set<std::string>& finished, PassContext& context, size_t& nodes)
      : module_(module), finished_(finished), context_(context), nodes_(nodes) {}
  bool changed = false;

 protected:
  Expr enter(const Expr& expr) override {
    if (const auto* let = expr.as<ir::Let>()) {
      const bool recursive = let->value.as<ir::Function>() && mentions(let->value, let->var);
      if (!recursive) bound_[let->var.get()] = let->value;
    } else if (const auto* function = expr.as<ir::Function>(); function && function->is_primitive()) {
      return expr;
    } else if (expr.as<ir::Var>()) {
      // A let's value is rewritten before its body is entered.
      auto found = bound_.find(expr.get());
      if (found != bound_.end()) return mapped(found->second);
    }
    return Expr();
  }

  Expr rewrite(const Expr&, const Expr& after) override {
    if (const auto* let = after.as<ir::Let>()) {
      if (!bound_.count(let->var.get())) return after;
      ++context_.rewrites;
      return let->body;
    }
    const auto* call = after.as<ir::Call>();
    const ir::Function* function = call ? callee(*call) : nullptr;
    if (!function || function->is_primitive() || function->params.size() != call->args.size()) return after;
    ++context_.rewrites;
    changed = true;
    return Instantiator(*function, call->args, nodes_).mutate(function->body);
  }

 private:
  const ir::Function* callee(const ir::Call& call) const {
    const auto* global = call.callee.as<ir::GlobalVar>();
    if (!global) return call.callee.as<ir::Function>();
    return finished_.count(global->name) ? module_.functions.at(global->name).as<ir::Function>() : nullptr;
  }

  const ir::Module& module_;
  const std::set<std::string>& finished_;
  PassContext& context_;
  size_t& nodes_;
  std::unordered_map<const ir::ExprNode*, Expr> bound_;  // what a let-bound variable stands for, before rewriting
};

// Functions in an order in which callees come before their callers; those on or behind a cycle are left out.
std::vector<std::string> callees_first(const ir::Module& module) {
  std::map<std::string, std::set<std::string>> callers;
  std::map<std::string, size_t> missing;  // callees that are not in the order yet
  for (const auto& [name, function] : module.functions) {
    std::set<std::string> callees;
    ir::post_order(function, [&](const Expr& expr) {
      const auto* global = expr.as<ir::GlobalVar>();
      if (global && module.functions.count(global->name)) callees.insert(global->name);
    });
    for (const std::string& callee : callees) callers[callee].insert(name);
    missing[name] = callees.size();
  }
  std::vector<std::string> order;
  for (const auto& [name, count] : missing) {
    if (count == 0) order.push_back(name);
  }
  for (size_t i = 0; i < order.size(); ++i) {
    for (const std::string& caller : callers[order[i]]) {
      if (--missing[caller] == 0) order.push_back(caller);
    }
  }
  return order;
}

}  // namespace

ir::Module inline_functions(const ir::Module& module, PassContext& context) {
  ir::Module result = module;
  std::vector<std::string> order = callees_first(module);
  if (module.functions.count("main") && std::find(order.begin(), order.end(), "main") == order.end())
    order.push_back("main");
  std::set<std::string> finished;
  size_t nodes = 0;
  for (const std::string& name : order) {
    Expr& function = result.functions.at(name);
    bool changed = true;
    for (int round = 0; changed && round < kMaxRounds; ++round) {
      Inliner inliner(result, finished, context, nodes);
      function = inliner.mutate(function);
      changed = inliner.changed;
    }
    finished.insert(name);
  }
  return remove_unused_functions(result, context);
}

}  // namespace treadle::pass
