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

// When a mask is applied. kHides: a boolean mask with a scale above 0, whose columns are
// neighbours: what it hides becomes -inf before a pack is opened. kBeside: an additive mask of x's
// own 16 bits, whose columns are neighbours, is shifted to own packs as x is. kScores: the words in
// which a row lies become scores, of their own type, as they are loaded. kLate: 16-bit elements
// would need room for scores twice, so a mask is read column by column when an own pack is opened.
enum class MaskWay { kNone, kHides, kBeside, kScores, kLate };
template <class T>
inline constexpr MaskWay kOtherMasks = sizeof(T) == 2 ? MaskWay::kLate : MaskWay::kScores;

// Of fewer than 2^31 rows. Store: a KeepingStore, or an ImageStore. Narrow rows under a mask are
// LaunchMaskedColumns's.
template <class T, MaskWay kWay, class Store_ = KeepingStore<T>>
struct OwnMaskRow : LateMaskRow<T> {
  using Base = LateMaskRow<T>;
  using Base::rows;
  using typename Base::C, typename Base::Total;
  static constexpr bool kOfWarps = sizeof(T) == 2;
  static constexpr int kInputs = kWay == MaskWay::kBeside ? 2 : 1;
  static constexpr unsigned kOffers =
      Base::kOffers | RowOffers::kShifts | (kOfWarps ? 0u : RowOffers::kOnlyWide);
  template <int N>
  using Raw = RawPacks<T, kInputs, N>;
  template <int N>
  using Value = typename Base::template Value<N>;

  Store_ store;

  __device__ __forceinline__ OwnMaskRow At(int64_t row) const {
    return {Base::At(row), store.At(rows.tiles.RowOf(row))};
  }
  __device__ __forceinline__ int Head(int64_t) const { return 0; }
  __device__ __forceinline__ const T* Input(int i) const {
    return i == 0 ? rows.x : reinterpret_cast<const T*>(rows.mask);
  }
  __device__ __forceinline__ WordFrame Frame(int i, int64_t, int64_t col) const {
    return WordFrame::Of(Input(i) + col);
  }
  template <Access kAccess, int N>
  __device__ __forceinline__ Raw<N> Load(int64_t, int64_t col) const {
    Raw<N> raw;
#pragma unroll
    for (int i = 0; i < kInputs; ++i) {
      raw.input[i] = LoadFrom<kAccess, N>(DirectLoad<T>{Input(i), 0}, 0, col);
    }
    return raw;
  }
  // Columns outside packs come without their mask.
  template <int N>
  __device__ __forceinline__ Value<N> Open(const Raw<N>& raw, bool present, int64_t col,
                                           const Total& total) const {
    if constexpr (kWay == MaskWay::kBeside) {
      if (!present) return {};
      Pack<C, N> scores = ConvertPack<C>(raw.input[0]);
      const Pack<C, N> mask = ConvertPack<C>(raw.input[1]);
#pragma unroll
      for (int i = 0; i < N; ++i) scores.v[i] = scores.v[i] * rows.scale + mask.v[i];
      return Base::Base::template Open<N>({{scores}}, true, col, total);
    } else if constexpr (kWay == MaskWay::kLate || (kWay != MaskWay::kNone && N == 1)) {
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

// A lane's words of a row from column `at` on: how many of them, of which `end` + 1 are there, are
// not behind the columns seen.
template <int N, class Rows>
__device__ __forceinline__ int WordsSeen(const Rows& rows, const Places& places, int64_t at,
                                         int end) {
  const int64_t seen = places.first + (rows.Visible() - at + N - 1) / N;
  return seen <= end ? static_cast<int>(seen) : end + 1;
}

// The words of a row under its mask.
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
    const Places read{places.first, kWarp, WordsSeen<N>(a.rows, places, at, end), 0};
    StowedRaw<Loader> stowed[kPacks + 1];
    Loader{a.rows}.LoadPacks(at, read, stowed);
#pragma unroll
    for (int k = 0; k <= kPacks; ++k) memcpy(words[0][k], &stowed[k], sizeof(words[0][k]));
  }
};

// The same of 16 bits under a boolean mask, whose words of a byte per column are on their way
// beside them. Where these begin as x's do, a mask is applied before words are shifted; else they
// are shifted, too.
template <int kPacks, class T>
struct HiddenWords : ShiftedWords<kPacks, OwnMaskRow<T, MaskWay::kHides>> {
  using Base = ShiftedWords<kPacks, OwnMaskRow<T, MaskWay::kHides>>;
  using Base::words, Base::past, Base::N;
  static_assert(N == 8);
  uint2 mask[kPacks + 1];
  bool alike;      // words of the mask go with those of x, else with own packs
  unsigned ahead;  // of a word's bytes, those that belong to the pack in front

