// SPDX-License-Identifier: Apache-2.0
// Applies the local rewrites that operators declare as always good (Op::canonicalise): bias_add as an addition that
// fuses, a transpose of a transpose as one, a cast to the same dtype as nothing. Values: equal, as each operator's rule
// states.
#include "pass/passes.h"
#include "pass/rewriter.h"

namespace treadle::pass {

ir::Module canonicalize_ops(const ir::Module& module, PassContext& context) {
  return rewrite_calls(module, context, [](const ir::Call& call, const ir::Expr&, const RewriteInfo&) {
    return call.op()->canonicalise ? call.op()->canonicalise(call) : ir::Expr();
  });
}

}  // namespace treadle::pass
