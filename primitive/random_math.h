// SPDX-License-Identifier: Apache-2.0
//
// From Philox's integers (core/philox.h) to numbers of a distribution, for host and device. No
// product is contracted with a sum but where it is written so: both give the same bits, but for
// logarithms, sines and cosines, which differ by less than 2 units in the last place.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "oneflow_lite/core/philox.h"

namespace oneflow_lite {

// The smallest k for which k / 2^24 >= p, p in [0, 1]: UniformFloat(bits) < p is bits >> 8 < k.
inline uint32_t UniformThreshold(double p) { return static_cast<uint32_t>(std::ceil(p * 0x1p24)); }

// u * span + low, rounded twice.
OFL_HOST_DEVICE float Stretched(float u, float span, float low) {
#ifdef __CUDA_ARCH__
  return __fadd_rn(__fmul_rn(u, span), low);
#else
  return u * span + low;
#endif
}
OFL_HOST_DEVICE double Stretched(double u, double span, double low) {
#ifdef __CUDA_ARCH__
  return __dadd_rn(__dmul_rn(u, span), low);
#else
  return u * span + low;
#endif
}

// low + floor(bits * count / 2^32).
OFL_HOST_DEVICE int64_t IntegerOf(uint32_t bits, int64_t low, uint64_t count) {
  // count is at most 2^32, so that the product has 64 bits.
  const uint64_t place = count >> 32 ? bits : (uint64_t{bits} * count) >> 32;
  return static_cast<int64_t>(static_cast<uint64_t>(low) + place);
}

// A float as the sum of two.
struct TwoFloats {
  float high, low;
};

// log(w) of a float w in [2^-24, 1], with some 32 bits: log m = 2 atanh((m - 1) / (m + 1)).
OFL_HOST_DEVICE TwoFloats LogOf(float w) {
  int32_t bits;
  memcpy(&bits, &w, sizeof(bits));
  const int32_t exponent = (bits - 0x3f3504f3) >> 23;  // m is in [sqrt(1/2), sqrt(2))
  bits -= exponent * (1 << 23);
  float m;
  memcpy(&m, &bits, sizeof(m));
  const float f = m - 1.0f, d = m + 1.0f, d_low = m - (d - 1.0f);
  const float s = f / d;
  const float rest = fmaf(-s, d_low, fmaf(-s, d, f)) / d;
  const float z = s * s;
  float p = fmaf(z, 1.0f / 11, 1.0f / 9);
  p = fmaf(z, p, 1.0f / 7);
  p = fmaf(z, p, 1.0f / 5);
  p = z * fmaf(z, p, 1.0f / 3);
  const float e = static_cast<float>(exponent);
  const float large = e * 0.693145751953125f;  // exact: log 2 to 15 bits
  const float high = large + 2.0f * s;
  const float low = 2.0f * s - (high - large);
  return {high, low + fmaf(e, 1.42860677e-6f, fmaf(2.0f * s, p, 2.0f * rest))};
}

// The sine and cosine of x + low, |x| <= pi / 4.
OFL_HOST_DEVICE void SineAndCosine(float x, float low, TwoFloats* sine, TwoFloats* cosine) {
  const float z = x * x, z_low = fmaf(x, x, -z);
  float s = fmaf(z, -2.5052108e-8f, 2.7557319e-6f);
  s = fmaf(z, s, -1.9841270e-4f);
  s = fmaf(z, s, 8.3333333e-3f);
  s = fmaf(z, s, -1.6666667e-1f);
  const float more = fmaf(x * z, s, low * fmaf(z, -0.5f, 1.0f));
  sine->high = x + more;
  sine->low = more - (sine->high - x);
  float c = fmaf(z, 2.0876757e-9f, -2.7557319e-7f);
  c = fmaf(z, c, 2.4801587e-5f);
  c = fmaf(z, c, -1.3888889e-3f);
  c = fmaf(z, c, 4.1666667e-2f);
  const float half = 0.5f * z, one = 1.0f - half;
  const float less = ((1.0f - one) - half) + fmaf(z * z, c, fmaf(-x, low, -0.5f * z_low));
  cosine->high = one + less;
  cosine->low = less - (cosine->high - one);
}

// Box and Muller, "A Note on the Generation of Random Normal Deviates" (1958): from uniforms u and
// v, multiples of 2^-24, to two normals, within 1 unit in the last place.
OFL_HOST_DEVICE void BoxMullerInFloats(float& u, float& v) {
  const TwoFloats log = LogOf(1.0f - u);
  const float x = -2.0f * (log.high + log.low);
  const float x_low = -2.0f * (log.low - (-0.5f * x - log.high));
#ifdef __CUDA_ARCH__
  const float r = __fsqrt_rn(x);
#else
  const float r = std::sqrt(x);
#endif
  const float r_low = r > 0.0f ? (fmaf(-r, r, x) + x_low) / (2.0f * r) : 0.0f;
  const float turns = 4.0f * v, quarter = rintf(turns), t = turns - quarter;  // exact
  const float angle = t * 1.57079637f;
  const float angle_low = fmaf(t, 1.57079637f, -angle) + t * -4.37113883e-8f;
  TwoFloats sine, cosine;
  SineAndCosine(angle, angle_low, &sine, &cosine);
  const int q = static_cast<int>(quarter);
  TwoFloats to_u = q & 1 ? sine : cosine, to_v = q & 1 ? cosine : sine;
  if ((q + 1) & 2) to_u = {-to_u.high, -to_u.low};
  if (q & 2) to_v = {-to_v.high, -to_v.low};
  u = fmaf(r, to_u.high, fmaf(r, to_u.low, r_low * to_u.high));
  v = fmaf(r, to_v.high, fmaf(r, to_v.low, r_low * to_v.high));
}

}  // namespace oneflow_lite
