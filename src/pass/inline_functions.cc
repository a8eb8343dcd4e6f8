// SPDX-License-Identifier: Apache-2.0
// Turns calls of functions that are not recursive into what they compute, and let-bound values into edges of the graph.
//
//   let %y = f(%x); g(%y, %y)                 =>   %0 = f(%x); g(%0, %0)
//   def @f(%a) { relu(%a) }  …  @f(%x)        =>   relu(%x)
//
// When:   the callee is a global function, a literal or a let-bound one, and does not reach itself.
// Not:    primitive functions (kernels), functions passed as values.
// Limits: Error Limit when the module grows beyond kMaxNodes expressions.
#include <functional>
#include <set>
#include <unordered_map>

#include "ir/visitor.h"
#include "pass/passes.h"

namespace treadle::pass {
namespace {

using ir::Expr;

constexpr size_t kMaxNodes = 4'000'000;

// Global functions from which `name` is reachable through calls or mentions.
bool is_recursive(const ir::Module& module, const std::string& name) {
  std::set<std::string> seen;
  std::vector<std::string> work = {name};
  while (!work.empty()) {
    const std::string current = std::move(work.back());
    work.pop_back();
    auto found = module.functions.find(current);
    if (found == module.functions.end()) continue;
    bool recursive = false;
    ir::post_order(found->second, [&](const Expr& expr) {
      const auto* global = expr.as<ir::GlobalVar>();
      if (!global) return;
      if (global->name == name) recursive = true;
      if (seen.insert(global->name).second) work.push_back(global->name);
    });
    if (recursive) return true;
  }
  return false;
}

bool mentions(const Expr& root, const Expr& var) {
  bool found = false;
  ir::post_order(root, [&](const Expr& expr) { found = found || expr.same_as(var); });
  return found;
}

// One round: replaces lets of plain values, and calls whose callee is a known function. Calls inside the inserted bodies are left for
// the next round.
class Inliner : public ir::Mutator {
 public:
  Inliner(const ir::Module& module, PassContext& context, size_t& nodes) : module_(module), context_(context), nodes_(nodes) {}
  bool changed = false;

 protected:
  Expr rewrite(const Expr&, const Expr& after) override {
    if (++nodes_ > kMaxNodes) fail(ErrorCode::Limit, "inlining makes the program larger than {} expressions", kMaxNodes);
    if (const auto* let = after.as<ir::Let>()) return inline_let(after, *let);
    const auto* call = after.as<ir::Call>();
    const ir::Function* function = call ? callee(*call) : nullptr;
    if (!function || function->is_primitive() || function->params.size() != call->args.size() || !context_.allow_rewrite()) return after;
    changed = true;
    return instantiate(*function, call->args);
  }

 private:
  Expr inline_let(const Expr& after, const ir::Let& let) {
    if (let.value.as<ir::Function>() && mentions(let.value, let.var)) return after;  // recursive
    if (!context_.allow_rewrite()) return after;
    changed = true;
    return ir::substitute(let.body, {{let.var.get(), let.value}});
  }

  const ir::Function* callee(const ir::Call& call) {
    if (const auto* function = call.callee.as<ir::Function>()) return function;
    const auto* global = call.callee.as<ir::GlobalVar>();
    if (!global) return nullptr;
    auto found = module_.functions.find(global->name);
    if (found == module_.functions.end()) return nullptr;
    auto [known, added] = recursive_.try_emplace(global->name, false);
    if (added) known->second = is_recursive(module_, global->name);
    return known->second ? nullptr : found->second.as<ir::Function>();
  }

  // The body with arguments for parameters, and fresh variables for its lets, since a variable is bound once.
  Expr instantiate(const ir::Function& function, const std::vector<Expr>& args) {
    std::map<const ir::ExprNode*, Expr> values;
    for (size_t i = 0; i < args.size(); ++i) values[function.params[i].get()] = args[i];
    ir::post_order(function.body, [&](const Expr& expr) {
      ++nodes_;
      if (const auto* let = expr.as<ir::Let>()) values[let->var.get()] = ir::var(let->var.as<ir::Var>()->name, let->var.type(), let->var->span);
    });
    return ir::substitute(function.body, values);
  }

  const ir::Module& module_;
  PassContext& context_;
  size_t& nodes_;
  std::map<std::string, bool> recursive_;
};

}  // namespace

ir::Module inline_functions(const ir::Module& module, PassContext& context) {
  ir::Module result = module;
  size_t nodes = 0;
  for (bool changed = true; changed;) {
    changed = false;
    auto main = result.functions.find("main");
    if (main == result.functions.end()) break;
    Inliner inliner(result, context, nodes);
    main->second = inliner.mutate(main->second);
    changed = inliner.changed;
  }
  return remove_unused_functions(result, context);
}

}  // namespace treadle::pass
