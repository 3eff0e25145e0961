// SPDX-License-Identifier: Apache-2.0
//
// The reducers of extremes and their places. Packs are compared as they are, two 16-bit floats in
// one instruction, before anything is converted.
#pragma once

#include "primitive/cuda/reduce/reducers.cuh"

namespace oneflow_lite {
namespace cuda {

// What extremes of T are held in: whole words.
template <class T>
using ExtremeType = std::conditional_t<std::is_integral_v<T> && sizeof(T) <= sizeof(int32_t),
                                       int32_t, Accumulator<T>>;

// The larger one, or the smaller; NaN wins.
template <bool kMax, class T>
__device__ __forceinline__ T Further(T a, T b) {
  return (kMax ? b > a : b < a) || b != b ? b : a;
}
template <bool kMax>
__device__ __forceinline__ float Further(float a, float b) {
  float further;
  if constexpr (kMax) {
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(further) : "f"(a), "f"(b));
  } else {
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(further) : "f"(a), "f"(b));
  }
  return further;
}
template <bool kMax>
__device__ __forceinline__ __half Further(__half a, __half b) {
  return kMax ? __hmax_nan(a, b) : __hmin_nan(a, b);
}
template <bool kMax>
__device__ __forceinline__ __nv_bfloat16 Further(__nv_bfloat16 a, __nv_bfloat16 b) {
  return kMax ? __hmax_nan(a, b) : __hmin_nan(a, b);
}

template <bool kMax, class Pair>
__device__ __forceinline__ uint32_t FurtherPair(uint32_t a, uint32_t b) {
  Pair x, y;
  memcpy(&x, &a, sizeof(x));
  memcpy(&y, &b, sizeof(y));
  const Pair further = kMax ? __hmax2_nan(x, y) : __hmin2_nan(x, y);
  uint32_t word;
  memcpy(&word, &further, sizeof(word));
  return word;
}

// Element by element.
template <bool kMax, class T, int N>
__device__ __forceinline__ Pack<T, N> FurtherEach(const Pack<T, N>& a, const Pack<T, N>& b) {
  Pack<T, N> further;
  if constexpr (kIsShortFloat<T> && N % 2 == 0) {
    uint32_t x[N / 2], y[N / 2];
    memcpy(x, &a, sizeof(x));
    memcpy(y, &b, sizeof(y));
#pragma unroll
    for (int i = 0; i < N / 2; ++i) x[i] = FurtherPair<kMax, PairOf<T>>(x[i], y[i]);
    memcpy(&further, x, sizeof(x));
    KeepPacked(further);
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) further.v[i] = Further<kMax>(a.v[i], b.v[i]);
  }
  return further;
}

// Of the elements of a pack.
template <bool kMax, class A, class T, int N>
__device__ __forceinline__ A FurthestOf(const Pack<T, N>& x) {
  if constexpr (kIsShortFloat<T> && N > 2) {
    Pack<T, N / 2> low, high;
    memcpy(&low, &x, sizeof(low));
    memcpy(&high, reinterpret_cast<const char*>(&x) + sizeof(low), sizeof(high));
    return FurthestOf<kMax, A>(FurtherEach<kMax>(low, high));
  } else {
    A further = ConvertTo<A>(x.v[0]);
#pragma unroll
    for (int i = 1; i < N; ++i) further = Further<kMax>(further, ConvertTo<A>(x.v[i]));
    return further;
  }
}
template <bool kMax, class T, int N, int K>
__device__ __forceinline__ Pack<T, N> FurthestPack(const Pack<T, N> (&x)[K]) {
  Pack<T, N> further = x[0];
#pragma unroll
  for (int k = 1; k < K; ++k) further = FurtherEach<kMax>(further, x[k]);
  return further;
}

// A floating pack without its signs.
template <class T, int N>
__device__ __forceinline__ Pack<T, N> SizesOf(Pack<T, N> x) {
  if constexpr (kIsShortFloat<T> && N % 2 == 0) {
    uint32_t words[N / 2];
    memcpy(words, &x, sizeof(words));
#pragma unroll
    for (uint32_t& word : words) word &= 0x7fff7fffu;
    memcpy(&x, words, sizeof(words));
    KeepPacked(x);
  } else {
#pragma unroll
    for (T& v : x.v) v = ConvertTo<T>(fabs(ConvertTo<ComputeType<T>>(v)));
  }
  return x;
}

// Element i of a pack, without an array in memory.
template <class T, int N>
__device__ __forceinline__ T ElementAt(const Pack<T, N>& x, int i) {
  if constexpr (sizeof(T) < 4) {
    uint32_t words[sizeof(x) / 4];
    memcpy(words, &x, sizeof(words));
    uint32_t word = words[0];
#pragma unroll
    for (int w = 1; w < static_cast<int>(sizeof(x) / 4); ++w) {
      if (i * static_cast<int>(sizeof(T)) >= 4 * w) word = words[w];
    }
    word >>= 8 * sizeof(T) * (i % (4 / sizeof(T)));
    T v;
    memcpy(&v, &word, sizeof(v));
    return v;
  } else {
    T v = x.v[0];
#pragma unroll
    for (int j = 1; j < N; ++j) v = i == j ? x.v[j] : v;
    return v;
  }
}

