// SPDX-License-Identifier: Apache-2.0
//
// How rows that are held by packs of their own, counted from a row's first column on, are written
// in aligned words, which begin anywhere in such a pack: lanes take what they lack from the lane in
// front of them, as rows/shifted.cuh has them take it from the next one when the row is read.
#pragma once

#include "primitive/cuda/norms/math.cuh"
#include "primitive/cuda/rows/shifted.cuh"

namespace oneflow_lite {
namespace cuda {

// A Store functor (primitive/cuda/rows/io.cuh) that hands packs to the caller, before they are
// rounded, and writes single columns.
template <class T>
struct KeepingStore {
  using Element = T;
  using Kept = Pack<ComputeType<T>, kPackSize<T>>;
  T* y;
  int64_t row_stride;
  Kept* kept = nullptr;

  __device__ __forceinline__ KeepingStore At(int64_t row) const {
    return {y + row * row_stride, 0, kept};
  }
  __device__ __forceinline__ int Head(int64_t) const { return 0; }
  template <int N>
  __device__ __forceinline__ void Store(int64_t row, int64_t col,
                                        const Pack<ComputeType<T>, N>& v) const {
    if constexpr (N == 1) {
      y[row * row_stride + col] = ConvertPack<T>(v).v[0];
    } else {
      *kept = v;
    }
  }
};

namespace internal {

// Whether an algorithm writes rows, by a KeepingStore that is its member `store`.
template <class A, class = void>
struct KeepsPacks : std::false_type {};
template <class A>
struct KeepsPacks<A, std::void_t<decltype(std::declval<A&>().store.kept)>> : std::true_type {};
// Whether its results are multiplied by weights, and biases are added, which are its `extras`.
template <class A, class = void>
struct HasWeights : std::false_type {};
template <class A>
struct HasWeights<A, std::void_t<decltype(std::declval<A&>().extras.float_weight)>>
    : std::true_type {};

// Of a warp's `packs` packs, as its lanes hold them, stores those words that lie in them whole, to
// be the first to leave the L2: weights stay there. kSkip: whole words of 4 bytes of the first
// pack's place in its word, as ShiftWords's; -1: a pack is a word.
template <int kSkip, class T, int kPacks>
__device__ __forceinline__ void StoreInnerWords(const StowedPack<T, kPackSize<T>> (&held)[kPacks],
                                                int packs, uint4* words, unsigned bits) {
  constexpr int kFirst = kSkip < 0 ? 0 : kSkip;
  const int lane = threadIdx.x % kWarp;
  uint32_t before[4] = {};  // lane 0 of the next packs follows the last lane
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    uint32_t v[8], w[4];
    memcpy(v + 4, &held[k], kPackBytes);
    if constexpr (kSkip >= 0) {
#pragma unroll
      for (int i = kFirst; i < 4; ++i) {
        v[i] = __shfl_sync(0xffffffffu, lane == kWarp - 1 ? before[i] : v[4 + i], lane + kWarp - 1);
        before[i] = v[4 + i];
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int at = kSkip < 0 ? 4 + i : kFirst + i;
      w[i] = kSkip >= 0 && sizeof(T) < 4 ? __funnelshift_r(v[at], v[at + 1], bits) : v[at];
    }
    const int at = k * kWarp + lane;
    if (at < packs && (kSkip < 0 || at > 0)) {
      __stcs(words + k * kWarp, make_uint4(w[0], w[1], w[2], w[3]));
    }
  }
}

// Stores a warp's packs, of which this lane has every 32nd of `packs`, the first at y. `ends`: room
// in shared memory for two packs of the warp.
template <class T, int kPacks>
__device__ __forceinline__ void StoreByWords(const StowedPack<T, kPackSize<T>> (&held)[kPacks],
                                             int packs, T* y, uint4* ends) {
  constexpr int N = kPackSize<T>;
  const int lane = threadIdx.x % kWarp;
  const unsigned past = BytesPastBoundary(y);
  uint4* const words = reinterpret_cast<uint4*>(reinterpret_cast<char*>(y) - past);
  if (packs <= 0) return;
  if (past == 0) {
    StoreInnerWords<-1, T>(held, packs, words, 0);
    return;
  }
  // In the first and the last word others have a part.
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    const int at = k * kWarp + lane;
    uint4 word;
    memcpy(&word, &held[k], sizeof(word));
    if (at == 0) ends[0] = word;
    if (at == packs - 1) ends[1] = word;
  }
  __syncwarp();
  const int inside = N - static_cast<int>(past / sizeof(T));  // of a pack's elements, in its word
  if (lane < inside || (lane >= N + inside && lane < 2 * N)) {
    T* const to = y + ((lane < N ? 0 : packs - 2) - lane) * N + lane;
    *to = reinterpret_cast<const T*>(ends)[lane];
  }
  VisitWordShift<T>(kPackBytes - past, [&](auto skip) {
    StoreInnerWords<decltype(skip)::value, T>(held, packs, words, (kPackBytes - past) % 4 * 8);
  });
}

// Weights and biases of a lane's packs, as they lie in memory.
template <class T, int kPacks>
struct WeightsOfPacks {
  StowedPack<T, kPackSize<T>> weight[kPacks], bias[kPacks];
};
struct NoWeights {};

// The algorithm for a warp's lane, with its packs written so. Of weights and biases of its own type
// kAsked are asked for with the row, for which registers must suffice: both, the weights, or none.
template <int kPacks, int kAsked, class A>
struct ByWords : A {
  using T = typename A::Output;
  using C = typename A::C;
  static constexpr int N = A::kPack;
  static constexpr unsigned kOffers = A::kOffers | RowOffers::kAt | RowOffers::kStorePacks;
  static constexpr bool kAsks = kAsked > 0 && HasWeights<A>::value;
  struct Total : A::Total {
    std::conditional_t<kAsks, WeightsOfPacks<T, kPacks>, NoWeights> asked;
  };
  int begin, packs;  // of the warp
  uint4* ends;

