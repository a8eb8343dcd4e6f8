// SPDX-License-Identifier: Apache-2.0
#include "op/tensor/unary.h"

#include <cmath>
#include <numbers>

#include "op/relations.h"

namespace treadle::op {
namespace {

using ir::FusionKind;
using loop::Intrinsic;

enum class Accepts { Number, Float, Bool, IntegerOrBool };

const char* to_string(Accepts accepts) {
  switch (accepts) {
    case Accepts::Number:
      return "a number";
    case Accepts::Float:
      return "of a float dtype";
    case Accepts::Bool:
      return "bool";
    case Accepts::IntegerOrBool:
      return "an integer or bool";
  }
  return "";
}

bool accepted(Accepts accepts, DType dtype) {
  switch (accepts) {
    case Accepts::Number:
      return !dtype.is_bool();
    case Accepts::Float:
      return dtype.is_float();
    case Accepts::Bool:
      return dtype.is_bool();
    case Accepts::IntegerOrBool:
      return dtype.is_bool() || dtype.is_integer();
  }
  return false;
}

ir::RelationFn unary_relation(Accepts accepts) {
  return [accepts](ir::Relation& relation) {
    const TensorType* x = relation.tensor(0);
    if (!x) return;
    if (!accepted(accepts, x->dtype))
      fail(ErrorCode::TypeMismatch, "input is {}, it must be {}", treadle::to_string(x->dtype), to_string(accepts));
    relation.set_output(relation.input(0));
  };
}

void predicate_relation(ir::Relation& relation) {
  if (const TensorType* x = relation.tensor(0)) relation.set_output(tensor_type(x->shape, dtype::bool_));
}

ir::ComputeFn unary_compute(std::string name, std::function<loop::Expr(loop::Expr)> f) {
  return [name = std::move(name), f = std::move(f)](const ir::Call&, const std::vector<loop::Tensor>& inputs) {
    return std::vector<loop::Tensor>{elementwise(name, inputs[0], f)};
  };
}

loop::Expr zero_of(const loop::Expr& x) { return loop::constant(0, x.dtype()); }

// -1, 0 or 1; NaN stays.
loop::Expr sign_of(const loop::Expr& x) {
  const loop::Expr one = loop::constant(1, x.dtype());
  loop::Expr rest = loop::select(x > zero_of(x), one, x);
  if (x.dtype().is_uint()) return rest;
  return loop::select(x < zero_of(x), loop::constant(-1, x.dtype()), rest);
}

ir::OpBuilder add_unary(ir::OpRegistry& registry, const char* name, Accepts accepts, const char* summary,
                        const char* formula, std::function<loop::Expr(loop::Expr)> f) {
  return registry.add(name, "tensor/unary")
      .summary(summary)
      .formula(formula)
      .source("Relay 0.16")
      .input("x", std::string("any shape, ") + to_string(accepts))
      .fusion(FusionKind::Elementwise)
      .relation(unary_relation(accepts))
      .layout(same_layout)
      .compute(unary_compute(name, std::move(f)));
}

struct FloatFunction {
  const char* name;
  Intrinsic function;
  const char* summary;
  const char* formula;
  ir::MixedPrecision mixed;
};

void register_float_functions(ir::OpRegistry& registry) {
  constexpr auto follow = ir::MixedPrecision::Follow;
  constexpr auto never = ir::MixedPrecision::Never;
  const FloatFunction functions[] = {
      {"acos", Intrinsic::Acos, "Arc cosine.", "y = acos(x)", follow},
      {"acosh", Intrinsic::Acosh, "Area hyperbolic cosine.", "y = acosh(x)", follow},
      {"asin", Intrinsic::Asin, "Arc sine.", "y = asin(x)", follow},
      {"asinh", Intrinsic::Asinh, "Area hyperbolic sine.", "y = asinh(x)", follow},
      {"atan", Intrinsic::Atan, "Arc tangent.", "y = atan(x)", follow},
      {"atanh", Intrinsic::Atanh, "Area hyperbolic tangent.", "y = atanh(x)", follow},
      {"cos", Intrinsic::Cos, "Cosine.", "y = cos(x)", follow},
      {"cosh", Intrinsic::Cosh, "Hyperbolic cosine.", "y = cosh(x)", follow},
      {"erf", Intrinsic::Erf, "Gauss error function.", "y = 2/sqrt(pi) * integral of exp(-t^2) from 0 to x", follow},
      {"exp", Intrinsic::Exp, "Exponential.", "y = e^x", never},
      {"fast_erf", Intrinsic::Erf, "Gauss error function, Relay's name for its approximation.", "y = erf(x)", follow},
      {"fast_exp", Intrinsic::Exp, "Exponential, Relay's name for its approximation.", "y = e^x", never},
      {"fast_tanh", Intrinsic::Tanh, "Hyperbolic tangent, Relay's name for its approximation.", "y = tanh(x)", follow},
      {"log", Intrinsic::Log, "Natural logarithm.", "y = ln(x)", never},
      {"log10", Intrinsic::Log10, "Decimal logarithm.", "y = log10(x)", never},
      {"log2", Intrinsic::Log2, "Binary logarithm.", "y = log2(x)", never},
      {"rsqrt", Intrinsic::Rsqrt, "One over the square root.", "y = 1 / sqrt(x)", follow},
      {"sigmoid", Intrinsic::Sigmoid, "Logistic function.", "y = 1 / (1 + e^-x)", follow},
      {"sin", Intrinsic::Sin, "Sine.", "y = sin(x)", follow},
      {"sinh", Intrinsic::Sinh, "Hyperbolic sine.", "y = sinh(x)", follow},
      {"sqrt", Intrinsic::Sqrt, "Square root.", "y = sqrt(x)", follow},
      {"tan", Intrinsic::Tan, "Tangent.", "y = tan(x)", follow},
      {"tanh", Intrinsic::Tanh, "Hyperbolic tangent.", "y = tanh(x)", follow},
  };
  for (const FloatFunction& f : functions) {
    const Intrinsic function = f.function;
    add_unary(registry, f.name, Accepts::Float, f.summary, f.formula, [function](loop::Expr x) {
      return loop::intrinsic(function, {std::move(x)});
    }).mixed_precision(f.mixed);
  }
}

void register_rounding(ir::OpRegistry& registry) {
  const FloatFunction functions[] = {
      {"ceil", Intrinsic::Ceil, "Smallest integer not below.", "y = ceil(x)", ir::MixedPrecision::Follow},
      {"floor", Intrinsic::Floor, "Largest integer not above.", "y = floor(x)", ir::MixedPrecision::Follow},
      {"round", Intrinsic::RoundAway, "Nearest integer, halves away from zero.", "y = trunc(x + sign(x)/2)",
       ir::MixedPrecision::Follow},
      {"round_even", Intrinsic::RoundEven, "Nearest integer, halves to the even one.", "y = round half to even(x)",
       ir::MixedPrecision::Follow},
      {"trunc", Intrinsic::Trunc, "Nearest integer toward zero.", "y = trunc(x)", ir::MixedPrecision::Follow},
  };
  for (const FloatFunction& f : functions) {
    const Intrinsic function = f.function;
    add_unary(registry, f.name, Accepts::Number, f.summary, f.formula,
              [function](loop::Expr x) { return x.dtype().is_float() ? loop::intrinsic(function, {x}) : x; });
  }
}

void register_predicates(ir::OpRegistry& registry) {
  const auto add = [&](const char* name, Intrinsic function, bool of_integers, const char* summary) {
    registry.add(name, "tensor/unary")
        .summary(summary)
        .source("Relay 0.16")
        .input("x", "any shape and dtype")
        .fusion(FusionKind::Elementwise)
        .relation(predicate_relation)
        .layout(same_layout)
        .compute(unary_compute(name, [function, of_integers](loop::Expr x) {
          return x.dtype().is_float() ? loop::intrinsic(function, {x}) : loop::bool_imm(of_integers);
        }));
  };
  add("isfinite", Intrinsic::IsFinite, true, "True where x is neither infinite nor NaN.");
  add("isinf", Intrinsic::IsInf, false, "True where x is infinite, of either sign.");
  add("isnan", Intrinsic::IsNan, false, "True where x is not a number.");
}

void register_arithmetic(ir::OpRegistry& registry) {
  add_unary(registry, "abs", Accepts::Number, "Absolute value.", "y = |x|",
            [](loop::Expr x) { return x.dtype().is_uint() ? x : loop::intrinsic(Intrinsic::Abs, {x}); });
  add_unary(registry, "bitwise_not", Accepts::IntegerOrBool, "Every bit inverted.", "y = ~x",
            [](loop::Expr x) { return !x; });
  add_unary(registry, "logical_not", Accepts::Bool, "Logical negation.", "y = not x", [](loop::Expr x) { return !x; });
  // Not 0 - x, which would give +0 for +0.
  add_unary(registry, "negative", Accepts::Number, "The number with the opposite sign.", "y = -x",
            [](loop::Expr x) { return -x; });
  add_unary(registry, "sign", Accepts::Number, "-1, 0 or 1 by the sign; NaN stays.", "y = x > 0 ? 1 : x < 0 ? -1 : x",
            sign_of);
}

// ---- clip, copy, cast, reinterpret ----

std::vector<loop::Tensor> clip_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const auto& attrs = attrs_of<ClipAttrs>(call);
  return {elementwise("clip", inputs[0], [&](loop::Expr x) {
    const loop::Expr low = saturated_constant(attrs.a_min, x.dtype()),
                     high = saturated_constant(attrs.a_max, x.dtype());
    return loop::min(loop::max(std::move(x), low), high);
  })};
}

void cast_relation(ir::Relation& relation) {
  if (const TensorType* x = relation.tensor(0))
    relation.set_output(tensor_type(x->shape, relation.attrs<CastAttrs>().dtype));
}

void cast_like_relation(ir::Relation& relation) {
  const TensorType* x = relation.tensor(0);
  const TensorType* like = relation.tensor(1);
  if (x && like) relation.set_output(tensor_type(x->shape, like->dtype));
}

void reinterpret_relation(ir::Relation& relation) {
  const TensorType* x = relation.tensor(0);
  if (!x) return;
  const DType to = relation.attrs<CastAttrs>().dtype;
  if (x->dtype.bits != to.bits || x->dtype.is_bool() != to.is_bool())
    fail(ErrorCode::TypeMismatch, "the bits of {} cannot be read as {}: the widths differ",
         treadle::to_string(x->dtype), treadle::to_string(to));
  relation.set_output(tensor_type(x->shape, to));
}

ir::Expr drop_identity_cast(const ir::Call& call) {
  const TensorType* from = as_tensor(call.args[0].type());
  const TensorType* to = as_tensor(call.type);
  return from && to && from->dtype == to->dtype ? call.args[0] : ir::Expr();
}

void register_conversions(ir::OpRegistry& registry) {
  registry.add<ClipAttrs>("clip", "tensor/unary")
      .summary("Values cut to a range; NaN stays.")
      .formula("y = min(max(x, a_min), a_max)")
      .source("Relay 0.16")
      .input("x", "any shape, a number")
      .fusion(FusionKind::Elementwise)
      .relation(unary_relation(Accepts::Number))
      .layout(same_layout)
      .compute(clip_compute);
  registry.add("copy", "tensor/unary")
      .summary("The tensor itself.")
      .formula("y = x")
      .source("Relay 0.16")
      .input("x", "any shape and dtype")
      .fusion(FusionKind::Elementwise)
      .traits(ir::kIdentity)
      .relation(identity_relation)
      .layout(same_layout)
      .compute(unary_compute("copy", [](loop::Expr x) { return x; }));
  registry.add<CastAttrs>("cast", "tensor/unary")
      .summary("Conversion to another dtype.")
      .formula("y = dtype(x): floats to integers truncate and saturate, to bool is x != 0, integers wrap")
      .source("Relay 0.16; ONNX Cast")
      .input("x", "any shape and dtype")
      .fusion(FusionKind::Elementwise)
      .relation(cast_relation)
      .layout(same_layout)
      .canonicalise(drop_identity_cast)
      .compute([](const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
        const DType to = attrs_of<CastAttrs>(call).dtype;
        return std::vector{elementwise("cast", inputs[0], [to](loop::Expr x) { return loop::cast(std::move(x), to); })};
      });
  registry.add("cast_like", "tensor/unary")
      .summary("Conversion to the dtype of another tensor.")
      .formula("y = dtype of like(x)")
      .source("Relay 0.16")
      .input("x", "any shape and dtype")
      .input("like", "any; only its dtype counts")
      .fusion(FusionKind::Elementwise)
      .relation(cast_like_relation)
      .decompose([](const ir::Call& call) { return cast(call.args[0], call.args[1].tensor_type().dtype); });
  registry.add<CastAttrs>("reinterpret", "tensor/unary")
      .summary("The same bits read as another dtype of the same width.")
      .source("Relay 0.16")
      .input("x", "any shape and dtype")
      .fusion(FusionKind::Elementwise)
      .relation(reinterpret_relation)
      .layout(same_layout)
      .compute([](const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
        const DType to = attrs_of<CastAttrs>(call).dtype;
        return std::vector{elementwise("reinterpret", inputs[0], [to](loop::Expr x) {
          return x.dtype() == to ? x : loop::reinterpret(std::move(x), to);
        })};
      });
}

// ---- Fixed-point multiplication ----

void fixed_point_relation(ir::Relation& relation) {
  for (size_t i = 0; i < relation.num_inputs(); ++i) {
    const TensorType* x = relation.tensor(i);
    if (x && !(x->dtype == dtype::int32_))
      fail(ErrorCode::TypeMismatch, "input {} is {}, it must be int32", i, treadle::to_string(x->dtype));
  }
  if (relation.tensor(0)) relation.set_output(relation.input(0));
}

// Product of a 31-bit multiplier and a 32-bit number, shifted right by `shift` places, halves toward plus infinity.
loop::Expr shift_rounded(const loop::Expr& product, const loop::Expr& shift) {
  const loop::Expr half = loop::binary(loop::BinaryOp::Shl, loop::int_imm(1), shift - loop::int_imm(1));
  return loop::binary(loop::BinaryOp::Shr, product + half, shift);
}

std::vector<loop::Tensor> fixed_point_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const auto& attrs = attrs_of<FixedPointMultiplyAttrs>(call);
  const int64_t shift = 31 - attrs.shift;  // 0 … 62
  return {elementwise("fixed_point_multiply", inputs[0], [&](loop::Expr x) {
    const loop::Expr product = loop::cast(std::move(x), dtype::int64_) * loop::int_imm(attrs.multiplier);
    return loop::cast(shift == 0 ? product : shift_rounded(product, loop::int_imm(shift)), dtype::int32_);
  })};
}

