// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of softmax: exponentials, and the online merge of (maximum, sum of exponentials)
// (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018).
#pragma once

#include "primitive/cuda/group.cuh"
#include "primitive/cuda/pack.cuh"

namespace oneflow_lite {
namespace cuda {

template <class C>
__device__ __forceinline__ C MinusInfinity() {
  return -static_cast<C>(__int_as_float(0x7f800000));
}

// exp(x) for x <= 0, where the maximum was subtracted before. In float32 one multiplication and the
// hardware's base-2 exponential (2 ulp); the product's rounding adds |x| * 2^-24 relative error to
// a value of e^x, at most 2.2e-8 absolute. Results below 2^-126 become 0.
__device__ __forceinline__ float ExpNonPositive(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.4426950408889634f));
  return y;
}
__device__ __forceinline__ double ExpNonPositive(double x) { return exp(x); }

__device__ __forceinline__ float LogOf(float x) { return logf(x); }
__device__ __forceinline__ double LogOf(double x) { return log(x); }

template <class C, class Pair, class E, int N>
__device__ __forceinline__ C MaxOfPairs(const Pack<E, N>& x) {
  if constexpr (N % 2 == 1) {
    C max = ConvertTo<C>(x.v[0]);
#pragma unroll
    for (int i = 1; i < N; ++i) max = Larger{}(max, ConvertTo<C>(x.v[i]));
    return max;
  } else {
    Pair pairs[N / 2];
    memcpy(pairs, &x, sizeof(x));
#pragma unroll
    for (int i = 1; i < N / 2; ++i) pairs[0] = __hmax2(pairs[0], pairs[i]);
    return Larger{}(ConvertTo<C>(pairs[0].x), ConvertTo<C>(pairs[0].y));
  }
}
template <class C, class E, int N>
__device__ __forceinline__ C MaxOf(const Pack<E, N>& x) {
  C max = ConvertTo<C>(x.v[0]);
#pragma unroll
  for (int i = 1; i < N; ++i) max = Larger{}(max, ConvertTo<C>(x.v[i]));
  return max;
}

// 16-bit packs: two elements at a time. A NaN loses here too.
template <class C, int N>
__device__ __forceinline__ C MaxOf(const Pack<__half, N>& x) {
  return MaxOfPairs<C, __half2>(x);
}
template <class C, int N>
__device__ __forceinline__ C MaxOf(const Pack<__nv_bfloat16, N>& x) {
  return MaxOfPairs<C, __nv_bfloat162>(x);
}

// The maximum of some elements and the sum of exp(x - max) over them. No elements, or only -inf:
// (-inf, 0). A NaN among them lives on in the sum.
template <class C>
struct OnlineSum {
  C max;
  C sum;

  __device__ __forceinline__ OnlineSum(C max = MinusInfinity<C>(), C sum = 0)
      : max(max), sum(sum) {}

  // -inf - -inf would be NaN; a part that holds nothing but -inf must weigh nothing instead.
  static __device__ __forceinline__ C Finite(C max) {
    return max == MinusInfinity<C>() ? C(0) : max;
  }

  template <int N>
  __device__ __forceinline__ void Add(const Pack<C, N>& x) {
    const C larger = Larger{}(max, MaxOf<C>(x));
    const C shift = Finite(larger);
    C part = 0;
#pragma unroll
    for (int i = 0; i < N; ++i) part += ExpNonPositive(x.v[i] - shift);
    sum = sum * ExpNonPositive(max - shift) + part;
    max = larger;
  }
};

template <class C>
__device__ __forceinline__ OnlineSum<C> ShuffleXor(OnlineSum<C> v, int mask) {
  v.max = ShuffleXor(v.max, mask);
  v.sum = ShuffleXor(v.sum, mask);
  return v;
}

// Symmetric to the last bit, so that all members of a group get the same result.
struct MergeOnline {
  template <class C>
  __device__ __forceinline__ OnlineSum<C> operator()(const OnlineSum<C>& a,
                                                     const OnlineSum<C>& b) const {
    const bool a_leads = a.max >= b.max;
    const OnlineSum<C> lead = a_leads ? a : b, other = a_leads ? b : a;
    OnlineSum<C> merged;
    merged.max = lead.max;
    // An equal maximum has weight exp(0) = 1, also where it is +inf or -inf.
    const C weight = a.max == b.max ? C(1) : ExpNonPositive(other.max - lead.max);
    merged.sum = lead.sum + other.sum * weight;
    return merged;
  }
};

// The maximum first, then the sums, each brought to that maximum once.
template <int kLanes, class C>
__device__ __forceinline__ OnlineSum<C> ReduceLanes(const OnlineSum<C>& v, MergeOnline) {
  const C max = ReduceLanes<kLanes>(v.max, Larger{});
  // An equal maximum has weight exp(0) = 1, also where it is +inf or -inf.
  const C weight = v.max == max ? C(1) : ExpNonPositive(v.max - max);
  return {max, ReduceLanes<kLanes>(v.sum * weight, Plus{})};
}

}  // namespace cuda
}  // namespace oneflow_lite
