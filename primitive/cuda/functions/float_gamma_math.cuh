// SPDX-License-Identifier: Apache-2.0
//
// Log gamma, its derivatives and Hurwitz's zeta function in float (float_math.cuh): within 8 ulp,
// or 1e-6 next to zeros.
#pragma once

#include "primitive/cuda/functions/float_log_math.cuh"

namespace oneflow_lite {
namespace cuda {
namespace fast {

// sin(pi r) / (pi r), |r| <= 1/2.
OFL_HOST_DEVICE float SincShare(float r) {
  const float u = r * r;
  const float sum = Fma(Fma(0.0247250274f, u, -0.190447375f), u, 0.811716437f);
  return Fma(Fma(sum, u, -1.64493334f), u, 1.0f);
}

// Below 9/4 a polynomial times a - 2 or, one step of the recurrence away, a - 1; Stirling's series
// beyond. Below 0 by the recurrence, where there are zeros, then by reflection; infinite at 0 and
// at negative integers.
OFL_HOST_DEVICE float Lgamma(float x) {
  constexpr float kReflected = -12.5f;
  float y = x, product = 1.0f;
  if (x > kReflected) {
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
    for (; y < 0.0f; y += 1.0f) product *= y;
  }
  const float a = fabsf(y), size = fabsf(a * product);
  const bool tiny = size < 0x1p-100f, small = a < 1.25f;
  const float log = LogOfNormal(tiny ? size * kScale : size) - (tiny ? 44.3614196f : 0.0f);
  const float w = a - (small ? 1.0f : 2.0f);
  float sum = Fma(0.000771496387f, w, 0.00104776782f);
  sum = Fma(sum, w, 0.00142157916f);
  sum = Fma(sum, w, -0.00100216386f);
  sum = Fma(sum, w, 0.00282142451f);
  sum = Fma(sum, w, -0.0074154269f);
  sum = Fma(sum, w, 0.0205815546f);
  sum = Fma(sum, w, -0.0673513189f);
  sum = Fma(sum, w, 0.322467029f);
  const float near = Fma(w, Fma(sum, w, 0.422784328f), small ? -log : 0.0f);
  const float over = Reciprocal(a), u = over * over;
  const float tail = Fma(Fma(0.000605112175f, u, -0.00275412737f), u, 0.0833323523f);
  const float far = Fma(a - 0.5f, log - 1.0f, Fma(over, tail, 0.418938533f));
  const float above = size == 0.0f ? INFINITY : a < 2.25f ? near : far;
  if (!(x <= kReflected)) return above;
  const float r = a < 0x1p23f ? fabsf(a - rintf(a)) : 0.0f;
  return r == 0.0f ? INFINITY : -LogOfNormal(a * r * SincShare(r)) - above;
}

// The derivative of Lgamma from 0 on, -inf at 0: by six steps of the recurrence.
OFL_HOST_DEVICE float DigammaOfPositive(float x) {
  const float w = x + 6.0f, over = Reciprocal(w), u = over * over;
  float sum = Fma(Fma(Fma(u, 1.0f / 252, -1.0f / 120), u, 1.0f / 12), u, over * 0.5f);
  for (int k = 5; k >= 0; --k) sum += Reciprocal(x + static_cast<float>(k));
  return x == INFINITY ? x : LogOfNormal(w) - sum;
}

// The first terms of Stirling's series of trigamma, w >= 6.
OFL_HOST_DEVICE float TrigammaFar(float w) {
  const float scale = w > kScale ? kUnscale : 1.0f;
  const float over = Reciprocal(w * scale) * scale, u = over * over;
  const float sum = Fma(u, Fma(u, 1.0f / 42, -1.0f / 30), 1.0f / 6);
  return Fma(over, over * Fma(over, sum, 0.5f), over);
}
// By six steps of the recurrence: sum over k < 6 of (x + k)^-2. Below 0 by reflection; infinite at
// 0 and at negative integers.
OFL_HOST_DEVICE float Trigamma(float x) {
  const float z = x < 0.0f ? 1.0f - x : x;
  float sum = TrigammaFar(z + 6.0f);
  for (int k = 5; k >= 0; --k) {
    const float over = Reciprocal(z + static_cast<float>(k));
    sum = Fma(over, over, sum);
  }
  if (!(x < 0.0f)) return sum;
  const float r = x - rintf(x), over = Reciprocal(r * SincShare(r));
  return Fma(over, over, -sum);
}
// The derivative of Trigamma above 0, by six steps too.
OFL_HOST_DEVICE float TetragammaOfPositive(float x) {
  const float far = Reciprocal(x + 6.0f), u = far * far;
  const float tail = Fma(u, Fma(u, Fma(u, -0.3f, 1.0f / 6), -1.0f / 6), 0.5f);
  float sum = 0.5f * Fma(u * u, tail, Fma(u, far, u));
  for (int k = 5; k >= 0; --k) {
    const float over = Reciprocal(x + static_cast<float>(k));
    sum = Fma(over * over, over, sum);
  }
  return -2.0f * sum;
}

// (q + k)^-s
OFL_HOST_DEVICE float PowerOfStep(float s, float q, float k, float* high) {
  const float sum = q + k, part = sum - q, low = (q - (sum - part)) + (k - part);
  const Sum log = Log2Of(sum);
  *high = sum;
  return Exp2Of(-s, {log.high, Fma(low * Reciprocal(sum), kLog2E, log.low)});
}
// Where ZetaOfPositive serves.
OFL_HOST_DEVICE bool IsUsualZeta(float s, float q) {
  return s > 1.0f && s < 65536.0f && q > 0x1p-100f && q < 0x1p100f && s * Log2(q) < 100.0f;
}
// The sum over k >= 0 of (q + k)^-s: five terms, and Euler's and Maclaurin's formula for those
// after (primitive/zeta_math.h).
OFL_HOST_DEVICE float ZetaOfPositive(float s, float q) {
  float sum = 0.0f, w = q;
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
  for (int k = 4; k >= 0; --k) sum += PowerOfStep(s, q, static_cast<float>(k), &w);
  const float power = PowerOfStep(s, q, 5.0f, &w), over = Reciprocal(w), u = over * over;
  float tail = Fma((s + 5.0f) * (s + 6.0f) * u, -1.0f / 1209600, 1.0f / 30240);
  tail = Fma((s + 3.0f) * (s + 4.0f) * u, tail, -1.0f / 720);
  tail = Fma((s + 1.0f) * (s + 2.0f) * u, tail, 1.0f / 12);
  const float rest = power * (w / (s - 1.0f) + Fma(s * over, tail, 0.5f));
  return power > 0.0f ? sum + rest : sum;
}

}  // namespace fast
}  // namespace cuda
}  // namespace oneflow_lite
