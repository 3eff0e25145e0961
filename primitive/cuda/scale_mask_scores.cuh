// SPDX-License-Identifier: Apache-2.0
//
// The scores of scale_mask_softmax.cuh, scale * x + mask, by kind of mask. What is read waits on
// chip as it lies in memory and is combined where it is first used, so that all loads of a row are
// in flight together; causality is a matter of where the row's visible part ends.
//
//   KeptScores   a boolean mask or none; scales above 0
//   AddedScores  an additive mask of x's type
//   AnyScores    everything, also float32 over 16-bit x; formed as they are loaded
//
// Each has
//   Element, kInputs, Raw<N>        what is read, as for a row algorithm (row.cuh)
//   IsAligned(row, head); Raw<N> Load<kAccess, N>(row, col), where col is visible
//   Held<N> Open(Raw<N>, left)      what waits in registers, `left` columns before what is hidden
//   kBase2                          whether scores are exponents of 2: `scale` has log2(e) in it,
//                                   which the small range of float16 allows
//   kClusters                       whether blocks of a cluster may hold a row in registers
//   C Max(Held<N>)                  the largest score
//   Pack<C, N> Less(Held<N>, max)   the scores less max
#pragma once

#include "primitive/cuda/row_keep.cuh"
#include "primitive/cuda/softmax_math.cuh"

namespace oneflow_lite {
namespace cuda {

// x and its mask in memory.
template <class T, class M, class Index>
struct MaskedRows {
  using Column = std::conditional_t<sizeof(Index) == 4, int32_t, int64_t>;  // how far columns reach
  const T* x;
  int64_t row_stride;
  const M* mask;         // may be null
  bool mask_is_aligned;  // to packs, in every row
  ComputeType<T> scale;
  CausalRows<Index> causal;
  RowBroadcast<Index> where;

  __device__ __forceinline__ bool IsAligned(int64_t row, int64_t head) const {
    // Where masks are aligned to x's packs, heads are 0.
    return IsAlignedFor<uint4>(x + row * row_stride + head) &&
           (!mask || (mask_is_aligned && head == 0));
  }
  // The same for this row alone, with its addresses worked out.
  __device__ __forceinline__ MaskedRows At(int64_t row) const {
    MaskedRows here = *this;
    here.x += row * row_stride;
    here.row_stride = 0;
    here.causal = causal.At(row);
    if constexpr (!std::is_void_v<M>) {
      if (mask) here.mask += where.Offset(row);
      here.where = where.Begun();
    }
    return here;
  }
  template <Access kAccess, int N>
  __device__ __forceinline__ Pack<T, N> Load(int64_t row, int64_t col) const {
    return LoadFrom<kAccess, N>(DirectLoad<T>{x, row_stride}, row, col);
  }
};

template <class T>
__device__ __forceinline__ T LowestOf() {
  return ConvertTo<T>(MinusInfinity<ComputeType<T>>());
}

template <class T, class Index>
struct KeptScores : MaskedRows<T, bool, Index> {
  using Base = MaskedRows<T, bool, Index>;
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
  __device__ __forceinline__ Raw<N> Load(int64_t row, int64_t col) const {
    Raw<N> raw;
    raw.input[0] = Base::template Load<kAccess, N>(row, col);
    const bool* p = this->mask + this->where.Offset(row);
    const auto keep = LoadKeep<kAccess, N>(p, col, this->where.col_stride, this->mask != nullptr);
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
template <class T, class Index>
struct AddedScores : MaskedRows<T, T, Index> {
  using Base = MaskedRows<T, T, Index>;
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
  __device__ __forceinline__ Raw<N> Load(int64_t row, int64_t col) const {
    return {{Base::template Load<kAccess, N>(row, col),
             LoadBroadcast<kAccess, N>(this->mask, this->where, row, col)}};
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

enum class MaskType { kBool, kOwn, kWide };  // of x's own type; of the compute type

template <class T>
struct AnyScores : MaskedRows<T, void, uint64_t> {
  using Base = MaskedRows<T, void, uint64_t>;
  using C = ComputeType<T>;
  using Element = C;
  static constexpr int kInputs = 1;
  static constexpr bool kBase2 = false;
  static constexpr bool kClusters = false;
  MaskType type;

  __device__ __forceinline__ AnyScores At(int64_t row) const { return {Base::At(row), type}; }
  __device__ __forceinline__ bool IsAligned(int64_t row, int64_t head) const {
    return IsAlignedFor<uint4>(this->x + row * this->row_stride + head);
  }
  template <int N>
  struct Raw {
    Pack<C, N> input[kInputs];  // scores
  };
  template <Access kAccess, int N>
  __device__ __forceinline__ Raw<N> Load(int64_t row, int64_t col) const {
    const int64_t left = this->causal.Visible(row) - col;
    auto v = ConvertPack<C>(Base::template Load<kAccess, N>(row, col));
    const auto mask = LoadMask<N>(row, col);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const C bias = i < left ? mask.v[i] : MinusInfinity<C>();
      // Not a sum: the scale may have made an infinity or a NaN of what is hidden.
      v.v[i] = bias == MinusInfinity<C>() && (i >= left || type == MaskType::kBool)
                   ? bias
                   : v.v[i] * this->scale + bias;
    }
    return {{v}};
  }
  template <int N>
  using Held = Pack<C, N>;
  template <int N>
  __device__ __forceinline__ Held<N> Open(const Raw<N>& raw, typename Base::Column) const {
    return raw.input[0];
  }
  template <int N>
  __device__ __forceinline__ Pack<C, N> Less(Pack<C, N> held, C max) const {
#pragma unroll
    for (C& e : held.v) e -= max;
    return held;
  }
  template <int N>
  __device__ __forceinline__ C Max(const Pack<C, N>& held) const {
    return MaxOf<C>(held);
  }

 private:
  template <int N>
  __device__ __forceinline__ Pack<C, N> LoadMask(int64_t row, int64_t col) const {
    Pack<C, N> bias = FilledPack<N>(C(0));
    if (!this->mask) return bias;
    const int64_t stride = this->where.col_stride, at = this->where.Offset(row) + col * stride;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const int64_t e = at + i * stride;
      if (type == MaskType::kBool) {
        bias.v[i] = static_cast<const bool*>(this->mask)[e] ? C(0) : MinusInfinity<C>();
      } else if (type == MaskType::kOwn) {
        bias.v[i] = ConvertTo<C>(static_cast<const T*>(this->mask)[e]);
      } else {
        bias.v[i] = static_cast<const C*>(this->mask)[e];
      }
    }
    return bias;
  }
};

}  // namespace cuda
}  // namespace oneflow_lite
