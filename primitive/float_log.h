// SPDX-License-Identifier: Apache-2.0
//
// The parts of a float and its logarithm, the same bits on host and device: no product is
// contracted with a sum but where it is written so.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "oneflow_lite/core/host_device.h"

namespace oneflow_lite {

OFL_HOST_DEVICE float AsFloat(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof(x));
  return x;
}
OFL_HOST_DEVICE uint32_t AsBits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof(bits));
  return bits;
}

// Whole numbers below 2^22 are in the lowest bits of kRounder + them: conversions without the unit
// that converts, of which a device has few. The sum with another number is rounded to a whole one.
inline constexpr float kRounder = 12582912.0f;  // 1.5 2^23

inline constexpr float kLn2 = 0.693147182f;
inline constexpr uint32_t kRootHalf = 0x3f3504f3u;  // the bits of sqrt(1/2)

// 2^k of a normal number 2^k m, sqrt(1/2) <= m < sqrt(2), in the place of a float's exponent.
OFL_HOST_DEVICE uint32_t ExponentBits(float x) { return (AsBits(x) - kRootHalf) & 0xff800000u; }
OFL_HOST_DEVICE float ExponentIn(uint32_t bits) {
  return AsFloat(AsBits(kRounder) + static_cast<uint32_t>(static_cast<int32_t>(bits) >> 23)) -
         kRounder;
}
// log(1 + f) + k log(2), sqrt(1/2) <= 1 + f < sqrt(2), within 1.3 ulp.
OFL_HOST_DEVICE float LogOf(float f, float k) {
  float sum = fmaf(0.0874000862f, f, -0.143096641f);
  sum = fmaf(sum, f, 0.149168193f);
  sum = fmaf(sum, f, -0.16570048f);
  sum = fmaf(sum, f, 0.199621558f);
  sum = fmaf(sum, f, -0.250017852f);
  sum = fmaf(sum, f, 0.333339483f);
  sum = fmaf(sum, f, -0.499999911f);
  return fmaf(k, kLn2, fmaf(f * f, sum, f));
}
// log(x) of normal numbers.
OFL_HOST_DEVICE float LogOfNormal(float x) {
  const uint32_t bits = ExponentBits(x);
  return LogOf(AsFloat(AsBits(x) - bits) - 1.0f, ExponentIn(bits));
}

}  // namespace oneflow_lite
