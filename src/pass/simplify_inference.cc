// SPDX-License-Identifier: Apache-2.0
// Writes operators that have no kernel of their own with simpler ones, as each operator's decomposition says.
//
//   nn.batch_norm(%x, %gamma, %beta, %mean, %var).0   =>   multiply(%x, %scale) + %shift
//   nn.dropout(%x)                                    =>   %x
//
// Values: as each decomposition documents; it is the operator's definition.
// What has no kernel must go, so PassContext::stop_after does not stop it.
#include <utility>

#include "pass/passes.h"
#include "pass/rewriter.h"

namespace treadle::pass {
namespace {

using ir::Expr;

constexpr int kMaxDepth = 8;  // of decompositions that use decomposed operators

}  // namespace

ir::Module simplify_inference(const ir::Module& module, PassContext& context) {
  auto decompose = [](const ir::Call& call, const Expr&, const RewriteInfo&) {
    const ir::Op& op = *call.op();
    return !op.compute && !op.runtime && op.decompose ? op.decompose(call) : Expr();
  };
  ir::Module result = module;
  const int stop_after = std::exchange(context.stop_after, -1);
  // A decomposition's inner calls are new operands; another round reaches them.
  for (int depth = 0; depth < kMaxDepth; ++depth) {
    const int before = context.rewrites;
    result = rewrite_calls(result, context, decompose);
    if (context.rewrites == before) break;
  }
  context.stop_after = stop_after;
  return result;
}

}  // namespace treadle::pass
