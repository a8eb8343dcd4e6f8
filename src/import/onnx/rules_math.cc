// SPDX-License-Identifier: Apache-2.0
// Elementwise arithmetic, comparisons, logic. All versions since 7 broadcast as NumPy does.
#include "import/onnx/rules.h"
#include "op/tensor/binary.h"
#include "op/tensor/unary.h"

namespace treadle::onnx {
namespace {

using ir::Expr;
using Exprs = std::vector<Expr>;

// An operator of one input that Treadle has under `name`.
Rule unary(const char* name) {
  return [name](Node& node) -> Exprs { return {node.call(name, {node.input(0)})}; };
}

Rule binary(const char* name) {
  return [name](Node& node) -> Exprs { return {node.call(name, {node.input(0), node.input(1)})}; };
}

// Any number of inputs, at least one.
Rule variadic(const char* name) {
  return [name](Node& node) -> Exprs {
    Exprs inputs = node.all_inputs();
    if (inputs.empty()) node.malformed("there is no input");
    Expr result = inputs[0];
    for (size_t i = 1; i < inputs.size(); ++i) result = node.call(name, {result, inputs[i]});
    return {result};
  };
}

Exprs mean_rule(Node& node) {
  Exprs sum = variadic("add")(node);
  if (!node.dtype(0).is_float())
    node.malformed(fmt::format("the inputs are {}, they must be floats", to_string(node.dtype(0))));
  return {op::divide(sum[0], node.number(static_cast<double>(node.num_inputs()), node.dtype(0)))};
}

// The result has the base's dtype; a product of other dtypes is computed in the wider float.
Exprs pow_rule(Node& node) {
  const Expr base = node.input(0), exponent = node.input(1);
  const DType b = node.dtype(0), e = node.dtype(1);
  if (b == e) return {node.call("power", {base, exponent})};
  if (b.is_float() && (e.is_integer() || e.bits <= b.bits)) return {node.call("power", {base, op::cast(exponent, b)})};
  const DType wide = b.is_float() ? e : dtype::float64_;
  return {op::cast(node.call("power", {op::cast(base, wide), op::cast(exponent, wide)}), b)};
}

// fmod 0: the sign of the divisor, integers only before opset 28; 1: C's fmod.
Exprs mod_rule(Node& node) {
  const bool fmod = node.flag("fmod");
  if (!fmod && node.dtype(0).is_float()) node.malformed("floats need fmod=1");
  return {node.call(fmod ? "mod" : "floor_mod", {node.input(0), node.input(1)})};
}

// Floats too: C's remainder, moved by the divisor where the signs differ; a zero gets the divisor's sign.
Exprs mod28_rule(Node& node) {
  if (node.flag("fmod") || !node.dtype(0).is_float()) return mod_rule(node);
  const DType dtype = node.dtype(0);
  const Expr divisor = node.input(1), zero = node.number(0, dtype);
  const Expr rest = node.call("mod", {node.input(0), divisor});
  const Expr below = node.call("less", {divisor, zero});
  const Expr other_sign = node.call("logical_xor", {node.call("less", {rest, zero}), below});
  const Expr signed_zero = op::where(below, node.number(-0.0, dtype), zero);
  return {
      op::where(node.call("equal", {rest, zero}), signed_zero, op::where(other_sign, op::add(rest, divisor), rest))};
}

Exprs shift_rule(Node& node) {
  const std::string direction = node.s("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    node.malformed(fmt::format("direction is \"{}\", it must be LEFT or RIGHT", printable(direction)));
  const DType dtype = node.dtype(0);
  const Expr x = node.input(0), by = node.input(1), zero = node.number(0, dtype),
             width = node.number(dtype.bits, dtype);
  // By a negative amount, or by all bits: what a shift by one after the other gives.
  Expr outside = node.call("greater_equal", {by, width});
  if (dtype.is_int()) outside = node.call("logical_or", {outside, node.call("less", {by, zero})});
  const Expr shifted = node.call(direction == "LEFT" ? "left_shift" : "right_shift", {x, op::where(outside, zero, by)});
  Expr rest = zero;
  if (dtype.is_int() && direction == "RIGHT")
    rest = op::where(node.call("less", {x, zero}), node.number(-1, dtype), zero);
  return {op::where(outside, rest, shifted)};
}

Exprs where_rule(Node& node) { return {node.call("where", {node.input(0), node.input(1), node.input(2)})}; }

Exprs reciprocal_rule(Node& node) {
  const Expr x = node.input(0);
  return {op::divide(node.number(1, node.dtype(0)), x)};
}

Exprs is_inf_rule(Node& node) {
  const bool negative = node.flag("detect_negative", true), positive = node.flag("detect_positive", true);
  const Expr x = node.input(0);
  const Expr infinite = node.call("isinf", {x});
  if (negative && positive) return {infinite};
  const Expr zero = node.number(0, node.dtype(0));
  if (!negative && !positive) return {node.call("logical_and", {infinite, node.number(0, dtype::bool_)})};
  return {node.call("logical_and", {infinite, node.call(positive ? "greater" : "less", {x, zero})})};
}

// Integers: comparison of equal bits; the operators take any dtype.
void add_comparisons(RuleTable& table) {
  table.add("Equal", {7, 11, 13, 19}, binary("equal"));
  table.add("Greater", {7, 9, 13}, binary("greater"));
  table.add("GreaterOrEqual", {12, 16}, binary("greater_equal"));
  table.add("Less", {7, 9, 13}, binary("less"));
  table.add("LessOrEqual", {12, 16}, binary("less_equal"));
  table.add("And", {7}, binary("logical_and"));
  table.add("Or", {7}, binary("logical_or"));
  table.add("Xor", {7}, binary("logical_xor"));
  table.add("Not", {1}, unary("logical_not"));
  table.add("Where", {9, 16}, where_rule);
  table.add("IsNaN", {9, 13, 20}, unary("isnan"));
  table.add("IsInf", {10, 20}, is_inf_rule);
}

void add_functions(RuleTable& table) {
  table.add("Abs", {6, 13}, unary("abs"));
  table.add("Neg", {6, 13}, unary("negative"));
  table.add("Sign", {9, 13}, unary("sign"));
  table.add("Floor", {6, 13}, unary("floor"));
  table.add("Ceil", {6, 13}, unary("ceil"));
  table.add("Round", {11, 22}, unary("round_even"));
  table.add("Sqrt", {6, 13}, unary("sqrt"));
  table.add("Exp", {6, 13}, unary("exp"));
  table.add("Log", {6, 13}, unary("log"));
  table.add("Erf", {9, 13}, unary("erf"));
  table.add("Reciprocal", {6, 13}, reciprocal_rule);
  for (const char* name : {"Acos", "Asin", "Atan", "Cos", "Sin", "Tan"}) {
    std::string lower(name);
    lower[0] = static_cast<char>(lower[0] - 'A' + 'a');
    table.add(name, {7, 22}, [lower](Node& node) -> Exprs { return {node.call(lower, {node.input(0)})}; });
  }
  for (const char* name : {"Acosh", "Asinh", "Atanh", "Cosh", "Sinh"}) {
    std::string lower(name);
    lower[0] = static_cast<char>(lower[0] - 'A' + 'a');
    table.add(name, {9, 22}, [lower](Node& node) -> Exprs { return {node.call(lower, {node.input(0)})}; });
  }
}

}  // namespace

void add_math_rules(RuleTable& table) {
  table.add("Add", {7, 13, 14}, binary("add"));
  table.add("Sub", {7, 13, 14}, binary("subtract"));
  table.add("Mul", {7, 13, 14}, binary("multiply"));
  table.add("Div", {7, 13, 14}, binary("divide"));
  table.add("Pow", {7, 12, 13, 15}, pow_rule);
  table.add("Mod", {10, 13}, mod_rule);
  table.add("Mod", {28}, mod28_rule);
  table.add("Max", {6, 8, 12, 13}, variadic("maximum"));
  table.add("Min", {6, 8, 12, 13}, variadic("minimum"));
  table.add("Sum", {6, 8, 13}, variadic("add"));
  table.add("Mean", {6, 8, 13}, mean_rule);
  table.add("BitShift", {11, 28}, shift_rule);
  table.add("BitwiseAnd", {18}, binary("bitwise_and"));
  table.add("BitwiseOr", {18}, binary("bitwise_or"));
  table.add("BitwiseXor", {18}, binary("bitwise_xor"));
  table.add("BitwiseNot", {18}, unary("bitwise_not"));
  add_functions(table);
  add_comparisons(table);
}

}  // namespace treadle::onnx
