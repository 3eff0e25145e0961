// SPDX-License-Identifier: Apache-2.0
//
// The reducer of places of extremes of 16-bit floats, whose values and places fit in one integer.
#pragma once

#include "primitive/cuda/reduce/extremes.cuh"

namespace oneflow_lite {
namespace cuda {

// Two elements times a factor of 1 or -1, with one NaN and one 0.
template <class In>
__device__ __forceinline__ uint32_t CanonicalPair(uint32_t word, uint32_t factor) {
  uint32_t canonical;
  if constexpr (std::is_same_v<In, __half>) {
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(canonical) : "r"(word), "r"(factor), "r"(0));
  } else {
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(canonical) : "r"(word), "r"(factor), "r"(0));
  }
  return canonical;
}
// Signed 16-bit integers in the order of two such elements, of which NaN is the last. It is its own
// inverse.
__device__ __forceinline__ uint32_t KeyPair(uint32_t canonical) {
  uint32_t signs;
  asm("prmt.b32 %0, %1, 0, 0xbb99;" : "=r"(signs) : "r"(canonical));
  return canonical ^ (signs & 0x7fff7fffu);
}

// An extreme of In and its place, as PlaceReducer. The smallest element is the largest one of those
// times -1.
template <class In>
struct ShortPlaceReducer {
  // The key of the value above 48 bits that are larger for an earlier place; 0: none.
  struct State {
    uint64_t best;
  };
  // The key of the furthest element so far, and the pack that had it first.
  struct Gathered {
    int32_t key;
    uint32_t words[4];
    int64_t place;
  };
  using Value = float;
  static constexpr int kBatch = ReducePolicy::kBatch, kResident = 6;
  static constexpr int kPlaces = ReducePolicy::kPlaces, kColumnsResident = 5;
  static constexpr int kWholeColumnsResident = 4, kWholeRowsResident = 4;
  static constexpr bool kReadsAhead = false;
  static constexpr int64_t kMostPlaces = 1 << 16;
  static constexpr bool kOneBit = false;
  static constexpr bool kMergesSeveral = false;
  static constexpr bool kMergesEight = false;
  static constexpr bool kFills = false;
  static constexpr int32_t kNone = INT32_MIN;
  static constexpr uint64_t kPlaceBits = (uint64_t{1} << 48) - 1;
  uint32_t factor;

  explicit ShortPlaceReducer(bool smallest) {
    factor = std::is_same_v<In, __half> ? 0x3c003c00u : 0x3f803f80u;
    if (smallest) factor |= 0x80008000u;
  }
  __device__ __forceinline__ State Identity() const { return {0}; }
  __device__ __forceinline__ Gathered Begin() const { return {kNone, {}, 0}; }
  __device__ __forceinline__ void Add(Gathered& s, float v, int64_t place) const {
    Pack<In, 8> pack = {};
    pack.v[0] = ConvertTo<In>(v);
    uint32_t words[4];
    memcpy(words, &pack, sizeof(words));
    Offer(s, KeyOf(words[0]), words, place);
  }
  template <int N, int K>
  __device__ __forceinline__ void AddPacks(Gathered& s, const Pack<In, N> (&x)[K],
                                           const int64_t (&places)[K]) const {
    static_assert(N == 8, "");
    uint32_t most[K];
    if (factor >> 31) {
      FurthestPairs<false>(x, most);
    } else {
      FurthestPairs<true>(x, most);
    }
#pragma unroll
    for (int k = 0; k < K; ++k) {
      uint32_t words[4];
      memcpy(words, &x[k], sizeof(words));
      Offer(s, KeyOf(most[k]), words, places[k]);
    }
  }
  __device__ __forceinline__ State Conclude(const Gathered& s) const {
    if (s.key == kNone) return Identity();
    int at = 0;
#pragma unroll
    for (int i = 7; i >= 0; --i) {
      if (KeyOf(s.words[i / 2] >> 16 * (i % 2)) == s.key) at = i;
    }
    return Of(s.key, s.place + at);
  }

