// SPDX-License-Identifier: Apache-2.0
// Algebraic rewrites that need more than one operator; rules of single operators are their own (CanonicalizeOps).
//
//   reshape(expand_dims(%x))          =>   reshape(%x) to the last shape          operators that move no element
//   reshape(%x) to its own shape      =>   %x
//   expand_dims(constant)             =>   the constant with that shape            no element is copied
//   copy(%x)                          =>   %x                                      operators that give their argument
//   (%x * c1) * c2                    =>   %x * (c1 * c2)                          constants meet and fold; likewise +
//   (%x + c1) * c2                    =>   %x * c2 + c1 * c2                       so that the scale can move into
//   weights
//
// When:   the inner value has one user where arithmetic is reordered.
// Not:    constants whose sums or products leave the range of normal numbers: (%x * 1e30) * 1e30 may be finite where
// 1e60 is not. Values: reordering constants rounds differently, by at most 2 ULP of the largest term.
#include <cmath>
#include <limits>

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
  return is_constant(call->args[1]) ? ScaledValue{call->args[0], call->args[1]}
                                    : ScaledValue{call->args[1], call->args[0]};
}

// True when combining the two constants does not stretch them to something much larger.
bool small_product(const Expr& a, const Expr& b) {
  const Dim elements = product(broadcast(a.tensor_type().shape, b.tensor_type().shape));
  return elements.is_const() &&
         elements.value() <= 4 * (a.as<ir::Constant>()->value.size() + b.as<ir::Constant>()->value.size());
}

// The smallest and the largest magnitude of a constant's elements, zeros left out; NaN and infinity are largest.
std::pair<double, double> magnitudes(const Expr& expr) {
  const Tensor& value = expr.as<ir::Constant>()->value;
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (int64_t i = 0; i < value.size(); ++i) {
    const double magnitude = std::fabs(value.at(i));
    if (!std::isfinite(magnitude)) return {magnitude, std::numeric_limits<double>::infinity()};
    if (magnitude == 0) continue;
    low = std::min(low, magnitude);
    high = std::max(high, magnitude);
  }
  return {low, high};
}

// True when every product and every sum of an element of `a` and one of `b` is zero or a normal number of their type.
// Sums cannot underflow, so only their upper end counts.
bool stays_normal(const Expr& a, const Expr& b) {
  const auto [low_a, high_a] = magnitudes(a);
  const auto [low_b, high_b] = magnitudes(b);
  const DType dtype = a.tensor_type().dtype;
  const bool half = dtype == dtype::float16_, wide = dtype == dtype::float64_;
  const double smallest = half   ? 0x1p-14
                          : wide ? std::numeric_limits<double>::min()
                                 : double{std::numeric_limits<float>::min()};
  const double largest = half   ? 65504
                         : wide ? std::numeric_limits<double>::max()
                                : double{std::numeric_limits<float>::max()};
  return low_a * low_b >= smallest && high_a * high_b <= largest && high_a + high_b <= largest;
}

// Whether two constants may become one: neither much larger nor out of range.
bool can_combine(const Expr& a, const Expr& b) { return small_product(a, b) && stays_normal(a, b); }

Expr combine_constants(const Expr& expr) {
  if (auto outer = with_constant(expr, ir::kMultiplyLike)) {
    if (auto inner = with_constant(outer->value, ir::kMultiplyLike);
        inner && can_combine(inner->constant, outer->constant)) {
      return op::multiply(inner->value, op::multiply(inner->constant, outer->constant));
    }
    if (auto inner = with_constant(outer->value, ir::kAddLike);
        inner && can_combine(inner->constant, outer->constant)) {
      return op::add(op::multiply(inner->value, outer->constant), op::multiply(inner->constant, outer->constant));
    }
  }
  if (auto outer = with_constant(expr, ir::kAddLike)) {
    if (auto inner = with_constant(outer->value, ir::kAddLike);
        inner && can_combine(inner->constant, outer->constant)) {
      return op::add(inner->value, op::add(inner->constant, outer->constant));
    }
  }
  return Expr();
}

Expr simplify_shape_only(const ir::Call& call, const Expr& expr) {
  const TensorType *from = as_tensor(call.args[0].type()), *to = as_tensor(expr.type());
  if (!from || !to) return Expr();
  if (equal(call.args[0].type(), expr.type())) return call.args[0];
  if (const auto* constant = call.args[0].as<ir::Constant>(); constant && is_static(to->shape))
    return ir::constant(constant->value.reshaped(static_extents(to->shape)), call.span);
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
