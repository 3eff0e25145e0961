// SPDX-License-Identifier: Apache-2.0
//
// scale_mask_softmax and its gradient as algorithms of own_columns.cuh: as
// primitive/cuda/scale_mask has them, of rows that are loaded as they lie, and stored by own packs.
#pragma once

#include "primitive/cuda/scale_mask/backward.cuh"
#include "primitive/cuda/scale_mask/formed.cuh"
#include "primitive/cuda/scale_mask/forward.cuh"
#include "primitive/cuda/scale_mask/scale_mask_softmax.cuh"
#include "python/torch/invariant/own_columns.cuh"

namespace oneflow_lite {
namespace cuda {

// When a mask is applied: to the words in which a row lies, as they are loaded, so that what is
// shifted to the row's own packs has none any more, or to own packs when they are opened. kHides: a
// boolean mask with a scale above 0; what it hides becomes -inf. kScores: words become scores, of
// their own type. kLate: 16-bit elements would need room for scores twice.
enum class MaskWay { kNone, kHides, kScores, kLate };
template <class T>
inline constexpr MaskWay kOtherMasks = sizeof(T) == 2 ? MaskWay::kLate : MaskWay::kScores;

// Of fewer than 2^31 rows. Store: a KeepingStore, or an ImageStore. Narrow rows under a mask are
// LaunchMaskedColumns's.
template <class T, MaskWay kWay, class Store_ = KeepingStore<T>>
struct OwnMaskRow : LateMaskRow<T> {
  using Base = LateMaskRow<T>;
  using Base::rows;
  using typename Base::C, typename Base::Total;
  static constexpr bool kOfWarps = kWay == MaskWay::kNone && sizeof(T) == 2;
  static constexpr unsigned kOffers =
      Base::kOffers | RowOffers::kShifts | (kOfWarps ? 0u : RowOffers::kOnlyWide);
  template <int N>
  using Raw = typename Base::template Raw<N>;
  template <int N>
  using Value = typename Base::template Value<N>;

  Store_ store;

  __device__ __forceinline__ OwnMaskRow At(int64_t row) const {
    return {Base::At(row), store.At(rows.tiles.RowOf(row))};
  }
  __device__ __forceinline__ int Head(int64_t) const { return 0; }
  __device__ __forceinline__ WordFrame Frame(int, int64_t, int64_t col) const {
    return WordFrame::Of(rows.x + col);
  }
  // Columns outside packs come without their mask.
  template <int N>
  __device__ __forceinline__ Value<N> Open(const Raw<N>& raw, bool present, int64_t col,
                                           const Total& total) const {
    if constexpr (kWay == MaskWay::kLate || (kWay != MaskWay::kNone && N == 1)) {
      return Base::template Open<N>(raw, present, col, total);
    } else {
      if (!present) return {};
      Pack<C, N> scores = ConvertPack<C>(raw.input[0]);
      if (kWay != MaskWay::kScores) scores *= rows.scale;
      return Base::Base::template Open<N>({{scores}}, true, col, total);
    }
  }
  template <int N>
  __device__ __forceinline__ void Store(int64_t row, int64_t col, Value<N> value,
                                        const Total& total) const {
#pragma unroll
    for (C& v : value.v) v *= total.gain;
    store.template Store<N>(row, col, value);
  }
};

namespace internal {

// The words of such a row under its mask. Those behind the columns seen are not read.
template <int kPacks, class T, MaskWay kWay>
struct MaskedWords : ShiftedWords<kPacks, OwnMaskRow<T, kWay>> {
  using Base = ShiftedWords<kPacks, OwnMaskRow<T, kWay>>;
  using Base::words, Base::past, Base::N;
  using Loader = std::conditional_t<kWay == MaskWay::kHides, ScaleMaskRow<T, false>,
                                    FormedMaskRow<T, uint32_t, false>>;