  __device__ __forceinline__ void Load(const OwnMaskRow<T, MaskWay::kHides>& a, int64_t row,
                                       int64_t col, const Places& places, int end) {
    const WordFrame frame = a.Frame(0, row, col);
    past[0] = frame.past;
    const int before = static_cast<int>(frame.past / sizeof(T));
    const char* const own = a.rows.mask + col;
    alike = reinterpret_cast<uintptr_t>(own - before) % N == 0;
    ahead = alike ? 0 : static_cast<unsigned>(reinterpret_cast<uintptr_t>(own) % N);
    const auto* const from = reinterpret_cast<const uint2*>(own - (alike ? before : ahead));
    const int stop = WordsSeen<N>(a.rows, places, col - before, end);
#pragma unroll
    for (int k = 0; k <= kPacks; ++k) {
      if (places.at(k) >= stop) continue;
      const uint4 word = frame.words[k * kWarp];
      memcpy(words[0][k], &word, sizeof(word));
      mask[k] = from[k * kWarp];
    }
  }
  __device__ __forceinline__ void Shift() {
    if (alike) Hide<kPacks + 1>();
    Base::Shift();
    if (alike) return;
    if (ahead != 0) ShiftMask();
    Hide<kPacks>();
  }

 private:
  template <int kCount>
  __device__ __forceinline__ void Hide() {
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      Pack<T, N> x;
      Keep<N> keep = {};
      memcpy(&x, words[0][k], sizeof(x));
      memcpy(&keep, &mask[k], sizeof(mask[k]));
      x = Kept(x, keep, ConvertTo<T>(MinusInfinity<ComputeType<T>>()));
      memcpy(words[0][k], &x, sizeof(x));
    }
  }
  // As ShiftWords.
  __device__ __forceinline__ void ShiftMask() {
    const int lane = threadIdx.x % kWarp;
    const bool second = ahead >= 4;
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      const uint2 first = lane == 0 ? mask[k + 1] : mask[k];
      const uint32_t v[] = {mask[k].x, mask[k].y, __shfl_sync(0xffffffffu, first.x, lane + 1),
                            __shfl_sync(0xffffffffu, first.y, lane + 1)};
      mask[k].x = __funnelshift_r(second ? v[1] : v[0], second ? v[2] : v[1], 8 * ahead);
      mask[k].y = __funnelshift_r(second ? v[2] : v[1], second ? v[3] : v[2], 8 * ahead);
    }
  }
};
template <int kPacks, int kAsked, class T>
struct ShiftedWords<kPacks, ByWords<kPacks, kAsked, OwnMaskRow<T, MaskWay::kHides>>>
    : std::conditional_t<sizeof(T) == 2, HiddenWords<kPacks, T>,
                         MaskedWords<kPacks, T, MaskWay::kHides>> {};
template <int kPacks, int kAsked, class T>
struct ShiftedWords<kPacks, ByWords<kPacks, kAsked, OwnMaskRow<T, MaskWay::kScores>>>
    : MaskedWords<kPacks, T, MaskWay::kScores> {};

}  // namespace internal

// Narrow rows go column by column, as the default has them: 16-bit ones up to more columns, because
// their packs would have to be shifted.
inline constexpr int kMostShortColumns = 416, kMostMaskedColumns = 1088;
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
template <class T>
struct OwnTopShape<OwnMaskRow<T, MaskWay::kBeside>> {
  static constexpr bool kServes = false;
};
template <MaskWay kWay>
struct OwnTopShape<OwnMaskRow<double, kWay>> {
  static constexpr bool kServes = true;
  using Shape = OwnShape<8, 256, 2>;
  static constexpr int64_t kAbove = 1024, kMost = Shape::kPacks * Shape::kThreads;
};
template <class T, MaskWay kWay, class Store>
inline constexpr int kMostOfWarp<OwnMaskRow<T, kWay, Store>> = 256;

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
  static constexpr unsigned kOffers = Base::kOffers | RowOffers::kPrepares;
  template <int N>
  using Raw = typename Base::template Raw<N>;

  __device__ __forceinline__ StagedMaskRow At(int64_t row) const { return {Base::At(row)}; }
  // What is asked of a mask ahead of the own pack that it goes with.
  static constexpr bool kHides = kWay == MaskWay::kHides;
  template <int N>
  using Asked = std::conditional_t<kHides, KeepWords<N>, internal::NothingAsked>;
  template <int N>
  __device__ __forceinline__ Asked<N> Ask(int64_t col) const {
    Asked<N> asked = {};
    if constexpr (kHides) {
      const auto* const mask = reinterpret_cast<const bool*>(rows.mask);
      if (col >= N && col + 2 * N <= rows.cols) {
        asked.template Load<false>(mask + col, true);
      } else {
        const auto keep = LoadKeep<Access::kAny, N>(mask, col, 1, true);
        memcpy(&asked.low, &keep, sizeof(asked.low));
      }
    }
    return asked;
  }
  template <int N>
  __device__ __forceinline__ Raw<N> Prepared(const Raw<N>& raw, int64_t col,
                                             const Asked<N>& asked) const {
    if constexpr (kHides) {
      return {{Kept(raw.input[0], asked.Get(), ConvertTo<T>(MinusInfinity<C>()))}};
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
