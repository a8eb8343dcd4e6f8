// SPDX-License-Identifier: Apache-2.0
// Between a Scalar and the C++ type in which a dtype is stored or computed; for the sources that define scalar
// operations.
#pragma once

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "loop/scalar.h"

namespace treadle::loop {

template <typename T>
inline constexpr bool kIsHalf = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;
template <typename T>
inline constexpr bool kIsFloat = std::is_floating_point_v<T> || kIsHalf<T>;

// The type of arithmetic: float for the 16-bit floats.
template <typename T>
using Arithmetic = std::conditional_t<kIsHalf<T>, float, T>;

template <typename T>
Arithmetic<T> get(Scalar s) {
  if constexpr (kIsFloat<T>)
    return static_cast<Arithmetic<T>>(s.f);
  else
    return static_cast<T>(s.i);
}

// `value` as float, rounded to odd: a later rounding to 16 bits then gives what one rounding would have given.
inline float round_to_odd(long double value) {
  float nearest = static_cast<float>(value);
  if (static_cast<long double>(nearest) == value || !std::isfinite(nearest)) return nearest;
  if (std::bit_cast<uint32_t>(nearest) & 1u) return nearest;
  return std::nextafterf(
      nearest, value > nearest ? std::numeric_limits<float>::infinity() : -std::numeric_limits<float>::infinity());
}

// `value` (a float, double, long double or integer) as dtype T: floats round once, to nearest even; integers wrap.
template <typename T, typename V>
Scalar put(V value) {
  if constexpr (kIsHalf<T>) {
    if constexpr (std::is_same_v<V, float>)
      return float_scalar(static_cast<float>(T(value)));
    else
      return float_scalar(static_cast<float>(T(round_to_odd(static_cast<long double>(value)))));
  } else if constexpr (kIsFloat<T>) {
    return float_scalar(static_cast<double>(static_cast<T>(value)));
  } else {
    return int_scalar(static_cast<int64_t>(static_cast<T>(value)));
  }
}

// Element `index` of memory that holds T.
template <typename T>
Scalar read_as(const void* data, int64_t index) {
  // A byte that is neither 0 nor 1 must not be read as bool.
  if constexpr (std::is_same_v<T, bool>)
    return int_scalar(static_cast<const uint8_t*>(data)[index] != 0);
  else if constexpr (kIsFloat<T>)
    return float_scalar(static_cast<double>(static_cast<const T*>(data)[index]));
  else
    return int_scalar(static_cast<int64_t>(static_cast<const T*>(data)[index]));
}

template <typename T>
void write_as(void* data, int64_t index, Scalar value) {
  static_cast<T*>(data)[index] = static_cast<T>(get<T>(value));
}

}  // namespace treadle::loop
