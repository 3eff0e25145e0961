// SPDX-License-Identifier: Apache-2.0
//
// The scores of scale_mask/scale_mask_softmax.cuh, scale * x + mask, by kind of mask. What is read
// waits on chip as it lies in memory and is combined where it is first used, so that all loads of a
// row are in flight together; causality is a matter of where the row's visible part ends.
//
//   KeptScores   a boolean mask or none; scales above 0
//   AddedScores  an additive mask of x's type, for wide rows
//
// scale_mask/formed.cuh has the others.
//
// Each has
//   Element, kInputs, Raw<N>        what is read, as for a row algorithm (rows/row.cuh)
//   IsAligned(head); Raw<N> Load<kAccess, N>(col), where col is visible, of the row at hand
//   Held<N> Open(Raw<N>, left)      what waits in registers, `left` columns before what is hidden
//   kBase2                          whether scores are exponents of 2: `scale` has log2(e) in it,
//                                   which the small range of float16 allows
//   kClusters                       whether blocks of a cluster may hold a row in registers
//   C Max(Held<N>)                  the largest score
//   Pack<C, N> Less(Held<N>, max)   the scores less max
#pragma once

#include "primitive/cuda/rows/keep.cuh"
#include "primitive/cuda/scale_mask/rows.cuh"
#include "primitive/cuda/softmax/math.cuh"

namespace oneflow_lite {
namespace cuda {

template <class T>
__device__ __forceinline__ T LowestOf() {
  return ConvertTo<T>(MinusInfinity<ComputeType<T>>());
}

template <class T>
struct KeptScores : MaskedRows<T, uint32_t> {
  using Base = MaskedRows<T, uint32_t>;
  using Element = T;
  using C = ComputeType<T>;
  static constexpr int kInputs = 2;
  static constexpr bool kBase2 = std::is_same_v<T, __half>;
  static constexpr bool kClusters = true;

  __device__ __forceinline__ KeptScores At(int64_t row) const { return {Base::At(row)}; }
  template <int N>
  struct Raw {
    Pack<T, N> input[kInputs];  // x; the mask's N bytes, repeated
  };
  template <Access kAccess, int N>
  __device__ __forceinline__ Raw<N> Load(int64_t col) const {
    Raw<N> raw;
    raw.input[0] = Base::template Load<kAccess, N>(col);
    const auto keep = LoadKeep<kAccess, N>(reinterpret_cast<const bool*>(this->mask), col,
                                           this->where.col_stride, this->mask != nullptr);
    // Over and over, so that no word of the pack is undefined: those would take registers.
    constexpr int kWords = static_cast<int>((sizeof(raw.input[1]) + 3) / 4);
    uint32_t words[kWords];
#pragma unroll
    for (int w = 0; w < kWords; ++w) words[w] = keep.words[w % Keep<N>::kWords];
    memcpy(&raw.input[1], words, sizeof(raw.input[1]));
    return raw;
  }
  template <int N>
  struct Held {
    StowedPack<T, N> x;  // -inf where it is hidden
  };
  template <int N>
  __device__ __forceinline__ Held<N> Open(const Raw<N>& raw, typename Base::Column left) const {
    Keep<N> keep;
    memcpy(keep.words, &raw.input[1], N);
    if (left < N) keep.HideFrom(left);
    return {StowedPack<T, N>::Of(Kept(raw.input[0], keep, LowestOf<T>()))};
  }
  template <int N>
  __device__ __forceinline__ C Max(const Held<N>& held) const {
    return MaxOf<C>(held.x.Get()) * this->scale;
  }
  template <int N>
  __device__ __forceinline__ Pack<C, N> Less(const Held<N>& held, C max) const {
    Pack<C, N> v = ConvertPack<C>(held.x.Get());
#pragma unroll
    for (C& e : v.v) e = e * this->scale - max;
    return v;
  }
};

// x + mask, once both are in the compute type.
template <class T>
struct AddedScores : MaskedRows<T, uint32_t> {
  using Base = MaskedRows<T, uint32_t>;
  using Element = T;
  using C = ComputeType<T>;
  static constexpr int kInputs = 2;
  static constexpr bool kBase2 = false;
  static constexpr bool kClusters = false;

  __device__ __forceinline__ AddedScores At(int64_t row) const { return {Base::At(row)}; }
  template <int N>
  struct Raw {
    Pack<T, N> input[kInputs];  // x, mask
  };
  template <Access kAccess, int N>
  __device__ __forceinline__ Raw<N> Load(int64_t col) const {
    return {
        {Base::template Load<kAccess, N>(col),
         LoadBroadcast<kAccess, N>(reinterpret_cast<const T*>(this->mask), this->where, 0, col)}};
  }
  template <int N>
  struct Held {
    StowedPack<T, N> x, mask;
  };
  template <int N>
  __device__ __forceinline__ Held<N> Open(const Raw<N>& raw, typename Base::Column left) const {
    Held<N> held{StowedPack<T, N>::Of(raw.input[0]), StowedPack<T, N>::Of(raw.input[1])};
    if (left < N) {
      HideFrom(held.x, left, ConvertTo<T>(0.0f));
      HideFrom(held.mask, left, LowestOf<T>());
    }
    return held;
  }
  template <int N>
  __device__ __forceinline__ Pack<C, N> Less(const Held<N>& held, C max) const {
    Pack<C, N> v = ConvertPack<C>(held.x.Get());
    const Pack<C, N> mask = ConvertPack<C>(held.mask.Get());
#pragma unroll
    for (int i = 0; i < N; ++i) v.v[i] = (v.v[i] * this->scale + mask.v[i]) - max;
    return v;
  }
  template <int N>
  __device__ __forceinline__ C Max(const Held<N>& held) const {
    return MaxOf<C>(Less(held, C(0)));
  }
};

}  // namespace cuda
}  // namespace oneflow_lite
