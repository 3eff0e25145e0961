// SPDX-License-Identifier: Apache-2.0
//
// Logarithms of float and what is made of them (float_math.cuh): within 4 ulp, powers within 8.
#pragma once

#include "primitive/cuda/functions/float_math.cuh"

namespace oneflow_lite {
namespace cuda {
namespace fast {

using oneflow_lite::ExponentBits;
using oneflow_lite::ExponentIn;
using oneflow_lite::kLn2;
using oneflow_lite::LogOf;
using oneflow_lite::LogOfNormal;

// 2^64 log(1 + e) of scaled = 2^64 e, 0 <= e <= 1.
OFL_HOST_DEVICE float ScaledLog1p(float scaled) {
  const float e = scaled * kUnscale;
  float sum = Fma(-0.0033065395f, e, 0.0201503336f);
  sum = Fma(sum, e, -0.0575615279f);
  sum = Fma(sum, e, 0.10670013f);
  sum = Fma(sum, e, -0.153490975f);
  sum = Fma(sum, e, 0.196931928f);
  sum = Fma(sum, e, -0.24958156f);
  sum = Fma(sum, e, 0.333304703f);
  sum = Fma(sum, e, -0.499999315f);
  return scaled * Fma(sum, e, 1.0f);
}
// 2^64 log(1 + e^-|z + rest|) of a z and what it lacks of a number.
OFL_HOST_DEVICE float ScaledBend(float z, float rest) {
  constexpr float kBias = kRounder + 127 + 64;
  const float x = Larger(-fabsf(z), kLowest), off = z < 0.0f ? rest : -rest;
  const float k = Fma(x, kLog2E, kBias), j = k - kBias;
  const float f = Fma(off, kLog2E, Fma(x, kLog2ERest, Fma(x, kLog2E, -j)));
  return ScaledLog1p(Exp2(f) * PowerOf2(k));
}
OFL_HOST_DEVICE float LogSigmoid(float x) {
  return Fma(ScaledBend(x, 0.0f), -kUnscale, x < 0.0f ? x : 0.0f);
}

// Logarithms of odds at the ends: of subnormal numbers, 0, 1 and what is outside, and of the number
// before 1.
OFL_CALLED float LogitOfEnds(float x) {
  if (x > 0.0f && x < 0.5f) return LogOfNormal(x * kScale) - 64.0f * kLn2;
  if (x == 0x1.fffffep-1f) return 16.6355324f;
  return x == 0.0f ? -INFINITY : x == 1.0f ? INFINITY : NAN;
}
// log(x / (1 - x)) = k log(2) + 2 atanh(t), where t is of a numerator and a denominator that are
// rounded once: next to 1/2, 2 x - 1 and 1. 1 + 2^k is exact or, for a small x, as good as 1.
OFL_HOST_DEVICE float Logit(float x) {
  constexpr uint32_t kLeast = 0x00800000u, kMost = 0x4b400000u;  // of the ratio's bits
  const float rest = 1.0f - x, ratio = x * Reciprocal(rest);
  const uint32_t bits = ExponentBits(ratio);
  const float power = AsFloat(bits + 0x3f800000u);
  const float n = Fma(x, 1.0f + power, -power);
  const float t = n * Reciprocal(Fma(power, rest, x)), u = t * t;
  const float odd = Fma(t * u, Fma(Fma(0.149630798f, u, 0.199878221f), u, 0.333333952f), t);
  const float y = Fma(ExponentIn(bits), kLn2, odd + odd);
  return AsBits(ratio) - kLeast < kMost - kLeast ? y : LogitOfEnds(x);
}

// A number as the sum of two, of which the second one is much smaller.
struct Sum {
  float high, low;
};
// log2(x) of a normal number within 2^-32 of it: 2 atanh((m - 1) / (m + 1)) / log(2) of its m.
OFL_HOST_DEVICE Sum Log2Of(float x) {
  const uint32_t bits = ExponentBits(x);
  const float m = AsFloat(AsBits(x) - bits), k = ExponentIn(bits);
  const float f = m - 1.0f, d = m + 1.0f, over = Reciprocal(d), t = f * over;
  const float rest = Fma(-t, m - (d - 1.0f), Fma(-t, d, f)) * over;  // makes good what t lacks
  const float u = t * t;
  const float sum = Fma(Fma(Fma(0.121396273f, u, 0.142493933f), u, 0.200004861f), u, 0.333333313f);
  const float low = Fma(t * u, sum, rest);
  constexpr float kRate = 2.88539004f, kRateRest = 3.85192598e-8f;  // 2 / log(2)
  const float part = Product(t, kRate), most = k + part;
  const float lost = Fma(t, kRateRest, Fma(t, kRate, -part)) + ((k - most) + part);
  const float less = Fma(low, kRate, lost), high = most + less;
  return {high, less - (high - most)};
}
// 2^(b x) of x as a sum, |b| < 2^22.
OFL_HOST_DEVICE float Exp2Of(float b, Sum x) {
  constexpr float kBias = kRounder + 127;
  const float product = Product(b, x.high), rest = Fma(b, x.low, Fma(b, x.high, -product));
  const float p = Larger(Smaller(product, 252.0f), -252.0f);
  const float half = Fma(p, 0.5f, kBias), power = PowerOf2(half);
  return Exp2(Fma(half - kBias, -2.0f, p) + rest) * power * power;
}

// Powers of numbers at the ends, 0, infinities and NaN, and of large exponents.
OFL_CALLED float PowOfEnds(float a, float b) { return powf(a, b); }
OFL_HOST_DEVICE float Pow(float a, float b) {
  const float size = fabsf(a), y = Exp2Of(b, Log2Of(size));
  const float k = b + kRounder;
  const float below = k - kRounder == b ? AsFloat(AsBits(y) ^ (AsBits(k) << 31)) : NAN;
  const bool usual = (size >= 0x1p-126f) & (size < INFINITY) & (fabsf(b) < 0x1p22f);
  return usual ? (a < 0.0f ? below : y) : PowOfEnds(a, b);
}

}  // namespace fast
}  // namespace cuda
}  // namespace oneflow_lite