  // A column's best so far: its key above 16 bits that are larger for an earlier place.
  template <class, int N>
  __device__ __forceinline__ Pack<int32_t, N> BeginColumns() const {
    return FilledPack<N>(kNone);
  }
  template <int N, int K>
  __device__ __forceinline__ void AddPlaces(Pack<int32_t, N>& s, const Pack<In, N> (&x)[K], int64_t,
                                            int64_t seen) const {
#pragma unroll
    for (int k = 0; k < K; ++k) {
      const uint32_t before = 0xffffu - static_cast<uint32_t>(seen + k);
      uint32_t words[(N + 1) / 2] = {};
      memcpy(words, &x[k], sizeof(x[k]));
#pragma unroll
      for (uint32_t& word : words) word = KeyPair(CanonicalPair<In>(word, factor));
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const uint32_t ranked = __byte_perm(words[i / 2], before, i % 2 ? 0x3254 : 0x1054);
        s.v[i] = max(s.v[i], static_cast<int32_t>(ranked));
      }
    }
  }
  template <int N>
  __device__ __forceinline__ State ConcludeColumn(const Pack<int32_t, N>& s, int i,
                                                  const ReduceWay& way) const {
    if (s.v[i] == kNone) return Identity();
    return Of(s.v[i] >> 16, way.PlaceOf(0xffff - (s.v[i] & 0xffff)));
  }

  __device__ __forceinline__ State Merge(const State& a, const State& b) const {
    return {a.best > b.best ? a.best : b.best};
  }
  __device__ __forceinline__ void Finish(const State& s, const ReduceOutputs& out, int64_t y,
                                         const In* slice, int64_t step) const {
    const int64_t place = static_cast<int64_t>(~s.best & kPlaceBits);
    static_cast<int64_t*>(out.second)[y] = place;
    if (!out.y) return;
    const uint32_t pair = KeyPair(static_cast<uint32_t>(s.best >> 48) ^ 0x8000u);
    float v = WidenPair<In>(pair).x;
    if (factor >> 31) v = -v;
    if (v == 0) v = ConvertTo<float>(slice[place * step]);  // with its sign
    StoreAs<In>(out.y, out.dtype, y, v);
  }

 private:
  __device__ __forceinline__ static State Of(int32_t key, int64_t place) {
    const uint64_t above = (static_cast<uint32_t>(key) & 0xffffu) ^ 0x8000u;
    return {above << 48 | (~static_cast<uint64_t>(place) & kPlaceBits)};
  }
  // The furthest element of each pack, in both halves of a word.
  template <bool kMax, int K>
  __device__ __forceinline__ static void FurthestPairs(const Pack<In, 8> (&x)[K],
                                                       uint32_t (&most)[K]) {
    const auto further = [](uint32_t a, uint32_t b) { return FurtherPair<kMax, PairOf<In>>(a, b); };
#pragma unroll
    for (int k = 0; k < K; ++k) {
      uint32_t words[4];
      memcpy(words, &x[k], sizeof(words));
      const uint32_t of = further(further(words[0], words[1]), further(words[2], words[3]));
      most[k] = further(of, of >> 16 | of << 16);
    }
  }
  // Of the lower element of a word.
  __device__ __forceinline__ int32_t KeyOf(uint32_t word) const {
    return static_cast<int16_t>(KeyPair(CanonicalPair<In>(word, factor)));
  }
  // Of a later place, which must be larger to be taken.
  __device__ __forceinline__ static void Offer(Gathered& s, int32_t key, const uint32_t (&words)[4],
                                               int64_t place) {
    const bool larger = key > s.key;
    s.key = larger ? key : s.key;
#pragma unroll
    for (int i = 0; i < 4; ++i) s.words[i] = larger ? words[i] : s.words[i];
    s.place = larger ? place : s.place;
  }
};

}  // namespace cuda
}  // namespace oneflow_lite
