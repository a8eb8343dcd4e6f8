// SPDX-License-Identifier: Apache-2.0
// Algebraic rewrites that need more than one operator; rules of single operators are their own (CanonicalizeOps).
//
//   reshape(expand_dims(%x))          =>   reshape(%x) to the last shape          operators that move no element
//   reshape(%x) to its own shape      =>   %x
//   copy(%x)                          =>   %x                                      operators that give their argument
//   (%x * c1) * c2                    =>   %x * (c1 * c2)                          constants meet and fold; likewise +
//   (%x + c1) * c2                    =>   %x * c2 + c1 * c2                       so that the scale can move into weights
//
// When:   the inner value has one user where arithmetic is reordered.
// Values: reordering constants rounds differently, by at most 2 ULP of the largest term.
#include "op/tensor/binary.h"
#include "op/tensor/reshape.h"
#include "pass/passes.h"
#include "pass/rewriter.h"

namespace treadle::pass {
namespace {

using ir::Expr;

bool is_constant(const Expr& expr) { return expr.as<ir::Constant>() != nullptr; }

// The call with its constant second, when exactly one argument is constant; commutative operators only.
struct ScaledValue {
  Expr value, constant;
};

std::optional<ScaledValue> with_constant(const Expr& expr, ir::Trait trait) {
  const ir::Call* call = op_call(expr);
  if (!call || !call->op()->has(trait) || call->args.size() != 2) return std::nullopt;
  if (!as_tensor(expr.type()) || !as_tensor(expr.type())->dtype.is_float()) return std::nullopt;
  if (is_constant(call->args[1]) == is_constant(call->args[0])) return std::nullopt;
  return is_constant(call->args[1]) ? ScaledValue{call->args[0], call->args[1]} : ScaledValue{call->args[1], call->args[0]};
}

// True when combining the two constants does not stretch them to something much larger.
bool small_product(const Expr& a, const Expr& b) {
  const Dim elements = product(broadcast(a.tensor_type().shape, b.tensor_type().shape));
  return elements.is_const() && elements.value() <= 4 * (a.as<ir::Constant>()->value.size() + b.as<ir::Constant>()->value.size());
}

Expr combine_constants(const Expr& expr) {
  if (auto outer = with_constant(expr, ir::kMultiplyLike)) {
    if (auto inner = with_constant(outer->value, ir::kMultiplyLike); inner && small_product(inner->constant, outer->constant)) {
      return op::multiply(inner->value, op::multiply(inner->constant, outer->constant));
    }
    if (auto inner = with_constant(outer->value, ir::kAddLike); inner && small_product(inner->constant, outer->constant)) {
      return op::add(op::multiply(inner->value, outer->constant), op::multiply(inner->constant, outer->constant));
    }
  }
  if (auto outer = with_constant(expr, ir::kAddLike)) {
    if (auto inner = with_constant(outer->value, ir::kAddLike); inner && small_product(inner->constant, outer->constant)) {
      return op::add(inner->value, op::add(inner->constant, outer->constant));
    }
  }
  return Expr();
}

Expr simplify_shape_only(const ir::Call& call, const Expr& expr) {
  const TensorType *from = as_tensor(call.args[0].type()), *to = as_tensor(expr.type());
  if (!from || !to) return Expr();
  if (equal(call.args[0].type(), expr.type())) return call.args[0];
  const ir::Call* inner = op_call(call.args[0]);
  if (!inner || !inner->op()->has(ir::kShapeOnly) || !as_tensor(inner->args[0].type())) return Expr();
  return op::reshape_to(inner->args[0], to->shape);
}

}  // namespace

ir::Module simplify_expr(const ir::Module& module, PassContext& context) {
  return rewrite_calls(module, context, [](const ir::Call& call, const Expr& expr, const RewriteInfo& info) {
    const ir::Op& op = *call.op();
    if (op.has(ir::kIdentity) && equal(call.args[0].type(), expr.type())) return call.args[0];
    if (op.has(ir::kShapeOnly)) return simplify_shape_only(call, expr);
    if (op.has(ir::kMultiplyLike) || op.has(ir::kAddLike)) {
      const Expr& data = is_constant(call.args[0]) ? call.args[1] : call.args[0];
      if (info.single_use(data)) return combine_constants(expr);
    }
    return Expr();
  });
}

}  // namespace treadle::pass
