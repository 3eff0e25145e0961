// SPDX-License-Identifier: Apache-2.0
//
// scale_mask_softmax and its gradient as algorithms of own_columns.cuh: as
// primitive/cuda/scale_mask has them, of rows that are loaded as they lie, and stored by own packs.
#pragma once

#include "primitive/cuda/scale_mask/backward.cuh"
#include "primitive/cuda/scale_mask/formed.cuh"
#include "python/torch/invariant/own_columns.cuh"

namespace oneflow_lite {
namespace cuda {

// Of fewer than 2^31 rows. Store: a KeepingStore, or an ImageStore. kMasked: whether there may be a
// mask: to ask for every pack costs 16384 x 769 of bfloat16 6 %.
template <class T, class Store_ = KeepingStore<T>, bool kMasked = true>
struct OwnMaskRow : LateMaskRow<T> {
  using Base = LateMaskRow<T>;
  using Base::rows;
  using typename Base::C, typename Base::Total;
  static constexpr unsigned kOffers = Base::kOffers | RowOffers::kShifts;
  template <int N>
  using Raw = typename Base::template Raw<N>;
  template <int N>
  using Value = typename Base::template Value<N>;

  Store_ store;

  __device__ __forceinline__ OwnMaskRow At(int64_t row) const {
    return {Base::At(row), store.At(row)};
  }
  __device__ __forceinline__ int Head(int64_t) const { return 0; }
  __device__ __forceinline__ WordFrame Frame(int, int64_t, int64_t col) const {
    return WordFrame::Of(rows.x + col);
  }
  template <int N>
  __device__ __forceinline__ Value<N> Open(const Raw<N>& raw, bool present, int64_t col,
                                           const Total& total) const {
    if constexpr (kMasked) return Base::template Open<N>(raw, present, col, total);
    if (!present) return {};
    Pack<C, N> scores = ConvertPack<C>(raw.input[0]);
    return Base::Base::template Open<N>({{scores *= rows.scale}}, true, col, total);
  }
  template <int N>
  __device__ __forceinline__ void Store(int64_t row, int64_t col, Value<N> value,
                                        const Total& total) const {
#pragma unroll
    for (C& v : value.v) v *= total.gain;
    store.template Store<N>(row, col, value);
  }
};

// Scores are held in the compute type.
template <class T, class Store, bool kMasked, bool kCluster>
struct ShiftedShape<OwnMaskRow<T, Store, kMasked>, kCluster, void> {
  static constexpr int kBytes = sizeof(T);
  static constexpr int kPacks = kBytes == 4 ? (kCluster ? 8 : 6) : 4;
  static constexpr int kThreads = 384, kBlocks = 2;  // per SM
};
template <class T, class Store, bool kMasked>
inline constexpr int kMostOfWarp<OwnMaskRow<T, Store, kMasked>> = sizeof(T) == 8 ? 128 : 256;

template <class T>
struct OwnMaskBackwardRow : ScaleMaskBackwardRow<T> {
  using Base = ScaleMaskBackwardRow<T>;
  using typename Base::C;
  using typename Base::Total;
  static constexpr unsigned kOffers = Base::kOffers | RowOffers::kShifts;
  template <int N>
  using Value = typename Base::template Value<N>;

  KeepingStore<T> store;

  __device__ __forceinline__ OwnMaskBackwardRow At(int64_t row) const {
    return {Base::At(row), store.At(row)};
  }
  __device__ __forceinline__ int Head(int64_t) const { return 0; }
  using Base::Frame;
  template <int N>
  __device__ __forceinline__ void Store(int64_t row, int64_t col, const Value<N>& value,
                                        const Total& total) const {
    const int left = VisibleOf<N>(total.visible, col);
    const Pack<C, N> y = ConvertPack<C>(value.y.Get()), dy = ConvertPack<C>(value.dy.Get());
    Pack<C, N> v;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      v.v[i] = i < left ? this->scale * y.v[i] * (dy.v[i] - total.sum) : C(0);
    }
    store.template Store<N>(row, col, v);
  }
};

// The same for own_staged.cuh.
template <class T>
struct StagedMaskRow : OwnMaskRow<T, ImageStore<T>> {
  using Base = OwnMaskRow<T, ImageStore<T>>;
  using typename Base::C, typename Base::Statistics, typename Base::Total;
  template <int N>
  using Raw = typename Base::template Raw<N>;

  __device__ __forceinline__ StagedMaskRow At(int64_t row) const { return {Base::At(row)}; }
  template <int N>
  __device__ __forceinline__ void Add(const Raw<N>& raw, int64_t col, const Total& start,
                                      Statistics& s) const {
    s.Add(Base::template Open<N>(raw, true, col, start));
  }
  template <int N>
  __device__ __forceinline__ void StoreRaw(int64_t row, int64_t col, const Raw<N>& raw,
                                           const Total& total) const {
    Pack<C, N> v = FilledPack<N>(MinusInfinity<C>());
    if (col < total.visible) v = Base::template Open<N>(raw, true, col, total);
#pragma unroll
    for (C& e : v.v) e = ExpNonPositive(e - total.max) * total.gain;
    this->store.template Store<N>(row, col, v);
  }
};
template <class T>
struct StagedMaskBackwardRow : ScaleMaskBackwardRow<T> {
  using Base = ScaleMaskBackwardRow<T>;
  __host__ __device__ explicit StagedMaskBackwardRow(const Base& row) : Base(row) {}
  __device__ __forceinline__ StagedMaskBackwardRow At(int64_t row) const {
    return StagedMaskBackwardRow(Base::At(row));
  }
  using Base::Frame;
};

}  // namespace cuda
}  // namespace oneflow_lite
