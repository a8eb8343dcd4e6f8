// SPDX-License-Identifier: Apache-2.0
// IEEE 754 binary16 and bfloat16 as storage types; arithmetic is done in float. Conversions round to nearest even.
#pragma once

#include <bit>
#include <cstdint>

namespace treadle {

// binary16 bits of `value`: overflow gives infinity, NaN stays NaN (quiet).
constexpr uint16_t float_to_half_bits(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  if (magnitude >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7c00u);  // 65536 and above
  if (magnitude < 0x33000000u) return static_cast<uint16_t>(sign);             // below half the smallest subnormal
  const int exponent = static_cast<int>(magnitude >> 23) - 127;
  uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
  // Bits to drop: 13 for a normal result, more for a subnormal one.
  const int drop = exponent >= -14 ? 13 : 13 + (-14 - exponent);
  const uint32_t half = 1u << (drop - 1);
  const uint32_t rest = mantissa & ((1u << drop) - 1);
  uint32_t rounded = mantissa >> drop;
  if (rest > half || (rest == half && (rounded & 1u))) ++rounded;
  // A carry out of the mantissa runs into the exponent, which is what rounding up to the next power of two means.
  const uint32_t base = exponent >= -14 ? static_cast<uint32_t>(exponent + 15 - 1) << 10 : 0;
  return static_cast<uint16_t>(sign | (base + rounded));
}

constexpr float half_bits_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1fu;
  uint32_t mantissa = half & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
  if (mantissa == 0) return std::bit_cast<float>(sign);
  const int shift = std::countl_zero(mantissa) - 21;  // brings the leading one to bit 10
  mantissa = (mantissa << shift) & 0x3ffu;
  return std::bit_cast<float>(sign | (static_cast<uint32_t>(113 - shift) << 23) | (mantissa << 13));
}

constexpr uint16_t float_to_bfloat_bits(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

constexpr float bfloat_bits_to_float(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

struct Float16 {
  uint16_t bits = 0;
  Float16() = default;
  constexpr explicit Float16(float value) : bits(float_to_half_bits(value)) {}
  constexpr operator float() const { return half_bits_to_float(bits); }
};

struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  constexpr explicit BFloat16(float value) : bits(float_to_bfloat_bits(value)) {}
  constexpr operator float() const { return bfloat_bits_to_float(bits); }
};

}  // namespace treadle