std::vector<loop::Tensor> fixed_point_axis_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const auto& attrs = attrs_of<FixedPointMultiplyPerAxisAttrs>(call);
  const std::vector<int64_t> along = normalise_axes(attrs.axes, inputs[0].rank(), "axes");
  return {loop::compute("fixed_point_multiply", inputs[0].shape(), [&](const std::vector<loop::Var>& axes) {
    Indices channel;
    for (int64_t axis : along) channel.push_back(axes[axis]);
    const auto value = [&](size_t i, const Indices& index) { return loop::cast(inputs[i](index), dtype::int64_); };
    loop::Expr x = value(0, to_indices(axes));
    if (attrs.is_lshift_required) x = loop::binary(loop::BinaryOp::Shl, x, value(2, channel));
    loop::Expr shift = loop::int_imm(31);
    if (attrs.is_rshift_required) shift = shift + value(3, channel);
    return loop::cast(shift_rounded(x * value(1, channel), shift), dtype::int32_);
  })};
}

void fixed_point_axis_relation(ir::Relation& relation) {
  fixed_point_relation(relation);
  const TensorType* x = relation.tensor(0);
  if (!x) return;
  Shape channel;
  for (int64_t axis : normalise_axes(relation.attrs<FixedPointMultiplyPerAxisAttrs>().axes, x->shape.size(), "axes"))
    channel.push_back(x->shape[axis]);
  for (size_t i = 1; i < 4; ++i) relation.set_input(i, tensor_type(channel, dtype::int32_));
}

