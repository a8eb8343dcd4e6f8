// SPDX-License-Identifier: Apache-2.0
// The pass that CONTRIBUTING.md adds as an example: drops operators that give their argument unchanged.
//
//   copy(%x)   =>   %x
//
// When:   the operator has the trait kIdentity, and the result has the argument's type.
// Values: equal.
#include "remove_identity.h"

#include "ir/op.h"
#include "ir/visitor.h"

namespace treadle::pass {
namespace {

class RemoveIdentity : public ir::Mutator {
 public:
  explicit RemoveIdentity(PassContext& context) : context_(context) {}

 protected:
  ir::Expr rewrite(const ir::Expr&, const ir::Expr& after) override {
    const auto* call = after.as<ir::Call>();
    if (!call || !call->op() || !call->op()->has(ir::kIdentity)) return after;
    if (!equal(call->type, call->args[0].type())) return after;
    return context_.allow_rewrite() ? call->args[0] : after;
  }

 private:
  PassContext& context_;
};

}  // namespace

ir::Module remove_identity(const ir::Module& module, PassContext& context) {
  ir::Module result = module;
  RemoveIdentity rewriter(context);
  for (auto& [name, function] : result.functions) function = rewriter.mutate(function);
  return result;
}

}  // namespace treadle::pass
