// SPDX-License-Identifier: Apache-2.0
//
// The reducer of any and all: words whose top bits say what is not 0.
#pragma once

#include "primitive/cuda/reduce/reduce.cuh"

namespace oneflow_lite {
namespace cuda {

// What is not 0 of T is not 0 of this type.
template <class T>
struct TruthOf {
  using type = T;
};
template <>
struct TruthOf<bool> {
  using type = uint8_t;
};
template <>
struct TruthOf<int8_t> {
  using type = uint8_t;
};
template <>
struct TruthOf<__nv_bfloat16> {
  using type = __half;
};

// The top bit of each element of a word is set where it is not 0; the other bits are anything. The
// sign of a float does not count.
template <class In>
__device__ __forceinline__ uint32_t NonzeroTops(uint32_t word) {
  constexpr uint32_t kBelow = sizeof(In) == 1   ? 0x7f7f7f7fu
                              : sizeof(In) == 2 ? 0x7fff7fffu
                                                : 0x7fffffffu;
  const uint32_t tops = (word & kBelow) + kBelow;
  return std::is_integral_v<In> ? tops | word : tops;
}

template <class In>
inline constexpr uint32_t kTops = sizeof(In) == 1   ? 0x80808080u
                                  : sizeof(In) == 2 ? 0x80008000u
                                                    : 1u << 31;

// Whether any element is not 0, or whether all are.
struct TruthReducer {
  struct State {
    uint32_t seen;  // kTrue, kFalse
  };
  struct Gathered {
    uint32_t any, every;  // bits that are 0 where nothing was true, and 1 where nothing was false
  };
  // The same by the tops of words.
  template <class In, int N>
  struct Columns {
    static constexpr int kOf = sizeof(In) < 4 && N > 1 ? 4 / sizeof(In) : 1;  // elements of a word
    static constexpr int kWords = N / kOf;
    uint32_t any[kWords], every[kWords];
    // Of word i of a pack.
    __device__ __forceinline__ static uint32_t Tops(const Pack<In, N>& x, int i) {
      if constexpr (sizeof(In) > 4) {
        return x.v[i] != In(0) ? 1u << 31 : 0;
      } else {
        uint32_t words[kWords] = {};
        memcpy(words, &x, sizeof(x));
        return NonzeroTops<In>(words[i]);
      }
    }
  };
  using Value = bool;
  static constexpr int kBatch = ReducePolicy::kBatch, kResident = 6;
  static constexpr int kPlaces = ReducePolicy::kPlaces, kColumnsResident = 5;
  static constexpr int64_t kMostPlaces = INT64_MAX;
  static constexpr uint32_t kTrue = 1, kFalse = 2;
  bool all;

  __device__ __forceinline__ State Identity() const { return {0}; }
  __device__ __forceinline__ Gathered Begin() const { return {0, ~0u}; }
  __device__ __forceinline__ State Conclude(const Gathered& s) const {
    return {(s.any != 0 ? kTrue : 0) | (s.every != ~0u ? kFalse : 0)};
  }
  __device__ __forceinline__ void Add(Gathered& s, bool v, int64_t) const {
    s.any |= v, s.every &= v ? ~0u : 0;
  }
  template <class In, int N, int K>
  __device__ __forceinline__ void AddPacks(Gathered& s, const Pack<In, N> (&x)[K],
                                           const int64_t (&)[K]) const {
#pragma unroll
    for (int k = 0; k < K; ++k) {
#pragma unroll
      for (int i = 0; i < Columns<In, N>::kWords; ++i) {
        const uint32_t tops = Columns<In, N>::Tops(x[k], i);
        s.any |= tops & kTops<In>, s.every &= tops | ~kTops<In>;
      }
    }
  }
  template <class In, int N>
  __device__ __forceinline__ Columns<In, N> BeginColumns() const {
    Columns<In, N> s;
#pragma unroll
    for (int i = 0; i < Columns<In, N>::kWords; ++i) s.any[i] = 0, s.every[i] = ~0u;
    return s;
  }
  template <class In, int N, int K>
  __device__ __forceinline__ void AddPlaces(Columns<In, N>& s, const Pack<In, N> (&x)[K], int64_t,
                                            int64_t) const {
#pragma unroll
    for (int k = 0; k < K; ++k) {
#pragma unroll
      for (int i = 0; i < Columns<In, N>::kWords; ++i) {
        const uint32_t tops = Columns<In, N>::Tops(x[k], i);
        s.any[i] |= tops, s.every[i] &= tops;
      }
    }
  }
  template <class In, int N>
  __device__ __forceinline__ State ConcludeColumn(const Columns<In, N>& s, int i,
                                                  const ReduceWay&) const {
    constexpr int kOf = Columns<In, N>::kOf, kBits = sizeof(In) < 4 ? 8 * sizeof(In) : 32;
    const int top = kBits * (i % kOf + 1) - 1;
    return {(s.any[i / kOf] >> top & 1 ? kTrue : 0) | (s.every[i / kOf] >> top & 1 ? 0 : kFalse)};
  }
  __device__ __forceinline__ State Merge(const State& a, const State& b) const {
    return {a.seen | b.seen};
  }
  template <class In>
  __device__ __forceinline__ void Finish(const State& s, const ReduceOutputs& out, int64_t y,
                                         const In*, int64_t) const {
    StoreAs<bool>(out.y, out.dtype, y, all ? !(s.seen & kFalse) : (s.seen & kTrue) != 0);
  }
};

}  // namespace cuda
}  // namespace oneflow_lite