void register_fixed_point(ir::OpRegistry& registry) {
  registry.add<FixedPointMultiplyAttrs>("fixed_point_multiply", "tensor/unary")
      .summary("Multiplication with a number in fixed point.")
      .formula("y = round(x * multiplier * 2^(shift-31)), halves toward plus infinity, 64-bit product")
      .source("Relay 0.16")
      .input("x", "any shape, int32")
      .fusion(FusionKind::Elementwise)
      .relation(fixed_point_relation)
      .layout(same_layout)
      .compute(fixed_point_compute);
  registry.add<FixedPointMultiplyPerAxisAttrs>("fixed_point_multiply_per_axis", "tensor/unary")
      .summary("Multiplication with a number in fixed point for each channel.")
      .formula("y = round((x << lshift) * multiplier * 2^-(31+rshift)), halves toward plus infinity")
      .source("Relay 0.16")
      .input("x", "any shape, int32")
      .input("multiplier", "the extents of x along axes, int32")
      .input("lshift", "as multiplier")
      .input("rshift", "as multiplier")
      .fusion(FusionKind::Elementwise)
      .relation(fixed_point_axis_relation)
      .compute(fixed_point_axis_compute);
}

ir::Expr times(ir::Expr a, ir::Expr b) { return call_op("multiply", {std::move(a), std::move(b)}); }
ir::Expr plus(ir::Expr a, ir::Expr b) { return call_op("add", {std::move(a), std::move(b)}); }

}  // namespace

