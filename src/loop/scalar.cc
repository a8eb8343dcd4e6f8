// SPDX-License-Identifier: Apache-2.0
// Binary operators, conversions and memory access of scalars; intrinsics are in scalar_intrinsic.cc.
#include "loop/scalar.h"

#include "loop/scalar_storage.h"

namespace treadle::loop {
namespace {

template <typename T>
T floor_quotient(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return static_cast<T>(0 - static_cast<uint64_t>(a));
    T quotient = static_cast<T>(a / b);
    return static_cast<T>(a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient);
  } else {
    return static_cast<T>(a / b);
  }
}

template <typename T>
T trunc_quotient(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return static_cast<T>(0 - static_cast<uint64_t>(a));
  }
  return static_cast<T>(a / b);
}

// The multiplication of the quotient's definition, in a type in which it wraps.
template <typename T>
T remainder(T a, T b, T quotient) {
  if (b == 0) return 0;
  return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b) * static_cast<uint64_t>(quotient));
}

template <typename T>
T shift(BinaryOp op, T a, T count) {
  constexpr int bits = std::numeric_limits<std::make_unsigned_t<T>>::digits;
  bool outside = static_cast<uint64_t>(count) >= static_cast<uint64_t>(bits);
  if (op == BinaryOp::Shl) return outside ? T{0} : static_cast<T>(static_cast<uint64_t>(a) << static_cast<int>(count));
  if (outside) return a < T{0} ? static_cast<T>(-1) : T{0};
  return static_cast<T>(a >> static_cast<int>(count));
}

template <BinaryOp op, typename A>
bool compare(A a, A b) {
  if constexpr (op == BinaryOp::Eq) return a == b;
  if constexpr (op == BinaryOp::Ne) return a != b;
  if constexpr (op == BinaryOp::Lt) return a < b;
  if constexpr (op == BinaryOp::Le) return a <= b;
  if constexpr (op == BinaryOp::Gt) return a > b;
  return a >= b;
}

constexpr bool compares(BinaryOp op) { return op >= BinaryOp::Eq; }

template <BinaryOp op, typename A>
A float_arithmetic(A a, A b) {
  if constexpr (op == BinaryOp::Add) return a + b;
  if constexpr (op == BinaryOp::Sub) return a - b;
  if constexpr (op == BinaryOp::Mul) return a * b;
  if constexpr (op == BinaryOp::Div) return a / b;
  if constexpr (op == BinaryOp::FloorDiv) return std::floor(a / b);
  if constexpr (op == BinaryOp::FloorMod) {
    const A rest = std::fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
  if constexpr (op == BinaryOp::TruncMod) return std::fmod(a, b);
  if constexpr (op == BinaryOp::Min) return a != a ? a : b != b ? b : a < b ? a : b;
  return a != a ? a : b != b ? b : a > b ? a : b;
}

template <BinaryOp op, typename T>
T int_arithmetic(T a, T b) {
  const uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  if constexpr (op == BinaryOp::Add) return static_cast<T>(x + y);
  if constexpr (op == BinaryOp::Sub) return static_cast<T>(x - y);
  if constexpr (op == BinaryOp::Mul) return static_cast<T>(x * y);
  if constexpr (op == BinaryOp::Div) return trunc_quotient(a, b);
  if constexpr (op == BinaryOp::FloorDiv) return floor_quotient(a, b);
  if constexpr (op == BinaryOp::FloorMod) return remainder(a, b, floor_quotient(a, b));
  if constexpr (op == BinaryOp::TruncMod) return remainder(a, b, trunc_quotient(a, b));
  if constexpr (op == BinaryOp::Min) return a < b ? a : b;
  if constexpr (op == BinaryOp::Max) return a > b ? a : b;
  if constexpr (op == BinaryOp::And) return static_cast<T>(x & y);
  if constexpr (op == BinaryOp::Or) return static_cast<T>(x | y);
  if constexpr (op == BinaryOp::Xor) return static_cast<T>(x ^ y);
  return shift(op, a, b);
}

constexpr bool exists_for_float(BinaryOp op) { return compares(op) || op <= BinaryOp::Max; }
constexpr bool exists_for_bool(BinaryOp op) { return compares(op) || (op >= BinaryOp::Min && op <= BinaryOp::Xor); }

template <BinaryOp op, typename T>
Scalar apply(Scalar a, Scalar b, Scalar) {
  if constexpr (compares(op))
    return int_scalar(compare<op>(get<T>(a), get<T>(b)));
  else if constexpr (kIsFloat<T>)
    return put<T>(float_arithmetic<op>(get<T>(a), get<T>(b)));
  else if constexpr (std::is_same_v<T, bool>)
    return int_scalar(int_arithmetic<op, uint8_t>(get<T>(a), get<T>(b)));
  else
    return put<T>(int_arithmetic<op>(get<T>(a), get<T>(b)));
}

template <BinaryOp op>
ScalarFn pick(DType dtype) {
  return visit(dtype, []<typename T>() -> ScalarFn {
    if constexpr (kIsFloat<T> && !exists_for_float(op))
      return nullptr;
    else if constexpr (std::is_same_v<T, bool> && !exists_for_bool(op))
      return nullptr;
    else
      return &apply<op, T>;
  });
}

template <typename From, typename To>
Scalar convert(Scalar a, Scalar, Scalar) {
  if constexpr (std::is_same_v<To, bool>) {
    if constexpr (kIsFloat<From>)
      return int_scalar(!(a.f == 0));
    else
      return int_scalar(a.i != 0);
  } else if constexpr (kIsFloat<From> && !kIsFloat<To>) {
    using Limits = std::numeric_limits<To>;
    if (std::isnan(a.f)) return int_scalar(0);
    // The first value above the range is a power of two, so it is exact as double.
    if (a.f >= std::ldexp(1.0, Limits::digits)) return put<To>(Limits::max());
    if (a.f <= static_cast<double>(Limits::min())) return put<To>(Limits::min());
    return put<To>(static_cast<To>(a.f));
  } else if constexpr (kIsFloat<From>) {
    return put<To>(a.f);
  } else {
    return put<To>(static_cast<From>(a.i));
  }
}

template <typename From, typename To>
Scalar same_bits(Scalar a, Scalar, Scalar) {
  static_assert(sizeof(From) == sizeof(To));
  alignas(8) unsigned char bits[8];
  write_as<From>(bits, 0, a);
  return read_as<To>(bits, 0);
}

}  // namespace

