// SPDX-License-Identifier: Apache-2.0
#include "op/tensor/binary.h"

#include "op/relations.h"

namespace treadle::op {
namespace {

using ir::FusionKind;
using loop::BinaryOp;

enum class Accepts { Any, Number, Integer, IntegerOrBool, Bool };

void check_accepts(const ir::Relation& relation, Accepts accepts) {
  for (size_t i = 0; i < 2; ++i) {
    const TensorType* x = relation.tensor(i);
    if (!x) continue;
    const bool boolean = x->dtype.is_bool(), integer = x->dtype.is_integer();
    const auto wrong = [&](const char* wanted) {
      fail(ErrorCode::TypeMismatch, "input {} is {}, it must be {}", i, to_string(x->dtype), wanted);
    };
    if (accepts == Accepts::Number && boolean) wrong("a number");
    if (accepts == Accepts::Integer && !integer) wrong("an integer");
    if (accepts == Accepts::IntegerOrBool && !integer && !boolean) wrong("an integer or bool");
    if (accepts == Accepts::Bool && !boolean) wrong("bool");
  }
}

using Function = std::function<loop::Expr(loop::Expr, loop::Expr)>;

ir::ComputeFn binary_compute(std::string name, Function f) {
  return [name = std::move(name), f = std::move(f)](const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
    return std::vector{broadcast_compute(name, output_shape(call), input_types(call), inputs,
                                         [&](const std::vector<loop::Expr>& v) { return f(v[0], v[1]); })};
  };
}

Function plain(BinaryOp op) {
  return [op](loop::Expr a, loop::Expr b) { return loop::binary(op, std::move(a), std::move(b)); };
}

// Truncated quotient: of floats too.
loop::Expr truncated_quotient(loop::Expr a, loop::Expr b) {
  loop::Expr quotient = loop::div(std::move(a), std::move(b));
  return quotient.dtype().is_float() ? loop::intrinsic(loop::Intrinsic::Trunc, {quotient}) : quotient;
}

loop::Expr floored_quotient(loop::Expr a, loop::Expr b) {
  if (!a.dtype().is_float()) return loop::floordiv(std::move(a), std::move(b));
  return loop::intrinsic(loop::Intrinsic::Floor, {loop::div(std::move(a), std::move(b))});
}

loop::Expr power_of(loop::Expr a, loop::Expr b) {
  return loop::intrinsic(loop::Intrinsic::Pow, {std::move(a), std::move(b)});
}

ir::OpBuilder add_binary(ir::OpRegistry& registry, const char* name, Accepts accepts, const char* summary,
                         const char* formula, Function f, uint32_t traits = 0, bool comparison = false) {
  return registry.add(name, "tensor/binary")
      .summary(summary)
      .formula(formula)
      .source("Relay 0.16")
      .input("lhs", "any shape")
      .input("rhs", "the dtype of lhs; the shapes broadcast")
      .fusion(FusionKind::Broadcast)
      .traits(traits)
      .relation([accepts, comparison](ir::Relation& relation) {
        check_accepts(relation, accepts);
        comparison ? comparison_relation(relation) : broadcast_relation(relation);
      })
      .layout(broadcast_layout)
      .compute(binary_compute(name, std::move(f)));
}

void register_arithmetic(ir::OpRegistry& registry) {
  constexpr Accepts number = Accepts::Number;
  add_binary(registry, "add", number, "Sum.", "y = a + b", plain(BinaryOp::Add), ir::kCommutative | ir::kAddLike);
  add_binary(registry, "subtract", number, "Difference.", "y = a - b", plain(BinaryOp::Sub));
  add_binary(registry, "multiply", number, "Product.", "y = a * b", plain(BinaryOp::Mul),
             ir::kCommutative | ir::kMultiplyLike);
  add_binary(registry, "divide", number, "Quotient; of integers truncated toward zero.", "y = a / b",
             plain(BinaryOp::Div));
  add_binary(registry, "floor_divide", number, "Quotient rounded toward minus infinity.", "y = floor(a / b)",
             floored_quotient);
  add_binary(registry, "trunc_divide", number, "Quotient rounded toward zero.", "y = trunc(a / b)", truncated_quotient);
  add_binary(registry, "floor_mod", number, "Remainder with the sign of the divisor, of floats exact.",
             "y = a - b * floor(a / b)", plain(BinaryOp::FloorMod));
  add_binary(registry, "trunc_mod", number, "Remainder with the sign of the dividend, of floats exact.",
             "y = a - b * trunc(a / b)", plain(BinaryOp::TruncMod));
  add_binary(registry, "mod", number, "Remainder with the sign of the dividend, of floats exact.",
             "y = a - b * trunc(a / b)", plain(BinaryOp::TruncMod));
  add_binary(registry, "power", number, "Power.", "y = a^b", power_of).mixed_precision(ir::MixedPrecision::Never);
  add_binary(registry, "maximum", Accepts::Any, "The larger; NaN when either is.", "y = max(a, b)",
             plain(BinaryOp::Max), ir::kCommutative);
  add_binary(registry, "minimum", Accepts::Any, "The smaller; NaN when either is.", "y = min(a, b)",
             plain(BinaryOp::Min), ir::kCommutative);
}

void register_bits(ir::OpRegistry& registry) {
  constexpr Accepts integer = Accepts::Integer, bits = Accepts::IntegerOrBool, boolean = Accepts::Bool;
  add_binary(registry, "left_shift", integer, "Bits shifted to the left; 0 when the count is not below the width.",
             "y = a << b", plain(BinaryOp::Shl));
  add_binary(registry, "right_shift", integer, "Bits shifted to the right, keeping the sign of signed integers.",
             "y = a >> b", plain(BinaryOp::Shr));
  add_binary(registry, "bitwise_and", bits, "Bitwise conjunction.", "y = a & b", plain(BinaryOp::And),
             ir::kCommutative);
  add_binary(registry, "bitwise_or", bits, "Bitwise disjunction.", "y = a | b", plain(BinaryOp::Or), ir::kCommutative);
  add_binary(registry, "bitwise_xor", bits, "Bitwise exclusive or.", "y = a ^ b", plain(BinaryOp::Xor),
             ir::kCommutative);
  add_binary(registry, "logical_and", boolean, "Conjunction.", "y = a and b", plain(BinaryOp::And), ir::kCommutative);
  add_binary(registry, "logical_or", boolean, "Disjunction.", "y = a or b", plain(BinaryOp::Or), ir::kCommutative);
  add_binary(registry, "logical_xor", boolean, "Exclusive or.", "y = a != b", plain(BinaryOp::Xor), ir::kCommutative);
}

void register_comparisons(ir::OpRegistry& registry) {
  const auto add = [&](const char* name, BinaryOp op, const char* formula, uint32_t traits = 0) {
    add_binary(registry, name, Accepts::Any, "Comparison, giving bool.", formula, plain(op), traits, true);
  };
  add("equal", BinaryOp::Eq, "y = a == b", ir::kCommutative);
  add("not_equal", BinaryOp::Ne, "y = a != b", ir::kCommutative);
  add("less", BinaryOp::Lt, "y = a < b");
  add("less_equal", BinaryOp::Le, "y = a <= b");
  add("greater", BinaryOp::Gt, "y = a > b");
  add("greater_equal", BinaryOp::Ge, "y = a >= b");
}

void where_relation(ir::Relation& relation) {
  const TensorType* condition = relation.tensor(0);
  const TensorType* x = relation.tensor(1);
  const TensorType* y = relation.tensor(2);
  if (!condition || !x || !y) return;
  require_same_dtype(relation, 1, 2);
  relation.set_output(tensor_type(broadcast(condition->shape, broadcast(x->shape, y->shape)), x->dtype));
}

std::vector<loop::Tensor> where_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  return {broadcast_compute(
      "where", output_shape(call), input_types(call), inputs,
      [](const std::vector<loop::Expr>& v) { return loop::select(loop::cast(v[0], dtype::bool_), v[1], v[2]); })};
}

}  // namespace

