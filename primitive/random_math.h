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

// low + floor(bits * count / 2^32), count at most 2^32.
OFL_HOST_DEVICE int64_t IntegerOf(uint32_t bits, int64_t low, uint64_t count) {
#ifdef __CUDA_ARCH__
  const uint32_t place = count >> 32 ? bits : __umulhi(bits, static_cast<uint32_t>(count));
#else
  const uint64_t place = count >> 32 ? bits : (uint64_t{bits} * count) >> 32;
#endif
  return static_cast<int64_t>(static_cast<uint64_t>(low) + place);
}

// 1 / x and 1 / sqrt(x) of a normal number: within a unit in the last place, and one instruction on
// the device.
OFL_HOST_DEVICE float NearReciprocal(float x) {
#ifdef __CUDA_ARCH__
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return 1.0f / x;
#endif
}
OFL_HOST_DEVICE float NearReciprocalRoot(float x) {
#ifdef __CUDA_ARCH__
  float y;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return 1.0f / std::sqrt(x);
#endif
}

// Whole numbers below 2^22 in the last bits of kWhole + them: conversions without the unit that
// converts, of which the device has few.
inline constexpr float kWhole = 12582912.0f;  // 1.5 2^23

OFL_HOST_DEVICE uint32_t WordOf(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof(bits));
  return bits;
}
OFL_HOST_DEVICE float FloatOf(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof(x));
  return x;
}

// w = m 2^exponent, m in [sqrt(1/2), sqrt(2)).
struct Scaled {
  float m, exponent;
};
OFL_HOST_DEVICE Scaled ScaledOf(float w) {
  constexpr uint32_t kLowest = 0x3f3504f3u;  // sqrt(1/2)
  const auto exponent = static_cast<uint32_t>(static_cast<int32_t>(WordOf(w) - kLowest) >> 23);
  return {FloatOf(WordOf(w) - (exponent << 23)), FloatOf(WordOf(kWhole) + exponent) - kWhole};
}

// A float as the sum of two.
struct TwoFloats {
  float high, low;
};

// log(w) of a float w in [2^-24, 1], with some 32 bits: log m = 2 atanh((m - 1) / (m + 1)).
OFL_HOST_DEVICE TwoFloats LogOf(float w) {
  const Scaled scaled = ScaledOf(w);
  const float m = scaled.m, e = scaled.exponent;
  const float f = m - 1.0f, d = m + 1.0f, d_low = m - (d - 1.0f);
  const float over = NearReciprocal(d);
  const float s = f * over;
  const float rest = fmaf(-s, d_low, fmaf(-s, d, f)) * over;  // makes good what s lacks
  const float z = s * s;
  float p = fmaf(z, 1.0f / 11, 1.0f / 9);
  p = fmaf(z, p, 1.0f / 7);
  p = fmaf(z, p, 1.0f / 5);
  p = z * fmaf(z, p, 1.0f / 3);
  const float large = e * 0.693145751953125f;  // exact: log 2 to 15 bits
  const float high = large + 2.0f * s;
  const float low = 2.0f * s - (high - large);
  return {high, low + fmaf(e, 1.42860677e-6f, fmaf(2.0f * s, p, 2.0f * rest))};
}
// The same within some units in the last place: for results of 16 bits.
OFL_HOST_DEVICE float NearLogOf(float w) {
  const Scaled scaled = ScaledOf(w);
  const float s = (scaled.m - 1.0f) * NearReciprocal(scaled.m + 1.0f), z = s * s;
  const float p = fmaf(z, fmaf(z, fmaf(z, 2.0f / 7, 2.0f / 5), 2.0f / 3), 2.0f);
  return fmaf(scaled.exponent, 0.693147181f, s * p);
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

// v as quarters of a turn: the nearest whole number of them and what is left, in [-1/2, 1/2],
// exact.
struct Turn {
  uint32_t quarter;
  float rest;

  OFL_HOST_DEVICE explicit Turn(float v) {
    const float turns = 4.0f * v, shifted = turns + kWhole;
    quarter = WordOf(shifted);
    rest = turns - (shifted - kWhole);
  }
  // Of the sine and cosine of the rest: those of the whole.
  OFL_HOST_DEVICE bool swaps() const { return (quarter & 1) != 0; }
  OFL_HOST_DEVICE float SignedCosine(float x) const {
    return FloatOf(WordOf(x) ^ ((quarter + 1) << 30 & 0x80000000u));
  }
  OFL_HOST_DEVICE float SignedSine(float x) const {
    return FloatOf(WordOf(x) ^ (quarter << 30 & 0x80000000u));
  }
};

// Box and Muller, "A Note on the Generation of Random Normal Deviates" (1958): from uniforms u and
// v, multiples of 2^-24, to two normals, within 1 unit in the last place.
OFL_HOST_DEVICE void BoxMullerInFloats(float& u, float& v) {
  const TwoFloats log = LogOf(1.0f - u);
  const float x = -2.0f * (log.high + log.low);
  const float x_low = -2.0f * (log.low - (-0.5f * x - log.high));
  const float over = x > 0.0f ? NearReciprocalRoot(x) : 0.0f;
  const float r = x * over;
  const float r_low = (fmaf(-r, r, x) + x_low) * (0.5f * over);  // makes good what r lacks
  const Turn turn(v);
  const float angle = turn.rest * 1.57079637f;
  const float angle_low = fmaf(turn.rest, 1.57079637f, -angle) + turn.rest * -4.37113883e-8f;
  TwoFloats sine, cosine;
  SineAndCosine(angle, angle_low, &sine, &cosine);
  const TwoFloats to_u = turn.swaps() ? sine : cosine, to_v = turn.swaps() ? cosine : sine;
  u = turn.SignedCosine(fmaf(r, to_u.high, fmaf(r, to_u.low, r_low * to_u.high)));
  v = turn.SignedSine(fmaf(r, to_v.high, fmaf(r, to_v.low, r_low * to_v.high)));
}
// The same within some units in the last place of a float: for results of 16 bits.
OFL_HOST_DEVICE void NearBoxMuller(float& u, float& v) {
  const float x = -2.0f * NearLogOf(1.0f - u);
  const float r = x > 0.0f ? x * NearReciprocalRoot(x) : 0.0f;
  const Turn turn(v);
  const float t = turn.rest * 1.57079633f, z = t * t;
  float s = fmaf(z, 2.7557319e-6f, -1.9841270e-4f);
  s = fmaf(z, s, 8.3333333e-3f);
  s = fmaf(z, s, -1.6666667e-1f);
  const float sine = fmaf(t * z, s, t);
  float c = fmaf(z, 2.4801587e-5f, -1.3888889e-3f);
  c = fmaf(z, c, 4.1666667e-2f);
  c = fmaf(z, c, -0.5f);
  const float cosine = fmaf(z, c, 1.0f);
  u = turn.SignedCosine(r * (turn.swaps() ? sine : cosine));
  v = turn.SignedSine(r * (turn.swaps() ? cosine : sine));
}

}  // namespace oneflow_lite
