// SPDX-License-Identifier: Apache-2.0
//
// The gradient of cross entropy along a row whose statistics are known, packs of it at a time. The
// kernels that make it issue instructions for most of their time: every one per element counts.
#pragma once

#include "primitive/cuda/cross_entropy/rows.cuh"

namespace oneflow_lite {
namespace cuda {

// A load that is issued where it stands: the compiler would put it off until the value is used.
__device__ __forceinline__ int64_t LoadEarly(const int64_t* p) {
  int64_t v;
  asm volatile("ld.volatile.global.b64 %0, [%1];" : "=l"(v) : "l"(__cvta_generic_to_global(p)));
  return v;
}
// The same of a value that stays in registers of the lanes. What is the same for all of them the
// compiler moves to a register of the warp, for which the warp waits at once, before a row's loads:
// in place, 151936 columns of bfloat16 at 0.90 of a copy, 0.94 without. So the address has a part
// that is 0 in every lane, but that the compiler does not know.
template <class T>
__device__ __forceinline__ T LoadIntoLanes(const T* p) {
  using Word = std::conditional_t<sizeof(T) == 8, unsigned long long, uint32_t>;
  static_assert(sizeof(T) == sizeof(Word));
  unsigned none;
  asm("{ .reg .u32 below;\nmov.u32 below, %%lanemask_lt;\nshr.u32 %0, below, 31; }" : "=r"(none));
  const auto at = __cvta_generic_to_global(p + none);
  Word word;
  if constexpr (sizeof(Word) == 8) {
    asm volatile("ld.global.b64 %0, [%1];" : "=l"(word) : "l"(at));
  } else {
    asm volatile("ld.global.b32 %0, [%1];" : "=r"(word) : "l"(at));
  }
  T v;
  memcpy(&v, &word, sizeof(v));
  return v;
}

// ConvertPack to the compute type. Of the bfloat16 pair in a word, a shift gives the one and a mask
// the other; by way of elements it takes three instructions.
template <class T, int N>
__device__ __forceinline__ Pack<ComputeType<T>, N> Widened(const Pack<T, N>& x) {
  if constexpr (std::is_same_v<T, __nv_bfloat16> && N % 2 == 0) {
    uint32_t words[N / 2];
    memcpy(words, &x, sizeof(x));
    Pack<float, N> y;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      y.v[i] = __uint_as_float(i % 2 ? words[i / 2] & 0xffff0000u : words[i / 2] << 16);
    }
    return y;
  } else {
    return ConvertPack<ComputeType<T>>(x);
  }
}

// The element that begins `past` bytes into a pack.
template <class T, int N>
__device__ __forceinline__ T ElementAt(const Pack<T, N>& x, unsigned past) {
  if constexpr (N == 1) {
    return x.v[0];
  } else {
    return ShiftPacks(x, x, past).v[0];
  }
}

// dx = (exp(x - max) / sum - smoothing / classes) factor, less (1 - smoothing) factor at the
// target; 0 in a row that does not count, whatever it holds. kSmooth: whether there may be
// smoothing.
template <class T, bool kSmooth>
struct CrossEntropyGradient {
  using C = ComputeType<T>;
  RowExponential<C> exp;
  C gain = 0;  // factor / sum
  C less = 0;  // factor smoothing / classes
  C factor = 0;
  uintptr_t at = 0;   // where the target's gradient goes
  unsigned skip = 0;  // why the row does not count; 0 where it does

  CrossEntropyGradient() = default;
  // `share` is factor / sum; dx is the row's.
  __device__ __forceinline__ CrossEntropyGradient(const CrossEntropyRows<T>& p, int64_t target,
                                                  C max, C share, C factor, const T* dx)
      : exp(max), gain(share * exp.Weight()), factor(factor) {
    if (kSmooth) less = factor * (p.smoothing / static_cast<C>(p.classes));
    at = reinterpret_cast<uintptr_t>(dx + target);
    if (!p.Counts(target)) skip = target == p.ignore_index ? kIgnored : kNoClass;
  }
  static constexpr unsigned kIgnored = 1, kNoClass = 2;

  // Makes the pack at dx of the logits there. Who holds the target's logit calls found(logit).
  template <int N, class F>
  __device__ __forceinline__ void Write(T* dx, const Pack<T, N>& logits, C smoothing,
                                        const F& found) const {
    constexpr unsigned kBytes = N * sizeof(T);
    Pack<C, N> x = Widened(logits);
#pragma unroll
    for (C& v : x.v) v = kSmooth ? Gained(exp(v), less) : exp(v) * gain;
    StoreAlignedPack<N>(dx, ConvertPack<T>(x));
    // The rare cases cost one comparison, of the lower half of an address, and code elsewhere.
    const auto place = reinterpret_cast<uintptr_t>(dx);
    const unsigned past = static_cast<unsigned>(at) - static_cast<unsigned>(place);
    if (__builtin_expect(past < kBytes || skip, 0)) {
      if (skip) {
#pragma unroll
        for (C& v : x.v) v = 0;
        StoreAlignedPack<N>(dx, ConvertPack<T>(x));
      } else if (at - place < kBytes) {  // written by the same thread, after the pack
        const C logit = ConvertTo<C>(ElementAt(logits, past));
        const C sharp = kSmooth ? (C(1) - smoothing) * factor : factor;
        dx[past / sizeof(T)] = ConvertTo<T>(Gained(exp(logit), less + sharp));
        found(logit);
      }
    }
  }

 private:
  // weight * gain - less, rounded once. Of doubles the compiler would round the product of a single
  // column as well, which the target's gradient needs too: another result than in a pack.
  __device__ __forceinline__ C Gained(C weight, C less) const {
    if constexpr (sizeof(C) == 8) return fma(weight, gain, -less);
    return weight * gain - less;
  }
};

}  // namespace cuda
}  // namespace oneflow_lite
