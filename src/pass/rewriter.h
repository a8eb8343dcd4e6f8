// SPDX-License-Identifier: Apache-2.0
// What passes that rewrite single operator calls share.
#pragma once

#include <functional>

#include "ir/op.h"
#include "ir/visitor.h"
#include "pass/pass.h"

namespace treadle::pass {

// The operator call behind an expression; null when it is something else.
inline const ir::Call* op_call(const ir::Expr& expr) {
  const auto* call = expr.as<ir::Call>();
  return call && call->op() ? call : nullptr;
}

// What a rule may ask about the graph that it rewrites.
class RewriteInfo {
 public:
  // True when exactly one other expression (or nothing) uses `expr`; work in it is not done twice when it moves into
  // its user.
  virtual bool single_use(const ir::Expr& expr) const = 0;

 protected:
  ~RewriteInfo() = default;
};

using RewriteRule = std::function<ir::Expr(const ir::Call& call, const ir::Expr& expr, const RewriteInfo& info)>;

// Applies `rule` to every call of an operator, operands first, outside primitive functions. The rule gives the
// replacement (of the same type), or an undefined expression to leave the call. A replacement is tried again, up to
// kMaxRounds times.
ir::Module rewrite_calls(const ir::Module& module, PassContext& context, const RewriteRule& rule);

}  // namespace treadle::pass