ir::Expr add(ir::Expr a, ir::Expr b) { return call_op("add", {std::move(a), std::move(b)}); }
ir::Expr subtract(ir::Expr a, ir::Expr b) { return call_op("subtract", {std::move(a), std::move(b)}); }
ir::Expr multiply(ir::Expr a, ir::Expr b) { return call_op("multiply", {std::move(a), std::move(b)}); }
ir::Expr divide(ir::Expr a, ir::Expr b) { return call_op("divide", {std::move(a), std::move(b)}); }
ir::Expr add(ir::Expr a, double b) {
  const DType dtype = a.tensor_type().dtype;
  return add(std::move(a), scalar(b, dtype));
}
ir::Expr multiply(ir::Expr a, double b) {
  const DType dtype = a.tensor_type().dtype;
  return multiply(std::move(a), scalar(b, dtype));
}
ir::Expr where(ir::Expr condition, ir::Expr x, ir::Expr y) {
  return call_op("where", {std::move(condition), std::move(x), std::move(y)});
}

void register_tensor_binary(ir::OpRegistry& registry) {
  register_arithmetic(registry);
  register_bits(registry);
  register_comparisons(registry);
  registry.add("where", "tensor/binary")
      .summary("One of two values for each element, by a condition.")
      .formula("y = condition != 0 ? x : y")
      .source("Relay 0.16")
      .input("condition", "any dtype; the three shapes broadcast")
      .input("x", "the value where it holds")
      .input("y", "the value elsewhere, of the dtype of x")
      .fusion(FusionKind::Broadcast)
      .relation(where_relation)
      .layout(broadcast_layout)
      .compute(where_compute);
}

}  // namespace treadle::op