bool is_comparison(BinaryOp op) { return compares(op); }

ScalarFn binary_function(BinaryOp op, DType dtype) {
  switch (op) {
    case BinaryOp::Add:
      return pick<BinaryOp::Add>(dtype);
    case BinaryOp::Sub:
      return pick<BinaryOp::Sub>(dtype);
    case BinaryOp::Mul:
      return pick<BinaryOp::Mul>(dtype);
    case BinaryOp::Div:
      return pick<BinaryOp::Div>(dtype);
    case BinaryOp::FloorDiv:
      return pick<BinaryOp::FloorDiv>(dtype);
    case BinaryOp::FloorMod:
      return pick<BinaryOp::FloorMod>(dtype);
    case BinaryOp::TruncMod:
      return pick<BinaryOp::TruncMod>(dtype);
    case BinaryOp::Min:
      return pick<BinaryOp::Min>(dtype);
    case BinaryOp::Max:
      return pick<BinaryOp::Max>(dtype);
    case BinaryOp::And:
      return pick<BinaryOp::And>(dtype);
    case BinaryOp::Or:
      return pick<BinaryOp::Or>(dtype);
    case BinaryOp::Xor:
      return pick<BinaryOp::Xor>(dtype);
    case BinaryOp::Shl:
      return pick<BinaryOp::Shl>(dtype);
    case BinaryOp::Shr:
      return pick<BinaryOp::Shr>(dtype);
    case BinaryOp::Eq:
      return pick<BinaryOp::Eq>(dtype);
    case BinaryOp::Ne:
      return pick<BinaryOp::Ne>(dtype);
    case BinaryOp::Lt:
      return pick<BinaryOp::Lt>(dtype);
    case BinaryOp::Le:
      return pick<BinaryOp::Le>(dtype);
    case BinaryOp::Gt:
      return pick<BinaryOp::Gt>(dtype);
    case BinaryOp::Ge:
      return pick<BinaryOp::Ge>(dtype);
  }
  return nullptr;
}

ScalarFn not_function(DType dtype) {
  return visit(dtype, []<typename T>() -> ScalarFn {
    if constexpr (kIsFloat<T>)
      return nullptr;
    else if constexpr (std::is_same_v<T, bool>)
      return [](Scalar a, Scalar, Scalar) { return int_scalar(!a.i); };
    else
      return [](Scalar a, Scalar, Scalar) { return put<T>(~a.i); };
  });
}

ScalarFn cast_function(DType from, DType to) {
  return visit(from, [&]<typename From>() -> ScalarFn {
    return visit(to, []<typename To>() -> ScalarFn { return &convert<From, To>; });
  });
}

ScalarFn reinterpret_function(DType from, DType to) {
  return visit(from, [&]<typename From>() -> ScalarFn {
    return visit(to, []<typename To>() -> ScalarFn {
      if constexpr (sizeof(From) == sizeof(To))
        return &same_bits<From, To>;
      else
        return nullptr;
    });
  });
}

DType result_dtype(BinaryOp op, DType operands) { return compares(op) ? dtype::bool_ : operands; }

BinaryOp combiner(ReduceOp op) {
  switch (op) {
    case ReduceOp::Sum:
      return BinaryOp::Add;
    case ReduceOp::Prod:
      return BinaryOp::Mul;
    case ReduceOp::Max:
      return BinaryOp::Max;
    case ReduceOp::Min:
      return BinaryOp::Min;
    case ReduceOp::Any:
      return BinaryOp::Or;
    case ReduceOp::All:
      return BinaryOp::And;
  }
  return BinaryOp::Add;
}

Scalar read_element(DType dtype, const void* data, int64_t index) {
  return visit(dtype, [&]<typename T>() { return read_as<T>(data, index); });
}

void write_element(DType dtype, void* data, int64_t index, Scalar value) {
  visit(dtype, [&]<typename T>() { write_as<T>(data, index, value); });
}

int64_t wrap(int64_t value, DType dtype) {
  return visit(dtype, [&]<typename T>() -> int64_t {
    if constexpr (kIsFloat<T>)
      return value;
    else
      return put<T>(value).i;
  });
}

double round_to(double value, DType dtype) {
  return visit(dtype, [&]<typename T>() -> double {
    if constexpr (kIsFloat<T>)
      return put<T>(value).f;
    else
      return value;
  });
}

}  // namespace treadle::loop