  __device__ __forceinline__ ByWords(const A& a, int begin, int packs, uint4* ends)
      : A(a), begin(begin), packs(packs), ends(ends) {}
  __device__ __forceinline__ ByWords(const A& a, int rank, int cols, int each, uint4* ends)
      : ByWords(a, rank / kWarp * kWarp * each, 0, ends) {
    const int left = InnerSpan<N>(0, cols).packs - begin;
    packs = left < kWarp * each ? left : kWarp * each;
  }
  __device__ __forceinline__ ByWords At(int64_t row) const {
    return ByWords(AtRow(static_cast<const A&>(*this), row), begin, packs, ends);
  }
  __device__ __forceinline__ Total Begin(int64_t row) const {
    Total total{A::Begin(row), {}};
    if constexpr (kAsks) {
      if (!LiesBeside<T>()) return total;
      const int lane = threadIdx.x % kWarp;
      const T* const weight = static_cast<const T*>(this->extras.weight);
      const T* const bias = static_cast<const T*>(this->extras.bias);
#pragma unroll
      for (int k = 0; k < kPacks; ++k) {
        const int at = k * kWarp + lane,
                  col = (begin + at + 1) * N;  // behind a pack of single ones
        if (at >= packs) continue;
        total.asked.weight[k] = StowedPack<T, N>::Of(LoadWholePack<N>(weight + col));
        if (kAsked > 1 && bias)
          total.asked.bias[k] = StowedPack<T, N>::Of(LoadWholePack<N>(bias + col));
      }
    }
    return total;
  }
  template <int kHeld>
  __device__ __forceinline__ void StorePacks(int64_t row, int64_t col, int count,
                                             const typename A::template Value<N> (&value)[kHeld],
                                             const Total& total) const {
    StowedPack<T, N> held[kPacks];
    Find(row, col, count, value, total, held);
    StoreByWords<T>(held, packs, this->store.y + row * this->store.row_stride + col, ends);
  }

 private:
  // Whether there are weights, and maybe biases, of W that lie as the row's own packs do.
  template <class W>
  __device__ __forceinline__ bool LiesBeside() const {
    const auto& extras = this->extras;
    return extras.weight && IsAlignedFor<uint4>(extras.weight) &&
           IsAlignedFor<uint4>(extras.bias) &&
           (std::is_same_v<T, float> || extras.float_weight == std::is_same_v<W, float>);
  }
  // No store is among the loads of weights, so that these may pass each other.
  __device__ __forceinline__ void Find(int64_t row, int64_t col, int count,
                                       const typename A::template Value<N> (&value)[kPacks],
                                       const Total& total, StowedPack<T, N> (&held)[kPacks]) const {
    if constexpr (HasWeights<A>::value) {
      if (LiesBeside<T>()) return FindBeside<T>(row, col, count, value, total, held);
      if constexpr (!std::is_same_v<T, float>) {
        if (LiesBeside<float>()) return FindBeside<float>(row, col, count, value, total, held);
      }
    }
    FindEach(*this, row, col, count, value, total, held, [](int, auto&) {});
  }
  template <class W>
  __device__ __forceinline__ void FindBeside(int64_t row, int64_t col, int count,
                                             const typename A::template Value<N> (&value)[kPacks],
                                             const Total& total,
                                             StowedPack<T, N> (&held)[kPacks]) const {
    A plain = *this;
    plain.extras.weight = plain.extras.bias = nullptr;
    const bool biased = this->extras.bias;
    const W* const weight = static_cast<const W*>(this->extras.weight) + col;
    const W* const bias = static_cast<const W*>(this->extras.bias) + col;
    FindEach(plain, row, col, count, value, total, held, [&](int k, auto& y) {
      constexpr int kHad = std::is_same_v<W, T> ? kAsked : 0;
      if constexpr (kHad > 0) {
        y *= ConvertPack<C>(total.asked.weight[k].Get());
      } else {
        y *= ConvertPack<C>(LoadWholePack<N>(weight + k * kWarp * N));
      }
      if (!biased) return;
      if constexpr (kHad > 1) {
        y += ConvertPack<C>(total.asked.bias[k].Get());
      } else {
        y += ConvertPack<C>(LoadWholePack<N>(bias + k * kWarp * N));
      }
    });
  }
  template <class F>
  static __device__ __forceinline__ void FindEach(
      const A& a, int64_t row, int64_t col, int count,
      const typename A::template Value<N> (&value)[kPacks], const Total& total,
      StowedPack<T, N> (&held)[kPacks], const F& change) {
    A here = a;
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (k >= count) continue;
      typename KeepingStore<T>::Kept kept;
      here.store.kept = &kept;
      here.template Store<N>(row, col + k * kWarp * N, value[k], total);
      change(k, kept);
      held[k] = StowedPack<T, N>::Of(ConvertPack<T>(kept));
    }
  }
};

}  // namespace internal
}  // namespace cuda
}  // namespace oneflow_lite
