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

// Whether any element is not 0, or whether all are: whether any is 0, turned round.
struct TruthReducer {
  struct State {
    uint32_t bit;  // 1 where what is looked for is there
  };
  using Gathered = uint32_t;  // tops; the other bits are 0
  // The tops of words; the other bits are anything.
  template <class In, int N>
  struct Columns {
    static constexpr int kOf = sizeof(In) < 4 && N > 1 ? 4 / sizeof(In) : 1;  // elements of a word
    static constexpr int kWords = N / kOf;
    uint32_t seen[kWords];
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
  static constexpr int kWholeColumnsResident = 4, kWholeRowsResident = 4;
  static constexpr bool kReadsAhead = false;
  static constexpr int64_t kMostPlaces = INT64_MAX;
  static constexpr bool kOneBit = true;
  static constexpr bool kMergesSeveral = false;
  static constexpr bool kMergesEight = false;
  static constexpr bool kFills = true;
  uint32_t turned;  // of all: ~0, of any: 0
  explicit TruthReducer(bool all) : turned(all ? ~0u : 0) {}

  template <class In, int N>
  __device__ __forceinline__ In Filler(const Pack<In, N>&, int) const {
    return ConvertTo<In>(static_cast<float>(turned & 1));
  }
  __device__ __forceinline__ State Identity() const { return {0}; }
  __device__ __forceinline__ Gathered Begin() const { return 0; }
  __device__ __forceinline__ State Conclude(Gathered s) const { return {s != 0 ? 1u : 0u}; }
  __device__ __forceinline__ void Add(Gathered& s, bool v, int64_t) const {
    s |= (v ? 1u << 31 : 0) ^ (turned & 1u << 31);
  }
  template <class In, int N, int K>
  __device__ __forceinline__ void AddPacks(Gathered& s, const Pack<In, N> (&x)[K],
                                           const int64_t (&)[K]) const {
    uint32_t seen = 0;
#pragma unroll
    for (int k = 0; k < K; ++k) {
#pragma unroll
      for (int i = 0; i < Columns<In, N>::kWords; ++i) {
        seen |= Columns<In, N>::Tops(x[k], i) ^ turned;
      }
    }
    s |= seen & kTops<In>;
  }
  template <class In, int N>
  __device__ __forceinline__ Columns<In, N> BeginColumns() const {
    return {};
  }
  template <class In, int N, int K>
  __device__ __forceinline__ void AddPlaces(Columns<In, N>& s, const Pack<In, N> (&x)[K], int64_t,
                                            int64_t) const {
#pragma unroll
    for (int k = 0; k < K; ++k) {
#pragma unroll
      for (int i = 0; i < Columns<In, N>::kWords; ++i) {
        s.seen[i] |= Columns<In, N>::Tops(x[k], i) ^ turned;
      }
    }
  }
  template <class In, int N>
  __device__ __forceinline__ State ConcludeColumn(const Columns<In, N>& s, int i,
                                                  const ReduceWay&) const {
    constexpr int kOf = Columns<In, N>::kOf, kBits = sizeof(In) < 4 ? 8 * sizeof(In) : 32;
    return {s.seen[i / kOf] >> (kBits * (i % kOf + 1) - 1) & 1};
  }
  __device__ __forceinline__ State Merge(const State& a, const State& b) const {
    return {a.bit | b.bit};
  }
  template <class In>
  __device__ __forceinline__ void Finish(const State& s, const ReduceOutputs& out, int64_t y,
                                         const In*, int64_t) const {
    StoreAs<bool>(out.y, out.dtype, y, (s.bit ^ (turned & 1)) != 0);
  }
};

}  // namespace cuda
}  // namespace oneflow_lite
