// SPDX-License-Identifier: Apache-2.0
//
// From Philox's integers (core/philox.h) to numbers of a distribution, for host and device. No
// product is contracted with a sum but where it is written so: both give the same bits, but for
// logarithms, sines and cosines, which differ by less than 2 units in the last place.
#pragma once

#include <cmath>
#include <cstdint>

#include "oneflow_lite/core/philox.h"
#include "primitive/float_log.h"

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

// log(w) of a float w in [2^-24, 1] within some units in the last place: for results of 16 bits.
OFL_HOST_DEVICE float NearLogOf(float w) {
  const uint32_t bits = ExponentBits(w);
  const float m = AsFloat(AsBits(w) - bits);
  const float s = (m - 1.0f) * NearReciprocal(m + 1.0f), z = s * s;
  const float p = fmaf(z, fmaf(z, fmaf(z, 2.0f / 7, 2.0f / 5), 2.0f / 3), 2.0f);
  return fmaf(ExponentIn(bits), 0.693147181f, s * p);
}

// v as quarters of a turn: the nearest whole number of them and what is left, in [-1/2, 1/2],
// exact.
struct Turn {
  uint32_t quarter;
  float rest;

  OFL_HOST_DEVICE explicit Turn(float v) {
    const float turns = 4.0f * v, shifted = turns + kRounder;
    quarter = AsBits(shifted);
    rest = turns - (shifted - kRounder);
  }
  // Of the sine and cosine of the rest: those of the whole.
  OFL_HOST_DEVICE bool swaps() const { return (quarter & 1) != 0; }
  OFL_HOST_DEVICE float SignedCosine(float x) const {
    return AsFloat(AsBits(x) ^ ((quarter + 1) << 30 & 0x80000000u));
  }
  OFL_HOST_DEVICE float SignedSine(float x) const {
    return AsFloat(AsBits(x) ^ (quarter << 30 & 0x80000000u));
  }
};

// Box and Muller, "A Note on the Generation of Random Normal Deviates" (1958): from uniforms u and
// v, multiples of 2^-24, to two normals, within 2 units in the last place. The radius, the sine and
// the cosine are sums of a float and a small rest.
OFL_HOST_DEVICE void BoxMullerInFloats(float& u, float& v) {
  const float x = -2.0f * LogOfNormal(1.0f - u);
  const float over = x > 0.0f ? NearReciprocalRoot(x) : 0.0f;
  const float r = x * over, r_rest = fmaf(-r, r, x) * (0.5f * over);
  const Turn turn(v);
  const float t = turn.rest, z = t * t;
  constexpr float kQuarter = 1.57079637f, kQuarterRest = -4.37113883e-8f;  // pi / 2
  float s = fmaf(z, 0.000151510452f, -0.00467826985f);
  s = fmaf(z, s, 0.0796922073f);
  s = fmaf(z, s, -0.645964086f);
  const float sine = t * kQuarter, bend = fmaf(z, s, kQuarterRest);
  const float sine_rest = fmaf(t, bend, fmaf(t, kQuarter, -sine));
  float c = fmaf(z, 0.000878127757f, -0.0208492056f);
  c = fmaf(z, c, 0.253667951f);
  const float cosine_rest = z * fmaf(z, c, -1.23370051f);  // of 1
  const float a = turn.swaps() ? sine : 1.0f, a_rest = turn.swaps() ? sine_rest : cosine_rest;
  const float b = turn.swaps() ? 1.0f : sine, b_rest = turn.swaps() ? cosine_rest : sine_rest;
  u = turn.SignedCosine(fmaf(r, a, fmaf(r, a_rest, r_rest * (a + a_rest))));
  v = turn.SignedSine(fmaf(r, b, fmaf(r, b_rest, r_rest * (b + b_rest))));
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
