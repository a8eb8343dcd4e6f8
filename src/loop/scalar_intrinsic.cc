// SPDX-License-Identifier: Apache-2.0
// Scalar intrinsics. Floats are computed in double by <cmath> and rounded once to the dtype, so that narrower dtypes
// get the correctly rounded value in all but a few cases: good enough to judge generated code by.
#include <array>
#include <limits>

#include "loop/scalar_storage.h"

namespace treadle::loop {
namespace {

template <Intrinsic f>
double in_double(double x, double y) {
  if constexpr (f == Intrinsic::Acos)
    return std::acos(x);
  else if constexpr (f == Intrinsic::Acosh)
    return std::acosh(x);
  else if constexpr (f == Intrinsic::Asin)
    return std::asin(x);
  else if constexpr (f == Intrinsic::Asinh)
    return std::asinh(x);
  else if constexpr (f == Intrinsic::Atan)
    return std::atan(x);
  else if constexpr (f == Intrinsic::Atanh)
    return std::atanh(x);
  else if constexpr (f == Intrinsic::Ceil)
    return std::ceil(x);
  else if constexpr (f == Intrinsic::Cos)
    return std::cos(x);
  else if constexpr (f == Intrinsic::Cosh)
    return std::cosh(x);
  else if constexpr (f == Intrinsic::Erf)
    return std::erf(x);
  else if constexpr (f == Intrinsic::Exp)
    return std::exp(x);
  else if constexpr (f == Intrinsic::Floor)
    return std::floor(x);
  else if constexpr (f == Intrinsic::Log)
    return std::log(x);
  else if constexpr (f == Intrinsic::Log10)
    return std::log10(x);
  else if constexpr (f == Intrinsic::Log2)
    return std::log2(x);
  else if constexpr (f == Intrinsic::Pow)
    return std::pow(x, y);
  else if constexpr (f == Intrinsic::RoundAway)
    return std::round(x);
  else if constexpr (f == Intrinsic::RoundEven)
    return std::nearbyint(x);
  else if constexpr (f == Intrinsic::Rsqrt)
    return 1.0 / std::sqrt(x);
  else if constexpr (f == Intrinsic::Sigmoid)
    return 1.0 / (1.0 + std::exp(-x));
  else if constexpr (f == Intrinsic::Sin)
    return std::sin(x);
  else if constexpr (f == Intrinsic::Sinh)
    return std::sinh(x);
  else if constexpr (f == Intrinsic::Sqrt)
    return std::sqrt(x);
  else if constexpr (f == Intrinsic::Tan)
    return std::tan(x);
  else if constexpr (f == Intrinsic::Tanh)
    return std::tanh(x);
  else if constexpr (f == Intrinsic::Trunc)
    return std::trunc(x);
  else
    return std::fabs(x);
}

template <typename T>
T int_power(T base, T exponent) {
  if constexpr (std::is_signed_v<T>) {
    if (exponent < 0) return base == 1 ? T{1} : base == -1 ? static_cast<T>(exponent & 1 ? -1 : 1) : T{0};
  }
  uint64_t result = 1, square = static_cast<uint64_t>(base);
  for (uint64_t rest = static_cast<uint64_t>(exponent); rest != 0; rest >>= 1) {
    if (rest & 1) result *= square;
    square *= square;
  }
  return static_cast<T>(result);
}

template <typename T>
Scalar fused(Scalar a, Scalar b, Scalar c) {
  if constexpr (std::is_same_v<T, float>)
    return put<T>(std::fma(get<T>(a), get<T>(b), get<T>(c)));
  else
    return put<T>(std::fma(a.f, b.f, c.f));
}

template <Intrinsic f, typename T>
ScalarFn pick_float() {
  if constexpr (f == Intrinsic::Popcount)
    return nullptr;
  else if constexpr (f == Intrinsic::Fma)
    return &fused<T>;
  else if constexpr (f == Intrinsic::IsNan)
    return [](Scalar a, Scalar, Scalar) { return int_scalar(std::isnan(a.f)); };
  else if constexpr (f == Intrinsic::IsInf)
    return [](Scalar a, Scalar, Scalar) { return int_scalar(std::isinf(a.f)); };
  else if constexpr (f == Intrinsic::IsFinite)
    return [](Scalar a, Scalar, Scalar) { return int_scalar(std::isfinite(a.f)); };
  else
    return [](Scalar a, Scalar b, Scalar) { return put<T>(in_double<f>(a.f, b.f)); };
}

template <Intrinsic f, typename T>
ScalarFn pick_int() {
  if constexpr (f == Intrinsic::Abs) {
    return [](Scalar a, Scalar, Scalar) {
      return std::is_signed_v<T> && a.i < 0 ? put<T>(0 - static_cast<uint64_t>(a.i)) : a;
    };
  } else if constexpr (f == Intrinsic::Pow) {
    return [](Scalar a, Scalar b, Scalar) { return put<T>(int_power(get<T>(a), get<T>(b))); };
  } else if constexpr (f == Intrinsic::Popcount) {
    return
        [](Scalar a, Scalar, Scalar) { return int_scalar(std::popcount(static_cast<std::make_unsigned_t<T>>(a.i))); };
  } else {
    return nullptr;
  }
}

template <Intrinsic f>
ScalarFn pick(DType dtype) {
  return visit(dtype, []<typename T>() -> ScalarFn {
    if constexpr (kIsFloat<T>)
      return pick_float<f, T>();
    else if constexpr (std::is_same_v<T, bool>)
      return nullptr;
    else
      return pick_int<f, T>();
  });
}

}  // namespace

ScalarFn intrinsic_function(Intrinsic function, DType dtype) {
  switch (function) {
#define TREADLE_INTRINSIC(name, text, arity, meaning) \
  case Intrinsic::name:                               \
    return pick<Intrinsic::name>(dtype);
#include "loop/intrinsics.def"
#undef TREADLE_INTRINSIC
  }
  return nullptr;
}

DType result_dtype(Intrinsic function, DType operands) {
  bool predicate = function == Intrinsic::IsNan || function == Intrinsic::IsInf || function == Intrinsic::IsFinite;
  return predicate ? dtype::bool_ : operands;
}

int arity(Intrinsic function) {
  constexpr int kArity[] = {
#define TREADLE_INTRINSIC(name, text, arity, meaning) arity,
#include "loop/intrinsics.def"
#undef TREADLE_INTRINSIC
  };
  return kArity[static_cast<int>(function)];
}

const char* name_of(Intrinsic function) {
  constexpr const char* kNames[] = {
#define TREADLE_INTRINSIC(name, text, arity, meaning) text,
#include "loop/intrinsics.def"
#undef TREADLE_INTRINSIC
  };
  return kNames[static_cast<int>(function)];
}

}  // namespace treadle::loop
