// SPDX-License-Identifier: Apache-2.0
//
// Units of rows that begin or end anywhere (plan.h): packs at boundaries, several of a thread under
// way. Of one that reaches beyond its row the other elements are filled with what changes nothing,
// or its own are added one by one.
#pragma once

#include "primitive/cuda/reduce/reduce_parts.cuh"

namespace oneflow_lite {
namespace cuda {

// Where the elements of the tensor lie. A pack that reaches beyond its row is read; one that
// reaches beyond all rows is read element by element.
template <class In>
struct ReduceSpan {
  const In *begin, *end;
  __device__ __forceinline__ bool Has(const In* p) const { return p >= begin && p < end; }
};

template <class In>
__device__ __forceinline__ Pack<In, kPackSize<In>> LoadUnit(const In* p,
                                                            const ReduceSpan<In>& span) {
  constexpr int N = kPackSize<In>;
  if (span.Has(p) && span.Has(p + N - 1)) return LoadWhole<N>(p);
  Pack<In, N> pack = {};
  if constexpr (sizeof(In) < 4) {  // a loop: at two places of a tensor at most
    uint32_t words[4] = {};
#pragma unroll 1
    for (int i = N - 1; i >= 0; --i) {
#pragma unroll
      for (int w = 3; w > 0; --w) {
        words[w] = __funnelshift_l(words[w - 1], words[w], 8 * sizeof(In));
      }
      Pack<In, 4 / sizeof(In)> low;
      memcpy(&low, words, 4);
      uint32_t word = words[0] << 8 * sizeof(In);
      memcpy(&low, &word, 4);
      if (span.Has(p + i)) low.v[0] = p[i];
      memcpy(words, &low, 4);
    }
    memcpy(&pack, words, sizeof(pack));
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if (span.Has(p + i)) pack.v[i] = p[i];
    }
  }
  return pack;
}

// The elements from `from` up to `to` of a pack, and `other` for the rest.
template <class In, int N>
__device__ __forceinline__ Pack<In, N> FilledAround(const Pack<In, N>& x, In other, int from,
                                                    int to) {
  if constexpr (sizeof(In) < 4) {
    constexpr int kOf = 4 / sizeof(In), kBits = 8 * sizeof(In);  // elements of a word
    Pack<In, kOf> others;
#pragma unroll
    for (In& v : others.v) v = other;
    uint32_t words[4], fill;
    memcpy(words, &x, sizeof(words));
    memcpy(&fill, &others, sizeof(fill));
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const int before = max((from - w * kOf) * kBits, 0);
      const int behind = max(((w + 1) * kOf - to) * kBits, 0);
      const uint32_t keep = __funnelshift_lc(0, ~0u, before) & __funnelshift_rc(~0u, 0, behind);
      words[w] = (words[w] & keep) | (fill & ~keep);
    }
    Pack<In, N> filled;
    memcpy(&filled, words, sizeof(filled));
    return filled;
  } else {
    Pack<In, N> filled;
#pragma unroll
    for (int i = 0; i < N; ++i) filled.v[i] = i >= from && i < to ? x.v[i] : other;
    return filled;
  }
}

// K units, asked for before any is added: element 0 of unit k, at at[k], is its row's first[k], and
// the row has `length`. One with first[k] >= length is none.
template <class In, class R, int K>
__device__ __forceinline__ void AddUnits(const R& r, const In* (&at)[K], int64_t (&first)[K],
                                         int64_t length, const ReduceSpan<In>& span,
                                         typename R::Gathered& gathered) {
  constexpr int N = kPackSize<In>;
  StowedPack<In, N> stowed[K] = {};
#pragma unroll
  for (int k = 0; k < K; ++k) {
    if (first[k] < length) stowed[k] = StowedPack<In, N>::Of(LoadUnit(at[k], span));
  }
#pragma unroll 1
  for (int k = 0; k < K; ++k) {
    const int64_t left = length - first[0];
    const int from = first[0] < 0 ? static_cast<int>(-first[0]) : 0;
    const int to = left < N ? static_cast<int>(left) : N;
    const bool whole = from == 0 && to == N;
    if (to > 0 && (whole || R::kFills)) {
      Pack<In, N> pack[1] = {stowed[0].Get()};
      if constexpr (R::kFills) {
        if (!whole) pack[0] = FilledAround(pack[0], r.Filler(pack[0], from), from, to);
      }
      const int64_t places[1] = {first[0]};
      r.AddPacks(gathered, pack, places);
    } else {
#pragma unroll 1
      for (int i = from; i < to; ++i) {
        r.Add(gathered, ConvertTo<typename R::Value>(at[0][i]), first[0] + i);
      }
    }
#pragma unroll
    for (int j = 1; j < K; ++j) {  // the next one's turn
      stowed[j - 1] = stowed[j], at[j - 1] = at[j], first[j - 1] = first[j];
    }
  }
}

}  // namespace cuda
}  // namespace oneflow_lite
