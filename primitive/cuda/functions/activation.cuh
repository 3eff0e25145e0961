// SPDX-License-Identifier: Apache-2.0
//
// What the activations and their slopes share on the device, by compute type; the formulas are
// those of primitive/cpu/activation-inl.h.
#pragma once

#include "primitive/activation_kinds.h"
#include "primitive/cuda/functions/float_log_math.cuh"
#include "primitive/cuda/functions/narrow_math.cuh"
#include "primitive/cuda/functions/tags.h"

namespace oneflow_lite {
namespace cuda {

__device__ inline float ExpOf(float x) { return expf(x); }
__device__ inline double ExpOf(double x) { return exp(x); }
__device__ inline float ExpM1Of(float x) { return fast::Expm1(x); }
__device__ inline double ExpM1Of(double x) { return expm1(x); }
// 1 / x of numbers far from the ends.
__device__ inline float OverOf(float x) { return fast::Reciprocal(x); }
__device__ inline double OverOf(double x) { return 1 / x; }
__device__ inline float Log1POf(float x) { return log1pf(x); }
__device__ inline double Log1POf(double x) { return log1p(x); }
__device__ inline float TanhOf(float x) { return tanhf(x); }
__device__ inline double TanhOf(double x) { return tanh(x); }
__device__ inline float AbsOf(float x) { return fabsf(x); }
__device__ inline double AbsOf(double x) { return fabs(x); }
__device__ inline float WithSign(float x, float sign) { return copysignf(x, sign); }
__device__ inline double WithSign(double x, double sign) { return copysign(x, sign); }
__device__ inline float Fma(float a, float b, float c) { return fmaf(a, b, c); }
__device__ inline double Fma(double a, double b, double c) { return fma(a, b, c); }

// Beyond it, exp(-|x|) and x exp(-|x|) are 0.
template <class C>
inline constexpr C kFar = sizeof(C) == 4 ? C(118) : C(764);
// x, but -limit or limit beyond them; NaN stays.
template <class C>
__device__ C Within(C x, C limit) {
  return AbsOf(x) > limit ? WithSign(limit, x) : x;
}

// c x for a number c = hi + lo: the product, and what it lacks of the exact one.
template <class C>
struct Product {
  C z, rest;
};
template <class C>
__device__ Product<C> Scaled(C x, C hi, C lo) {
  const C z = x * hi;
  return {z, AbsOf(z) < kFar<C> ? Fma(x, lo, Fma(x, hi, -z)) : C(0)};
}
// exp(-|z + rest|)
template <class C>
__device__ C ExpDown(const Product<C>& p) {
  const C e = ExpOf(-AbsOf(p.z));
  return Fma(e, p.z < C(0) ? p.rest : -p.rest, e);
}

// exp(x) = e back for x <= 0. Far below 0, e is a normal number where exp(x) is none, so that
// x e back is rounded once; 1 + e is 1 there.
template <class C>
struct TailExp {
  C e, back;
};
template <class C>
__device__ TailExp<C> ExpOfTail(C x) {
  constexpr bool kSingle = sizeof(C) == 4;
  const bool far = x < (kSingle ? C(-64) : C(-640));
  const C shift = kSingle ? C(32) : C(64);
  const C back = kSingle ? C(1.2664165549094176e-14) : C(1.603810890548638e-28);  // exp(-shift)
  return {ExpOf(far ? x + shift : x), far ? back : C(1)};
}

// x / (1 + exp(-x))
template <class C>
__device__ C SiluOf(C x) {
  if constexpr (sizeof(C) == 4) return fast::Silu(x);
  const C near = Within(x, kFar<C>);
  const TailExp<C> t = ExpOfTail(-AbsOf(near));
  return (x < C(0) ? near * t.e * t.back : x) / (C(1) + t.e);
}

// The polynomial with these coefficients, that of the highest power first.
template <class C, int n>
__device__ C Polynomial(const C (&c)[n], C x) {
  C sum = c[0];
#pragma unroll
  for (int i = 1; i < n; ++i) sum = Fma(sum, x, c[i]);
  return sum;
}

}  // namespace cuda
}  // namespace oneflow_lite