ir::Expr clip(ir::Expr x, double a_min, double a_max) {
  auto attrs = ClipAttrs::defaults();
  attrs->a_min = a_min;
  attrs->a_max = a_max;
  return call_op("clip", {std::move(x)}, std::move(attrs));
}

ir::Expr cast(ir::Expr x, DType dtype) {
  const TensorType* type = as_tensor(x.type());
  if (type && type->dtype == dtype) return x;
  auto attrs = CastAttrs::defaults();
  attrs->dtype = dtype;
  return call_op("cast", {std::move(x)}, std::move(attrs));
}

ir::Expr reinterpret(ir::Expr x, DType dtype) {
  auto attrs = CastAttrs::defaults();
  attrs->dtype = dtype;
  return call_op("reinterpret", {std::move(x)}, std::move(attrs));
}

ir::Expr gelu(ir::Expr x, bool approximate) {
  const DType dtype = x.tensor_type().dtype;
  ir::Expr inner;
  if (approximate) {
    const ir::Expr cube = times(times(x, x), x);
    const ir::Expr sum = plus(x, times(cube, scalar(0.044715, dtype)));
    inner = call_op("tanh", {times(sum, scalar(std::sqrt(2 / std::numbers::pi), dtype))});
  } else {
    inner = call_op("erf", {times(x, scalar(std::numbers::sqrt2 / 2, dtype))});
  }
  return times(times(x, scalar(0.5, dtype)), plus(inner, scalar(1, dtype)));
}

ir::Expr silu(ir::Expr x) { return times(x, call_op("sigmoid", {x})); }

ir::Expr hard_sigmoid(ir::Expr x, double alpha, double beta) {
  const DType dtype = x.tensor_type().dtype;
  return clip(plus(times(std::move(x), scalar(alpha, dtype)), scalar(beta, dtype)), 0, 1);
}

ir::Expr hard_swish(ir::Expr x) { return times(x, hard_sigmoid(x)); }

ir::Expr softplus(ir::Expr x) {
  const DType dtype = x.tensor_type().dtype;
  const ir::Expr decayed = call_op("exp", {call_op("negative", {call_op("abs", {x})})});
  return plus(call_op("maximum", {x, scalar(0, dtype)}), call_op("log", {plus(decayed, scalar(1, dtype))}));
}

void register_tensor_unary(ir::OpRegistry& registry) {
  register_float_functions(registry);
  register_rounding(registry);
  register_predicates(registry);
  register_arithmetic(registry);
  register_conversions(registry);
  register_fixed_point(registry);
}

}  // namespace treadle::op