// What loses to every element, or equals it.
template <bool kMax, class A>
__device__ __forceinline__ A Nearest() {
  if constexpr (std::is_floating_point_v<A>) {
    return kMax ? -Infinity<A>() : Infinity<A>();
  } else {
    constexpr A kLowest = A(1) << (8 * sizeof(A) - 1);  // of a signed integer
    return kMax ? kLowest : ~kLowest;
  }
}

// The smallest and the largest, of the elements or of their sizes, of which `op` wants one or both.
template <class A>
struct ExtremesReducer {
  using Value = A;
  struct State {
    A low, high;
  };
  static constexpr int kBatch = ReducePolicy::kBatch, kResident = 6;
  static constexpr int kPlaces = ReducePolicy::kPlaces, kColumnsResident = 5;
  static constexpr int kWholeColumnsResident = 4, kWholeRowsResident = 4;
  static constexpr bool kReadsAhead = false;
  static constexpr int64_t kMostPlaces = INT64_MAX;
  static constexpr bool kOneBit = false;
  static constexpr bool kMergesSeveral = false;
  static constexpr bool kMergesEight = false;
  static constexpr bool kFills = true;
  ReduceKind op;
  bool sizes;

  using Gathered = State;
  __device__ __forceinline__ State Identity() const {
    return {Nearest<false, A>(), Nearest<true, A>()};
  }
  template <class In, int N>
  __device__ __forceinline__ In Filler(const Pack<In, N>& x, int from) const {
    return ElementAt(x, from);  // once more
  }
  __device__ __forceinline__ Gathered Begin() const { return Identity(); }
  template <class In, int N>
  __device__ __forceinline__ Pack<State, N> BeginColumns() const {
    return FilledPack<N>(Identity());
  }
  __device__ __forceinline__ State Conclude(const Gathered& s) const { return s; }
  template <int N>
  __device__ __forceinline__ State ConcludeColumn(const Pack<State, N>& s, int i,
                                                  const ReduceWay&) const {
    return s.v[i];
  }
  __device__ __forceinline__ void Add(State& s, A v, int64_t) const {
    if constexpr (std::is_floating_point_v<A>) {
      if (sizes) v = fabs(v);
    }
    s = Merge(s, {v, v});
  }
  template <class In, int N, int K>
  __device__ __forceinline__ void AddPacks(State& s, const Pack<In, N> (&x)[K],
                                           const int64_t (&)[K]) const {
    Pack<In, N> low, high;
    Gather(x, low, high);
    s = Merge(s, {FurthestOf<false, A>(low), FurthestOf<true, A>(high)});
  }
  template <class In, int N, int K>
  __device__ __forceinline__ void AddPlaces(Pack<State, N>& s, const Pack<In, N> (&x)[K], int64_t,
                                            int64_t) const {
    Pack<In, N> low, high;
    Gather(x, low, high);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      s.v[i] = Merge(s.v[i], {ConvertTo<A>(low.v[i]), ConvertTo<A>(high.v[i])});
    }
  }
  __device__ __forceinline__ State Merge(const State& a, const State& b) const {
    return {Further<false>(a.low, b.low), Further<true>(a.high, b.high)};
  }
  template <class In>
  __device__ __forceinline__ void Finish(const State& s, const ReduceOutputs& out, int64_t y,
                                         const In*, int64_t) const {
    const bool largest = op == ReduceKind::kMax;
    const A nothing(0);  // the norm of nothing
    StoreAs<In>(out.y, out.dtype, y, sizes && out.axis == 0 ? nothing : largest ? s.high : s.low);
    if (out.second) StoreAs<In>(out.second, out.dtype, y, s.high);
  }

 private:
  template <class In, int N, int K>
  __device__ __forceinline__ void Gather(const Pack<In, N> (&x)[K], Pack<In, N>& low,
                                         Pack<In, N>& high) const {
    if constexpr (std::is_floating_point_v<A>) {
      if (sizes) {
        Pack<In, N> size[K];
#pragma unroll
        for (int k = 0; k < K; ++k) size[k] = SizesOf(x[k]);
        low = FurthestPack<false>(size), high = FurthestPack<true>(size);
        return;
      }
    }
    low = FurthestPack<false>(x), high = FurthestPack<true>(x);
  }
};

