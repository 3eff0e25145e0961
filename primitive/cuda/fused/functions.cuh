// SPDX-License-Identifier: Apache-2.0
//
// Functions that a fused expression may call. Those of whole packs share reciprocals between 16-bit
// elements: a multiprocessor computes 16 exponentials or reciprocals a cycle, and softmax's own
// ones take most of that (docs/lab/26-fused-activations.md).
#pragma once

#include "primitive/cuda/softmax/math.cuh"

namespace oneflow_lite::cuda {

// a / b and the square root. In float32 by the hardware, off by 2 units in the last place at most,
// infinities, NaN and subnormal numbers included: as IEEE has them they take ten instructions and a
// branch for each element. A divisor that is the same for all elements has one reciprocal for all.
OFL_DEVICE float FullRangeQuotient(float a, float b) {
  // Numbers whose reciprocals the hardware has: normal ones with normal reciprocals.
  const float size = fabsf(b);
  const float scale = size > 0x1p126f ? 0.25f : size < 0x1p-126f ? 0x1p24f : 1.0f;
  return a * scale * ReciprocalOf(b * scale);
}
OFL_DEVICE double FullRangeQuotient(double a, double b) { return a / b; }

OFL_DEVICE float SquareRootOf(float x) {
  float root;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(root) : "f"(x));
  return root;
}
OFL_DEVICE double SquareRootOf(double x) { return sqrt(x); }

// 1 / d of numbers that are 1 at least, by the hardware. In packs of 16-bit elements four share one
// reciprocal, unless their product is too large, or NaN; that is off by 2e-7 more. float32's come
// half as fast, and have one each.
template <int N>
OFL_DEVICE Pack<float, N> ReciprocalsOf(const Pack<float, N>& d) {
  Pack<float, N> r;
  if constexpr (N >= 8) {
    float pair[N / 2], four[N / 4], sum = 0;
#pragma unroll
    for (int i = 0; i < N / 2; ++i) pair[i] = d.v[2 * i] * d.v[2 * i + 1];
#pragma unroll
    for (int i = 0; i < N / 4; ++i) sum += four[i] = pair[2 * i] * pair[2 * i + 1];
    if (sum < 0x1p126f) {
#pragma unroll
      for (int i = 0; i < N / 2; ++i) {
        if (i % 2 == 0) four[i / 2] = ReciprocalOf(four[i / 2]);
        const float of_pair = four[i / 2] * pair[i ^ 1];
        r.v[2 * i] = of_pair * d.v[2 * i + 1];
        r.v[2 * i + 1] = of_pair * d.v[2 * i];
      }
      return r;
    }
  }
#pragma unroll
  for (int i = 0; i < N; ++i) r.v[i] = ReciprocalOf(d.v[i]);
  return r;
}

// 1 + 2^(slope x).
template <int N>
OFL_DEVICE Pack<float, N> OnePlusExp2(Pack<float, N> x, float slope) {
#pragma unroll
  for (float& v : x.v) v = 1.0f + Exp2(v * slope);
  return x;
}

// 1 / (1 + exp(-x)). In float32 by the hardware's exponential and reciprocal, off by 2e-7 at most:
// a division as IEEE has it, and a library's exponential, cost more than all else of an element.
template <int N>
OFL_DEVICE Pack<float, N> Sigmoid(const Pack<float, N>& x) {
  return ReciprocalsOf(OnePlusExp2(x, -kLog2E));
}
template <int N>
OFL_DEVICE Pack<double, N> Sigmoid(Pack<double, N> x) {
#pragma unroll
  for (double& v : x.v) v = 1.0 / (1.0 + exp(-v));
  return x;
}

// 1 - 2 / (1 + exp(2 x)), or near 0, where little would be left of that, x + x^3 q(x^2) with q
// through the Chebyshev nodes (4e-8 off).
template <int N>
OFL_DEVICE Pack<float, N> Tanh(const Pack<float, N>& x) {
  const Pack<float, N> r = ReciprocalsOf(OnePlusExp2(x, 2 * kLog2E));
  Pack<float, N> y;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const float v = x.v[i], z = v * v;
    const float q = fmaf(fmaf(fmaf(0.01637065f, z, -0.0526391f), z, 0.1332026f), z, -0.3333293f);
    y.v[i] = fabsf(v) < 0.55f ? fmaf(v * z, q, v) : fmaf(-2.0f, r.v[i], 1.0f);
  }
  return y;
}
template <int N>
OFL_DEVICE Pack<double, N> Tanh(Pack<double, N> x) {
#pragma unroll
  for (double& v : x.v) v = tanh(v);
  return x;
}

}  // namespace oneflow_lite::cuda
