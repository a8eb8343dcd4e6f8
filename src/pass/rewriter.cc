// SPDX-License-Identifier: Apache-2.0
#include "pass/rewriter.h"

namespace treadle::pass {
namespace {

using ir::Expr;

constexpr int kMaxRounds = 32;  // of one call: rules that undo each other must not hang the compiler

class CallRewriter : public ir::Mutator {
 public:
  CallRewriter(PassContext& context, const std::function<Expr(const ir::Call&, const Expr&)>& rule) : context_(context), rule_(rule) {}

 protected:
  Expr enter(const Expr& expr) override {
    const auto* function = expr.as<ir::Function>();
    return function && function->is_primitive() ? expr : Expr();
  }

  Expr rewrite(const Expr&, const Expr& after) override {
    Expr current = after;
    for (int round = 0; round < kMaxRounds; ++round) {
      // A literal tuple's field is the field itself; rules that give tuples (batch_norm) rely on it.
      if (const auto* item = current.as<ir::TupleGetItem>()) {
        const auto* tuple = item->tuple.as<ir::Tuple>();
        return tuple ? tuple->fields[item->index] : current;
      }
      const ir::Call* call = op_call(current);
      if (!call) break;
      Expr replacement = rule_(*call, current);
      if (!replacement.defined() || replacement.same_as(current) || !context_.allow_rewrite()) break;
      TREADLE_CHECK(!replacement.type() || !current.type() || compatible(replacement.type(), current.type()), "rewriting {} changes its type from {} to {}",
                    call->op()->name, to_string(current.type()), to_string(replacement.type()));
      current = replacement;
    }
    return current;
  }

 private:
  PassContext& context_;
  const std::function<Expr(const ir::Call&, const Expr&)>& rule_;
};

}  // namespace

ir::Module rewrite_calls(const ir::Module& module, PassContext& context, const std::function<Expr(const ir::Call&, const Expr&)>& rule) {
  ir::Module result = module;
  for (auto& [name, function] : result.functions) {
    CallRewriter rewriter(context, rule);
    function = rewriter.mutate(function);
  }
  return result;
}

}  // namespace treadle::pass
