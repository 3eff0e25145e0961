// SPDX-License-Identifier: Apache-2.0
//
// Derivatives of log gamma in float (float_math.cuh), within 8 ulp.
#pragma once

#include "primitive/cuda/functions/float_math.cuh"

namespace oneflow_lite {
namespace cuda {
namespace fast {

// sin(pi r) / (pi r), |r| <= 1/2.
OFL_HOST_DEVICE float SincShare(float r) {
  const float u = r * r;
  const float sum = Fma(Fma(0.0247250274f, u, -0.190447375f), u, 0.811716437f);
  return Fma(Fma(sum, u, -1.64493334f), u, 1.0f);
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

}  // namespace fast
}  // namespace cuda
}  // namespace oneflow_lite
