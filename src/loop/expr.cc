// SPDX-License-Identifier: Apache-2.0
// Builders of expressions. Each checks its operands and folds: an operation on constants becomes its value (scalar.h
// says which), and identities that hold for every value of the dtype are dropped. A scalar operand beside a vector one
// is broadcast.
//
//   x + 0, x - 0, x | 0, x ^ 0  =>  x      integers; floats: x - 0.0 and x + -0.0 only (0.0 + -0.0 is 0.0)
//   x * 1, x / 1                =>  x      all dtypes; also floordiv of integers
//   x * 0, x & 0, x % 1, x - x  =>  0      integers only (0 * inf is NaN)
//   (x + c) + d                 =>  x + (c + d)   integers; the same for *
//   c + x, c * x                =>  x + c, x * c  integers: constants stand right
//   min(x, x), max(x, x)        =>  x
//   x && true, x || false       =>  x;  x && false => false,  x || true => true
//   select(constant, a, b)      =>  a or b;  select(c, a, a) => a
#include "loop/expr.h"

#include <cmath>
#include <limits>
#include <mutex>
#include <unordered_map>

#include "base/error.h"
#include "loop/scalar.h"

namespace treadle::loop {
namespace {

// The constant behind `expr`, looking through a broadcast.
std::optional<Scalar> constant_value(const Expr& expr) {
  if (const auto* b = expr.as<Broadcast>()) return constant_value(b->a);
  if (const auto* i = expr.as<IntImm>()) return int_scalar(i->value);
  if (const auto* f = expr.as<FloatImm>()) return float_scalar(f->value);
  return std::nullopt;
}

Expr immediate(Scalar value, DType dtype, int lanes) {
  Expr scalar = dtype.is_float() ? Expr(std::make_shared<FloatImm>(value.f, dtype))
                                 : Expr(std::make_shared<IntImm>(value.i, dtype));
  return broadcast(scalar, lanes);
}

bool is_value(const std::optional<Scalar>& constant, DType dtype, int64_t value) {
  if (!constant) return false;
  return dtype.is_float() ? constant->f == static_cast<double>(value) : constant->i == wrap(value, dtype);
}

void match_lanes(Expr& a, Expr& b) {
  if (a.lanes() == 1) a = broadcast(a, b.lanes());
  if (b.lanes() == 1) b = broadcast(b, a.lanes());
  TREADLE_CHECK(a.lanes() == b.lanes(), "vectors of {} and {} lanes", a.lanes(), b.lanes());
}

Expr raw_binary(BinaryOp op, const Expr& a, const Expr& b) {
  return Expr(std::make_shared<Binary>(op, a, b, result_dtype(op, a.dtype())));
}

// Rules with a constant on the right; undefined when none applies.
Expr right_identity(BinaryOp op, const Expr& a, const Expr& b, Scalar value) {
  const DType dtype = a.dtype();
  const bool is_float = dtype.is_float();
  const bool zero = is_value(value, dtype, 0), one = is_value(value, dtype, 1);
  const bool minus_zero = is_float && zero && std::signbit(value.f);
  switch (op) {
    case BinaryOp::Add:
      if (is_float ? minus_zero : zero) return a;
      break;
    case BinaryOp::Sub:
      if (is_float ? zero && !minus_zero : zero) return a;
      break;
    case BinaryOp::Mul:
      if (one) return a;
      if (zero && !is_float) return b;
      break;
    case BinaryOp::Div:
      if (one) return a;
      break;
    case BinaryOp::FloorDiv:
      if (one && !is_float) return a;
      break;
    case BinaryOp::FloorMod:
    case BinaryOp::TruncMod:
      if (one && !is_float) return immediate(int_scalar(0), dtype, a.lanes());
      break;
    case BinaryOp::And:
      if (zero) return b;
      if (dtype.is_bool() && one) return a;
      break;
    case BinaryOp::Or:
      if (zero) return a;
      if (dtype.is_bool() && one) return b;
      break;
    case BinaryOp::Xor:
    case BinaryOp::Shl:
    case BinaryOp::Shr:
      if (zero) return a;
      break;
    default:
      break;
  }
  // (x + c) + d and (x * c) * d, where wrapping arithmetic is associative.
  if ((op == BinaryOp::Add || op == BinaryOp::Mul) && dtype.is_integer()) {
    const auto* inner = a.as<Binary>();
    if (inner && inner->op == op && constant_value(inner->b)) return binary(op, inner->a, binary(op, inner->b, b));
  }
  return Expr();
}

bool commutes(BinaryOp op, DType dtype) {
  switch (op) {
    case BinaryOp::Add:
    case BinaryOp::Mul:
      return dtype.is_integer();
    case BinaryOp::And:
    case BinaryOp::Or:
    case BinaryOp::Xor:
      return true;
    default:
      return false;
  }
}

}  // namespace

Expr::Expr(int64_t value) : node_(std::make_shared<IntImm>(value, dtype::int64_)) {}

namespace {
int index_lanes(const std::vector<Expr>& indices) {
  int lanes = 1;
  for (const Expr& index : indices) lanes = std::max(lanes, index.lanes());
  return lanes;
}

void check_indices(const Buffer& buffer, const std::vector<Expr>& indices) {
  TREADLE_CHECK(buffer != nullptr, "access to no buffer");
  TREADLE_CHECK(indices.size() == buffer->shape.size(), "{} indices into {} of rank {}", indices.size(), buffer->name,
                buffer->shape.size());
  const int lanes = index_lanes(indices);
  for (const Expr& index : indices) {
    TREADLE_CHECK(index.defined() && index.dtype() == dtype::int64_, "an index into {} is not int64", buffer->name);
    TREADLE_CHECK(index.lanes() == 1 || index.lanes() == lanes, "indices into {} of {} and {} lanes", buffer->name,
                  index.lanes(), lanes);
  }
}
}  // namespace

Load::Load(Buffer buffer, std::vector<Expr> indices)
    : ExprNode(Kind, buffer->dtype, index_lanes(indices)), buffer(std::move(buffer)), indices(std::move(indices)) {}

Buffer make_buffer(std::string name, DType dtype, std::vector<Expr> shape, Scope scope) {
  for (const Expr& extent : shape) {
    TREADLE_CHECK(extent.defined() && extent.dtype() == dtype::int64_ && extent.lanes() == 1,
                  "an extent of {} is no int64", name);
  }
  auto buffer = std::make_shared<BufferNode>();
  buffer->name = std::move(name);
  buffer->dtype = dtype;
  buffer->shape = std::move(shape);
  buffer->scope = scope;
  return buffer;
}

Expr int_imm(int64_t value, DType dtype) {
  TREADLE_CHECK(!dtype.is_float() && dtype.code != TypeCode::Handle, "an integer constant of dtype {}",
                to_string(dtype));
  return Expr(std::make_shared<IntImm>(wrap(value, dtype), dtype));
}

Expr float_imm(double value, DType dtype) {
  TREADLE_CHECK(dtype.is_float(), "a float constant of dtype {}", to_string(dtype));
  return Expr(std::make_shared<FloatImm>(round_to(value, dtype), dtype));
}

Expr constant(double value, DType dtype) {
  return immediate(cast_function(dtype::float64_, dtype)(float_scalar(value), {}, {}), dtype, 1);
}

Expr bool_imm(bool value) { return int_imm(value, dtype::bool_); }

Expr binary(BinaryOp op, Expr a, Expr b) {
  TREADLE_CHECK(a.defined() && b.defined(), "an operand of {} is missing", symbol_of(op));
  TREADLE_CHECK(a.dtype() == b.dtype(), "{} of {} and {}", symbol_of(op), to_string(a.dtype()), to_string(b.dtype()));
  const DType dtype = a.dtype();
  ScalarFn function = binary_function(op, dtype);
  TREADLE_CHECK(function && dtype.code != TypeCode::Handle, "{} does not exist for {}", symbol_of(op),
                to_string(dtype));
  match_lanes(a, b);
  std::optional<Scalar> x = constant_value(a), y = constant_value(b);
  if (x && y) return immediate(function(*x, *y, {}), result_dtype(op, dtype), a.lanes());
  if (x && commutes(op, dtype)) {
    std::swap(a, b);
    std::swap(x, y);
  }
  if (x && op == BinaryOp::Mul && is_value(x, dtype, 1)) return b;  // floats: 1 * x
  if (x && op == BinaryOp::Add && dtype.is_float() && is_value(x, dtype, 0) && std::signbit(x->f)) return b;
  if (y) {
    if (Expr simple = right_identity(op, a, b, *y); simple.defined()) return simple;
  }
  if (a.same_as(b)) {
    if (op == BinaryOp::Min || op == BinaryOp::Max || op == BinaryOp::And || op == BinaryOp::Or) return a;
    if (!dtype.is_float()) {
      if (op == BinaryOp::Sub || op == BinaryOp::Xor) return immediate(int_scalar(0), dtype, a.lanes());
      if (is_comparison(op)) return immediate(function(int_scalar(0), int_scalar(0), {}), dtype::bool_, a.lanes());
    }
  }
  return raw_binary(op, a, b);
}

Expr operator+(Expr a, Expr b) { return binary(BinaryOp::Add, std::move(a), std::move(b)); }
Expr operator-(Expr a, Expr b) { return binary(BinaryOp::Sub, std::move(a), std::move(b)); }
Expr operator*(Expr a, Expr b) { return binary(BinaryOp::Mul, std::move(a), std::move(b)); }

// -x of a float is -0.0 - x: the sign of a zero changes too.
Expr operator-(Expr a) {
  Expr zero = a.dtype().is_float() ? float_imm(-0.0, a.dtype()) : int_imm(0, a.dtype());
  return binary(BinaryOp::Sub, zero, std::move(a));
}

Expr operator&&(Expr a, Expr b) { return binary(BinaryOp::And, std::move(a), std::move(b)); }
Expr operator||(Expr a, Expr b) { return binary(BinaryOp::Or, std::move(a), std::move(b)); }

Expr operator!(Expr a) {
  ScalarFn function = not_function(a.dtype());
  TREADLE_CHECK(function && a.dtype().code != TypeCode::Handle, "not of {}", to_string(a.dtype()));
  if (auto value = constant_value(a)) return immediate(function(*value, {}, {}), a.dtype(), a.lanes());
  if (const auto* inner = a.as<Not>()) return inner->a;
  return Expr(std::make_shared<Not>(std::move(a)));
}

Expr operator==(Expr a, Expr b) { return binary(BinaryOp::Eq, std::move(a), std::move(b)); }
Expr operator!=(Expr a, Expr b) { return binary(BinaryOp::Ne, std::move(a), std::move(b)); }
Expr operator<(Expr a, Expr b) { return binary(BinaryOp::Lt, std::move(a), std::move(b)); }
Expr operator<=(Expr a, Expr b) { return binary(BinaryOp::Le, std::move(a), std::move(b)); }
Expr operator>(Expr a, Expr b) { return binary(BinaryOp::Gt, std::move(a), std::move(b)); }
Expr operator>=(Expr a, Expr b) { return binary(BinaryOp::Ge, std::move(a), std::move(b)); }
Expr div(Expr a, Expr b) { return binary(BinaryOp::Div, std::move(a), std::move(b)); }
Expr floordiv(Expr a, Expr b) { return binary(BinaryOp::FloorDiv, std::move(a), std::move(b)); }
Expr floormod(Expr a, Expr b) { return binary(BinaryOp::FloorMod, std::move(a), std::move(b)); }
Expr truncmod(Expr a, Expr b) { return binary(BinaryOp::TruncMod, std::move(a), std::move(b)); }
Expr min(Expr a, Expr b) { return binary(BinaryOp::Min, std::move(a), std::move(b)); }
Expr max(Expr a, Expr b) { return binary(BinaryOp::Max, std::move(a), std::move(b)); }

Expr select(Expr condition, Expr a, Expr b) {
  TREADLE_CHECK(condition.dtype().is_bool(), "the condition of a select is {}", to_string(condition.dtype()));
  TREADLE_CHECK(a.dtype() == b.dtype(), "select of {} and {}", to_string(a.dtype()), to_string(b.dtype()));
  match_lanes(a, b);
  if (condition.lanes() > 1 && a.lanes() == 1) {
    a = broadcast(a, condition.lanes());
    b = broadcast(b, condition.lanes());
  }
  TREADLE_CHECK(condition.lanes() == 1 || condition.lanes() == a.lanes(), "select by {} lanes of {}", condition.lanes(),
                a.lanes());
  if (auto value = constant_value(condition)) return value->i ? a : b;
  if (a.same_as(b)) return a;
  return Expr(std::make_shared<Select>(std::move(condition), std::move(a), std::move(b)));
}

Expr cast(Expr a, DType dtype) {
  TREADLE_CHECK(a.dtype().code != TypeCode::Handle && dtype.code != TypeCode::Handle, "cast of {} to {}",
                to_string(a.dtype()), to_string(dtype));
  if (a.dtype() == dtype) return a;
  if (auto value = constant_value(a))
    return immediate(cast_function(a.dtype(), dtype)(*value, {}, {}), dtype, a.lanes());
  return Expr(std::make_shared<Cast>(std::move(a), dtype));
}

Expr reinterpret(Expr a, DType dtype) {
  if (a.dtype() == dtype) return a;
  TREADLE_CHECK(a.dtype().bits == dtype.bits && a.dtype().code != TypeCode::Handle && dtype.code != TypeCode::Handle,
                "reinterpretation of {} as {}", to_string(a.dtype()), to_string(dtype));
  if (auto value = constant_value(a))
    return immediate(reinterpret_function(a.dtype(), dtype)(*value, {}, {}), dtype, a.lanes());
  return Expr(std::make_shared<Reinterpret>(std::move(a), dtype));
}

Expr intrinsic(Intrinsic function, std::vector<Expr> args) {
  TREADLE_CHECK(static_cast<int>(args.size()) == arity(function), "{} of {} arguments", name_of(function), args.size());
  const DType dtype = args[0].dtype();
  ScalarFn scalar = intrinsic_function(function, dtype);
  TREADLE_CHECK(scalar && dtype.code != TypeCode::Handle, "{} does not exist for {}", name_of(function),
                to_string(dtype));
  const int lanes = index_lanes(args);
  bool all_constant = true;
  Scalar values[3] = {};
  for (size_t i = 0; i < args.size(); ++i) {
    TREADLE_CHECK(args[i].dtype() == dtype, "{} of {} and {}", name_of(function), to_string(dtype),
                  to_string(args[i].dtype()));
    TREADLE_CHECK(args[i].lanes() == 1 || args[i].lanes() == lanes, "{} of {} and {} lanes", name_of(function),
                  args[i].lanes(), lanes);
    if (args[i].lanes() == 1) args[i] = broadcast(args[i], lanes);
    auto value = constant_value(args[i]);
    if (value)
      values[i] = *value;
    else
      all_constant = false;
  }
  const DType result = result_dtype(function, dtype);
  if (all_constant) return immediate(scalar(values[0], values[1], values[2]), result, lanes);
  return Expr(std::make_shared<IntrinsicCall>(function, std::move(args), result));
}

Expr load(const Buffer& buffer, std::vector<Expr> indices) {
  check_indices(buffer, indices);
  return Expr(std::make_shared<Load>(buffer, std::move(indices)));
}

Expr ramp(Expr base, Expr stride, int lanes) {
  TREADLE_CHECK(base.dtype() == stride.dtype() && base.dtype().is_integer(), "ramp of {} by {}",
                to_string(base.dtype()), to_string(stride.dtype()));
  TREADLE_CHECK(base.lanes() == 1 && stride.lanes() == 1 && lanes >= 1, "ramp of {} lanes over vectors", lanes);
  if (lanes == 1) return base;
  if (is_value(constant_value(stride), stride.dtype(), 0)) return broadcast(std::move(base), lanes);
  return Expr(std::make_shared<Ramp>(std::move(base), std::move(stride), lanes));
}

Expr broadcast(Expr a, int lanes) {
  if (lanes == 1) return a;
  TREADLE_CHECK(a.lanes() == 1 && lanes > 1, "broadcast of {} lanes to {}", a.lanes(), lanes);
  return Expr(std::make_shared<Broadcast>(std::move(a), lanes));
}

Expr vector_reduce(ReduceOp op, Expr a) {
  TREADLE_CHECK(binary_function(combiner(op), a.dtype()) != nullptr, "{} does not exist for {}", name_of(op),
                to_string(a.dtype()));
  if (a.lanes() == 1) return a;
  return Expr(std::make_shared<VectorReduce>(op, std::move(a)));
}

Expr address(const Buffer& buffer, std::vector<Expr> indices) {
  check_indices(buffer, indices);
  TREADLE_CHECK(index_lanes(indices) == 1, "address of a vector of elements of {}", buffer->name);
  return Expr(std::make_shared<Address>(buffer, std::move(indices)));
}

Expr extern_call(std::string name, std::vector<Expr> args, DType dtype) {
  return Expr(std::make_shared<Extern>(std::move(name), std::move(args), dtype));
}

Expr reduce_identity(ReduceOp op, DType dtype) {
  const double infinity = std::numeric_limits<double>::infinity();
  switch (op) {
    case ReduceOp::Sum:
      return constant(0, dtype);
    case ReduceOp::Prod:
      return constant(1, dtype);
    case ReduceOp::Max:
      return dtype.is_bool() ? bool_imm(false) : constant(-infinity, dtype);  // saturates to the smallest integer
    case ReduceOp::Min:
      return dtype.is_bool() ? bool_imm(true) : constant(infinity, dtype);
    case ReduceOp::Any:
      return int_imm(0, dtype);
    case ReduceOp::All:
      return int_imm(-1, dtype);
  }
  return Expr();
}

Expr combine(ReduceOp op, Expr a, Expr b) { return binary(combiner(op), std::move(a), std::move(b)); }

const int64_t* as_int(const Expr& expr) {
  if (const auto* b = expr.as<Broadcast>()) return as_int(b->a);
  const auto* imm = expr.as<IntImm>();
  return imm ? &imm->value : nullptr;
}

Var symbol_var(const std::string& name) {
  static std::mutex mutex;
  static auto& vars =
      *new std::unordered_map<std::string, Var>();  // never destroyed: other statics may still hold expressions
  std::lock_guard<std::mutex> lock(mutex);
  auto [it, added] = vars.try_emplace(name);
  if (added) it->second = Var(name, dtype::int64_);
  return it->second;
}

Expr to_expr(const Dim& dim) {
  static const DimArithmetic<Expr> arithmetic{
      [](int64_t value) { return Expr(value); },     [](const std::string& name) { return Expr(symbol_var(name)); },
      [](Expr a, Expr b) { return a + b; },          [](Expr a, Expr b) { return a * b; },
      [](Expr a, Expr b) { return floordiv(a, b); }, [](Expr a, Expr b) { return min(a, b); },
      [](Expr a, Expr b) { return max(a, b); },
  };
  return fold_dim(dim, arithmetic);
}

std::vector<Expr> to_exprs(const Shape& shape) {
  std::vector<Expr> extents;
  for (const Dim& dim : shape) extents.push_back(to_expr(dim));
  return extents;
}

const char* name_of(ReduceOp op) {
  constexpr const char* kNames[] = {"sum", "prod", "max", "min", "any", "all"};
  return kNames[static_cast<int>(op)];
}

const char* symbol_of(BinaryOp op) {
  constexpr const char* kSymbols[] = {"+", "-", "*",  "/",  "floordiv", "floormod", "truncmod", "min", "max", "&",
                                      "|", "^", "<<", ">>", "==",       "!=",       "<",        "<=",  ">",   ">="};
  return kSymbols[static_cast<int>(op)];
}

}  // namespace treadle::loop
