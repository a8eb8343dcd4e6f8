// SPDX-License-Identifier: Apache-2.0
#include "pass/rewriter.h"

namespace treadle::pass {
namespace {

using ir::Expr;

constexpr int kMaxRounds = 32;  // of one call: rules that undo each other must not hang the compiler

class CallRewriter : public ir::Mutator, public RewriteInfo {
 public:
  CallRewriter(const Expr& root, PassContext& context, const RewriteRule& rule)
      : context_(context), rule_(rule), uses_(ir::count_uses(root)) {}

  bool single_use(const Expr& expr) const override {
    auto found = uses_.find(expr.get());
    return found == uses_.end() || found->second <= 1;
  }

 protected:
  Expr enter(const Expr& expr) override {
    const auto* function = expr.as<ir::Function>();
    return function && function->is_primitive() ? expr : Expr();
  }

  Expr rewrite(const Expr& before, const Expr& after) override {
    Expr result = apply_rule(after);
    // Whoever used the old expression uses the new one.
    if (!result.same_as(before)) {
      if (auto found = uses_.find(before.get()); found != uses_.end()) uses_[result.get()] += found->second;
      keep_alive_.push_back(result);
    }
    return result;
  }

 private:
  Expr apply_rule(const Expr& expr) {
    Expr current = expr;
    for (int round = 0; round < kMaxRounds; ++round) {
      // A literal tuple's field is the field itself; rules that give tuples (batch_norm) rely on it.
      if (const auto* item = current.as<ir::TupleGetItem>()) {
        const auto* tuple = item->tuple.as<ir::Tuple>();
        return tuple ? tuple->fields[item->index] : current;
      }
      const ir::Call* call = op_call(current);
      if (!call) break;
      Expr replacement = rule_(*call, current, *this);
      if (!replacement.defined() || replacement.same_as(current) || !context_.allow_rewrite()) break;
      TREADLE_CHECK(!replacement.type() || !current.type() || compatible(replacement.type(), current.type()),
                    "rewriting {} changes its type from {} to {}", call->op()->name, to_string(current.type()),
                    to_string(replacement.type()));
      current = replacement;
    }
    return current;
  }

  PassContext& context_;
  const RewriteRule& rule_;
  std::unordered_map<const ir::ExprNode*, int> uses_;
  std::vector<Expr> keep_alive_;  // keys of uses_ must not be reused by new nodes
};

}  // namespace

ir::Module rewrite_calls(const ir::Module& module, PassContext& context, const RewriteRule& rule) {
  ir::Module result = module;
  for (auto& [name, function] : result.functions) {
    CallRewriter rewriter(function, context, rule);
    function = rewriter.mutate(function);
  }
  return result;
}

}  // namespace treadle::pass
