// SPDX-License-Identifier: Apache-2.0
// Drops bindings and tuple fields that nothing uses.
//
//   let %x = exp(%a); %b        =>   %b
//   (exp(%a), %b).1             =>   %b
//
// Values: equal; every operator but the random ones is pure. A graph edge that nothing uses does not exist in the IR
// anyway.
#include <unordered_set>

#include "pass/passes.h"
#include "pass/rewriter.h"

namespace treadle::pass {
namespace {

using ir::Expr;

class Eliminator : public ir::Mutator {
 public:
  Eliminator(const Expr& root, PassContext& context) : context_(context) {
    ir::post_order(root, [&](const Expr& expr) {
      if (expr.as<ir::Var>()) used_.insert(expr.get());
    });
  }

 protected:
  Expr rewrite(const Expr&, const Expr& after) override {
    if (const auto* let = after.as<ir::Let>()) {
      if (!used_.count(let->var.get()) && is_pure(let->value) && context_.allow_rewrite()) return let->body;
    }
    const auto* item = after.as<ir::TupleGetItem>();
    const auto* tuple = item ? item->tuple.as<ir::Tuple>() : nullptr;
    return tuple && context_.allow_rewrite() ? tuple->fields[item->index] : after;
  }

 private:
  static bool is_pure(const Expr& value) {
    bool pure = true;
    ir::post_order(value, [&](const Expr& expr) {
      const ir::Call* call = op_call(expr);
      if (call && !call->op()->has(ir::kPure)) pure = false;
    });
    return pure;
  }

  PassContext& context_;
  std::unordered_set<const ir::ExprNode*> used_;
};

}  // namespace

ir::Module dead_code_elimination(const ir::Module& module, PassContext& context) {
  ir::Module result = module;
  for (auto& [name, function] : result.functions) function = Eliminator(function, context).mutate(function);
  return result;
}

}  // namespace treadle::pass