// An extreme and where it stands: the first one, or the first NaN. While elements come by packs,
// the place is that of the pack, or of the first place, which has it; Finish looks there. A state
// whose elements are all the nearest value has no place: where that is the result, all elements of
// the slice are, and the first one is the result's place.
template <class A>
struct PlaceReducer {
  using Value = A;
  struct State {
    A value;
    int64_t place;
  };
  static constexpr int kBatch = ReducePolicy::kBatch, kResident = 6;
  static constexpr int kPlaces = ReducePolicy::kPlaces, kColumnsResident = 5;
  static constexpr int kWholeColumnsResident = 5, kWholeRowsResident = 6;
  static constexpr bool kReadsAhead = false;
  static constexpr int64_t kMostPlaces = INT64_MAX;
  static constexpr bool kOneBit = false;
  static constexpr bool kMergesSeveral = false;
  static constexpr bool kMergesEight = false;
  static constexpr bool kFills = false;
  static constexpr int64_t kNone = INT64_MAX;
  bool smallest;

  using Gathered = State;
  __device__ __forceinline__ State Identity() const {
    return {smallest ? Nearest<false, A>() : Nearest<true, A>(), kNone};
  }
  __device__ __forceinline__ Gathered Begin() const { return Identity(); }
  template <class In, int N>
  __device__ __forceinline__ Pack<State, N> BeginColumns() const {
    return FilledPack<N>(Identity());
  }
  __device__ __forceinline__ State Conclude(const Gathered& s) const { return s; }
  template <int N>
  __device__ __forceinline__ State ConcludeColumn(const Pack<State, N>& s, int i,
                                                  const ReduceWay&) const {
    return s.v[i];
  }
  __device__ __forceinline__ void Add(State& s, A v, int64_t place) const {
    if (smallest) {
      Offer<false>(s, v, place);
    } else {
      Offer<true>(s, v, place);
    }
  }
  template <class In, int N, int K>
  __device__ __forceinline__ void AddPacks(State& s, const Pack<In, N> (&x)[K],
                                           const int64_t (&places)[K]) const {
    if (smallest) {
#pragma unroll
      for (int k = 0; k < K; ++k) Offer<false>(s, FurthestOf<false, A>(x[k]), places[k]);
    } else {
#pragma unroll
      for (int k = 0; k < K; ++k) Offer<true>(s, FurthestOf<true, A>(x[k]), places[k]);
    }
  }
  template <class In, int N, int K>
  __device__ __forceinline__ void AddPlaces(Pack<State, N>& s, const Pack<In, N> (&x)[K],
                                            int64_t place, int64_t) const {
    if (smallest) {
      OfferEach<false>(s, FurthestPack<false>(x), place);
    } else {
      OfferEach<true>(s, FurthestPack<true>(x), place);
    }
  }
  __device__ __forceinline__ State Merge(const State& a, const State& b) const {
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    if (a.value == b.value || (a_nan && b_nan)) return a.place < b.place ? a : b;
    const bool before = smallest ? a.value < b.value : a.value > b.value;
    return a_nan || (!b_nan && before) ? a : b;
  }
  template <class In>
  __device__ __forceinline__ void Finish(const State& s, const ReduceOutputs& out, int64_t y,
                                         const In* slice, int64_t step) const {
    if (out.y) StoreAs<In>(out.y, out.dtype, y, s.value);
    const int64_t from = s.place == kNone ? 0 : s.place;
    const int64_t place = Search(slice, step, from, out.axis, s.value);
    static_cast<int64_t*>(out.second)[y] = place;
  }

 private:
  __device__ __forceinline__ static bool Equal(A a, A b) { return a == b || (a != a && b != b); }
  // The first place from `from` on that has the value, or the last one. kAhead loads at a time,
  // which do not wait for each other.
  template <class In>
  __device__ __forceinline__ static int64_t Search(const In* slice, int64_t step, int64_t from,
                                                   int64_t axis, A value) {
    constexpr int kAhead = ReducePolicy::kPlaces;
    for (; from + kAhead < axis; from += kAhead) {
      int found = kAhead;
#pragma unroll
      for (int i = kAhead - 1; i >= 0; --i) {
        if (Equal(ConvertTo<A>(slice[(from + i) * step]), value)) found = i;
      }
      if (found < kAhead) return from + found;
    }
    while (from + 1 < axis && !Equal(ConvertTo<A>(slice[from * step]), value)) ++from;
    return from;
  }
  // An element of a later place, which must be further to be taken.
  template <bool kMax>
  __device__ __forceinline__ static void Offer(State& s, A v, int64_t place) {
    const bool further = (!(kMax ? v <= s.value : v >= s.value)) && s.value == s.value;
    s.value = further ? v : s.value;
    s.place = further ? place : s.place;
  }
  template <bool kMax, class In, int N>
  __device__ __forceinline__ static void OfferEach(Pack<State, N>& s, const Pack<In, N>& x,
                                                   int64_t place) {
#pragma unroll
    for (int i = 0; i < N; ++i) Offer<kMax>(s.v[i], ConvertTo<A>(x.v[i]), place);
  }
};

}  // namespace cuda
}  // namespace oneflow_lite
