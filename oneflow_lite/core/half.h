// SPDX-License-Identifier: Apache-2.0
//
// The 16-bit floating types of the host: storage and conversion, no arithmetic. Kernels widen to
// float, compute, and round once. Rounding is to nearest, ties to even (IEEE 754-2019, 4.3.1).
// C++17, since .cu files include it.
//
//   float16 h(1.5f);
//   float f = float(h);
#pragma once

#include <cstdint>

namespace oneflow_lite {

// IEEE 754 binary16: 1 sign, 5 exponent, 10 mantissa bits.
struct float16 {
  uint16_t bits = 0;

  float16() = default;
  explicit float16(float f) : bits(FromFloat(f)) {}
  explicit operator float() const { return ToFloat(bits); }

  static uint16_t FromFloat(float f) {
    const uint32_t u = __builtin_bit_cast(uint32_t, f);
    const uint32_t sign = (u >> 16) & 0x8000u;
    const uint32_t magnitude = u & 0x7fffffffu;
    if (magnitude >= 0x7f800000u) {  // infinity, or NaN (made quiet, payload dropped)
      return static_cast<uint16_t>(sign | (magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u));
    }
    if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // rounds past max
    if (magnitude < 0x38800000u) {  // subnormal or zero: let float addition do the rounding
      const float shifted = __builtin_bit_cast(float, magnitude) + 0.5f;
      return static_cast<uint16_t>(sign | (__builtin_bit_cast(uint32_t, shifted) - 0x3f000000u));
    }
    const uint32_t odd = (magnitude >> 13) & 1u;
    return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
  }
  static float ToFloat(uint16_t h) {
    const uint32_t sign = (h & 0x8000u) << 16;
    const uint32_t magnitude = h & 0x7fffu;
    uint32_t u;
    if (magnitude >= 0x7c00u) {
      u = 0x7f800000u | (magnitude & 0x3ffu) << 13;
    } else if (magnitude >= 0x400u) {
      u = (magnitude << 13) + 0x38000000u;
    } else {  // subnormal: magnitude * 2^-24, exact in float
      u = __builtin_bit_cast(uint32_t, static_cast<float>(magnitude) * 0x1p-24f);
    }
    return __builtin_bit_cast(float, sign | u);
  }
};

// bfloat16: the upper half of a binary32.
struct bfloat16 {
  uint16_t bits = 0;

  bfloat16() = default;
  explicit bfloat16(float f) : bits(FromFloat(f)) {}
  explicit operator float() const {
    return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16);
  }

  static uint16_t FromFloat(float f) {
    const uint32_t u = __builtin_bit_cast(uint32_t, f);
    if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((u >> 16) | 0x40u);
    return static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
};

}  // namespace oneflow_lite
