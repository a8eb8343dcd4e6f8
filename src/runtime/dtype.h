// SPDX-License-Identifier: Apache-2.0
// Element types. The codes are DLPack's, so that a dtype crosses every border unchanged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "runtime/float16.h"

namespace treadle {

// DLPack's type codes (dlpack.h, DLDataTypeCode).
enum class TypeCode : uint8_t { Int = 0, UInt = 1, Float = 2, Handle = 3, BFloat = 4, Bool = 6 };

// The type of one element: code and width. Vectors of the loop IR carry their lanes beside it.
struct DType {
  TypeCode code = TypeCode::Float;
  uint8_t bits = 32;

  constexpr bool operator==(const DType&) const = default;

  constexpr bool is_bool() const { return code == TypeCode::Bool; }
  constexpr bool is_int() const { return code == TypeCode::Int; }  // signed
  constexpr bool is_uint() const { return code == TypeCode::UInt; }
  constexpr bool is_integer() const { return is_int() || is_uint(); }  // bool is none
  constexpr bool is_float() const { return code == TypeCode::Float || code == TypeCode::BFloat; }
  constexpr bool is_half() const { return is_float() && bits == 16; }  // float16 or bfloat16
  constexpr size_t bytes() const { return (bits + 7u) / 8u; }
};

namespace dtype {
#define TREADLE_DTYPE(name, code, bits, storage) inline constexpr DType name##_{TypeCode::code, bits};
#include "runtime/dtype.def"
#undef TREADLE_DTYPE
}  // namespace dtype

// "float32"; "bool".
std::string to_string(DType dtype);
// Reads what to_string writes; nullopt for an unknown name.
std::optional<DType> parse_dtype(std::string_view name);
// Every dtype, in the order of dtype.def.
const std::vector<DType>& all_dtypes();

// dtype_of<float>() == dtype::float32_.
template <typename T>
constexpr DType dtype_of() {
#define TREADLE_DTYPE(name, code, bits, storage) \
  if constexpr (std::is_same_v<T, storage>) return dtype::name##_;
#include "runtime/dtype.def"
#undef TREADLE_DTYPE
}

// Calls f.template operator()<T>() with the C++ storage type T of `dtype`: visit(d, [&]<typename T>() { … }).
template <typename F>
decltype(auto) visit(DType dtype, F&& f) {
#define TREADLE_DTYPE(name, code, bits, storage) \
  if (dtype == dtype::name##_) return f.template operator()<storage>();
#include "runtime/dtype.def"
#undef TREADLE_DTYPE
  return f.template operator()<float>();
}

}  // namespace treadle