  __device__ __forceinline__ void Load(const OwnMaskRow<T, kWay>& a, int64_t, int64_t col,
                                       const Places& places, int end) {
    past[0] = BytesPastBoundary(a.rows.x + col);
    const int64_t at = col - static_cast<int>(past[0] / sizeof(T));  // of the lane's first word
    const int64_t seen = places.first + (a.rows.Visible() - at + N - 1) / N;
    const Places read{places.first, kWarp, seen <= end ? static_cast<int>(seen) : end + 1, 0};
    StowedRaw<Loader> stowed[kPacks + 1];
    Loader{a.rows}.LoadPacks(at, read, stowed);
#pragma unroll
    for (int k = 0; k <= kPacks; ++k) memcpy(words[0][k], &stowed[k], sizeof(words[0][k]));
  }
};
template <int kPacks, int kAsked, class T>
struct ShiftedWords<kPacks, ByWords<kPacks, kAsked, OwnMaskRow<T, MaskWay::kHides>>>
    : MaskedWords<kPacks, T, MaskWay::kHides> {};
template <int kPacks, int kAsked, class T>
struct ShiftedWords<kPacks, ByWords<kPacks, kAsked, OwnMaskRow<T, MaskWay::kScores>>>
    : MaskedWords<kPacks, T, MaskWay::kScores> {};

}  // namespace internal

// Narrow rows go column by column, as the default has them: 16-bit ones up to more columns, because
// their packs would have to be shifted.
inline constexpr int kMostPlainColumns = 416, kMostMaskedColumns = 1088;
template <class T>
cudaError_t LaunchMaskedColumns(const MaskedRows<T, uint32_t>& rows, const RowCall& call) {
  if constexpr (sizeof(T) == 2) {
    if (call.cols > ScaleMaskPolicy::kColumns<T>) {
      return VisitShapes<GroupShape<32, 7>, GroupShape<32, 13>, GroupShape<32, 20>,
                         GroupShape<32, 26>, GroupShape<32, 34>>(call.cols, [&](auto shape) {
        constexpr int kColumns = decltype(shape)::packs;
        return internal::LaunchRowGroups<kWarp>(MaskedColumnsKernel<kWarp, kColumns, T>, call, rows,
                                                call.rows, static_cast<int>(call.cols));
      });
    }
  }
  return internal::LaunchColumnByColumn(rows, call);
}

// Scores are held in the compute type. Masks want registers: 6 packs of float32 with theirs spill.
template <class T, MaskWay kWay, class Store, bool kCluster>
struct ShiftedShape<OwnMaskRow<T, kWay, Store>, kCluster, void> {
  static constexpr bool kMany = sizeof(T) == 4 && kWay != MaskWay::kScores;
  static constexpr int kPacks = kMany ? 6 : 4;
  static constexpr int kThreads = 384, kBlocks = 2;  // per SM
};
template <class T, class Store>
inline constexpr int kMostOfWarp<OwnMaskRow<T, MaskWay::kNone, Store>> = 256;

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

// The same for own_staged.cuh: masks are applied, but for late ones, when an own pack is put into
// its place.
template <class T, MaskWay kWay>
struct StagedMaskRow : OwnMaskRow<T, kWay, ImageStore<T>> {
  using Base = OwnMaskRow<T, kWay, ImageStore<T>>;
  using Base::rows;
  using typename Base::C, typename Base::Statistics, typename Base::Total;
  template <int N>
  using Raw = typename Base::template Raw<N>;

  __device__ __forceinline__ StagedMaskRow At(int64_t row) const { return {Base::At(row)}; }
  template <int N>
  __device__ __forceinline__ Raw<N> Prepared(const Raw<N>& raw, int64_t col) const {
    if constexpr (kWay == MaskWay::kHides) {
      const auto* const mask = reinterpret_cast<const bool*>(rows.mask);
      const int64_t stride = rows.where.col_stride;
      const bool inside = stride == 1 && col >= N && col + 2 * N <= rows.cols;
      const auto keep = inside ? LoadKeep<Access::kInside, N>(mask, col, 1, true)
                               : LoadKeep<Access::kAny, N>(mask, col, stride, true);
      return {{Kept(raw.input[0], keep, ConvertTo<T>(MinusInfinity<C>()))}};
    } else if constexpr (kWay == MaskWay::kScores) {
      return {{Base::Scores(raw.input[0], col)}};
    } else {
      return raw;
    }
  }
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
