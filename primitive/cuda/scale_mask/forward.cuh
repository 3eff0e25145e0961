// SPDX-License-Identifier: Apache-2.0
//
// softmax(scale * x + mask) under a boolean mask or none, of scales above 0, as an algorithm of the
// row kernels (rows/row.cuh). x waits on chip as it lies in memory, -inf where it is hidden, so
// that all loads of a row are in flight together; causality is a matter of where the row's visible
// part ends. scale_mask/formed.cuh has the other masks.
#pragma once

#include "primitive/cuda/rows/masks.cuh"
#include "primitive/cuda/scale_mask/rows.cuh"
#include "primitive/cuda/softmax/math.cuh"

namespace oneflow_lite::cuda {

namespace internal {

template <class C, int N>
struct KeptExponentials {
  Pack<C, N> exponentials;
};
template <class C>
struct KeptExponentials<C, 0> {};

}  // namespace internal

template <class T>
struct KeptMaskRow {
  using Element = T;
  using Output = T;
  using C = ComputeType<T>;
  using Rows = MaskedRows<T, uint32_t>;
  using Column = typename Rows::Column;
  static constexpr int kPack = kPackSize<T>, kInputs = 2;
  // Narrow rows are rows/whole.cuh's.
  static constexpr unsigned kOffers = RowOffers::kAt | RowOffers::kSeen | RowOffers::kOnlyWide;
  // Whether scores are exponents of 2: the small range of float16 allows a scale with log2(e) in
  // it.
  static constexpr bool kBase2 = std::is_same_v<T, __half>;

  using Statistics = OnlineSum<C, kBase2>;
  using Merge = MergeOnline;

  Rows rows;

  __host__ static KeptMaskRow Of(Rows rows) {
    if (kBase2) rows.scale *= kLog2E;
    return {rows};
  }
  template <int N>
  struct Raw {
    Pack<T, N> input[kInputs];  // x; the mask's N bytes, repeated
  };
  struct Total {
    Column visible = 0;  // columns
    C max = 0;           // of the scores, or 0 where they are all -inf
    C sum = 0;           // of the exponentials of the scores less max
    C gain = 0;          // see Conclude
  };

  __device__ __forceinline__ KeptMaskRow At(int64_t row) const { return {rows.At(row)}; }
  // Of the row at hand, as all that follows.
  __device__ __forceinline__ int64_t Seen(int64_t, int64_t) const { return rows.Visible(); }
  __device__ __forceinline__ int Head(int64_t row) const { return rows.y.Head(row); }
  __device__ __forceinline__ bool IsAligned(int64_t, int64_t head) const {
    return rows.IsAligned(head);
  }
  template <Access kAccess, int N>
  __device__ __forceinline__ Raw<N> Load(int64_t, int64_t col) const {
    Raw<N> raw;
    raw.input[0] = rows.template Load<kAccess, N>(col);
    const auto keep = LoadKeep<kAccess, N>(reinterpret_cast<const bool*>(rows.mask), col,
                                           rows.where.col_stride, rows.mask != nullptr);
    // Over and over, so that no word of the pack is undefined: those would take registers.
    constexpr int kWords = static_cast<int>((sizeof(raw.input[1]) + 3) / 4);
    uint32_t words[kWords];
#pragma unroll
    for (int w = 0; w < kWords; ++w) words[w] = keep.words[w % Keep<N>::kWords];
    memcpy(&raw.input[1], words, sizeof(raw.input[1]));
    return raw;
  }
  __device__ __forceinline__ Total Begin(int64_t) const {
    Total total;
    total.visible = rows.Visible();
    return total;
  }
  __device__ __forceinline__ void Look(int64_t, Total&) const {}
  __device__ __forceinline__ void End(int64_t, const Total&) const {}

  // In registers: what was read, and its exponentials where they take no more room; else they are
  // computed again when written. Packs of which nothing is visible are neither read nor visited.
  static constexpr bool kReplaced = sizeof(T) == sizeof(C);
  template <int N>
  struct Value : internal::KeptExponentials<C, kReplaced ? N : 0> {
    StowedPack<T, N> held;  // -inf where it is hidden
  };
  static constexpr int kRounds = 2, kMaxima = 1;
  static constexpr bool kClusterRegisters = true;
  template <int N>
  __device__ __forceinline__ Value<N> Open(const Raw<N>& raw, bool present, int64_t col,
                                           const Total& total) const {
    Value<N> value;
    value.held = Hidden(raw, present ? LeftOf(total, col) : N);
    return value;
  }
  template <int kRound, int N>
  __device__ __forceinline__ C Visit(Value<N>& value, bool present, const Total& total) const {
    if constexpr (kRound == 0) {
      return present ? ScoreOf(value.held) : MinusInfinity<C>();
    } else {
      auto e = FilledPack<N>(C(0));
      C sum = 0;
      if (present) {
        e = Exponentials(value.held, total);
#pragma unroll
        for (const C& v : e.v) sum += v;
      }
      if constexpr (kReplaced) value.exponentials = e;
      return sum;
    }
  }
  template <int kRound>
  __device__ __forceinline__ void Finish(C found, Total& total) const {
    if constexpr (kRound == 0) {
      total.max = Statistics::Finite(found);
    } else {
      Conclude({total.max, found}, total);
    }
  }
  // A part of nothing but -inf has the maximum 0 and the sum 0: it must not lead.
  static __device__ __forceinline__ Statistics Gathered(const Total& part) {
    return part.sum == C(0) ? Statistics{} : Statistics{part.max, part.sum};
  }
  __device__ __forceinline__ void Rebase(const Statistics& row, Total& total) const {
    const C max = total.max, sum = total.sum;
    Conclude(row, total);
    // A part without any weight is 0 already, and its maximum is none.
    if (kReplaced && sum != C(0)) total.gain *= Statistics::Weight(max, total.max);
  }
  template <int N>
  __device__ __forceinline__ void Store(int64_t row, int64_t col, const Value<N>& value,
                                        const Total& total) const {
    if constexpr (kReplaced) {
      rows.y.template Store<N>(row, col, Times(value.exponentials, total.gain));
    } else {
      Write<N>(row, col, LeftOf(total, col) > 0, value.held, total);
    }
  }

  // Streamed: maximum and sum at once; scores and exponentials are formed again when written.
  template <int N>
  __device__ __forceinline__ void Add(const Raw<N>& raw, int64_t col, const Total& start,
                                      Statistics& s) const {
    const auto held = Hidden(raw, LeftOf(start, col));
    const C max = Larger{}(s.max, ScoreOf(held));
    Total total;
    total.max = Statistics::Finite(max);
    s.sum *= Statistics::Weight(s.max, total.max);
    s.max = max;
    C sum = 0;
#pragma unroll
    for (const C& v : Exponentials(held, total).v) sum += v;
    s.sum += sum;
  }
  // The result is exp(score - max) times the gain, or where nothing was replaced, in float32,
  // 2^((score - max) log2(e) + gain). Scores that are all -inf sum up to 0, which makes NaN of the
  // row unless it is to be 0.
  __device__ __forceinline__ void Conclude(const Statistics& row, Total& total) const {
    const bool is_zero = rows.zero_masked_rows && row.sum == C(0);
    total.max = Statistics::Finite(row.max);
    total.sum = row.sum;
    if constexpr (kReplaced) {
      total.gain = is_zero ? C(0) : C(1) / row.sum;
    } else {
      total.gain = is_zero ? MinusInfinity<C>() : -log2f(row.sum);
    }
  }
  template <int N>
  __device__ __forceinline__ void StoreRaw(int64_t row, int64_t col, const Raw<N>& raw,
                                           const Total& total) const {
    const Column left = LeftOf(total, col);
    Write<N>(row, col, left > 0, Hidden(raw, left), total);
  }

 private:
  static __device__ __forceinline__ Column LeftOf(const Total& total, int64_t col) {
    return total.visible - static_cast<Column>(col);
  }
  template <int N>
  static __device__ __forceinline__ Pack<C, N> Times(Pack<C, N> e, C gain) {
#pragma unroll
    for (C& v : e.v) v *= gain;
    return e;
  }
  // The words of x that wait, `left` columns before what is hidden.
  template <int N>
  static __device__ __forceinline__ StowedPack<T, N> Hidden(const Raw<N>& raw, Column left) {
    Keep<N> keep;
    memcpy(keep.words, &raw.input[1], N);
    if (left < N) keep.HideFrom(left);
    return StowedPack<T, N>::Of(Kept(raw.input[0], keep, ConvertTo<T>(MinusInfinity<C>())));
  }
  // The largest score.
  template <int N>
  __device__ __forceinline__ C ScoreOf(const StowedPack<T, N>& held) const {
    return MaxOf<C>(held.Get()) * rows.scale;
  }
  // The scores less max.
  template <int N>
  __device__ __forceinline__ Pack<C, N> Less(const StowedPack<T, N>& held, C max) const {
    Pack<C, N> v = ConvertPack<C>(held.Get());
#pragma unroll
    for (C& e : v.v) e = e * rows.scale - max;
    return v;
  }
  template <class Held>
  __device__ __forceinline__ auto Exponentials(const Held& held, const Total& total) const {
    auto e = Less(held, total.max);
#pragma unroll
    for (C& v : e.v) {
      if constexpr (kBase2) {
        v = Exp2(v);
      } else {
        v = ExpNonPositive(v);
      }
    }
    return e;
  }
  template <int N, class Held>
  __device__ __forceinline__ void Write(int64_t row, int64_t col, bool visible, const Held& held,
                                        const Total& total) const {
    if constexpr (kReplaced) {
      auto e = FilledPack<N>(C(0));
      if (visible) e = Exponentials(held, total);
      rows.y.template Store<N>(row, col, Times(e, total.gain));
    } else if (visible) {
      auto v = Less(held, kBase2 ? total.max - total.gain : total.max);
#pragma unroll
      for (C& e : v.v) e = Exp2(kBase2 ? e : fmaf(e, kLog2E, total.gain));
      rows.y.template Store<N>(row, col, v);
    } else {
      // Not a value of the same store: it would be merged as elements, not as words.
      rows.y.template Store<N>(row, col, FilledPack<N>(Exp2(MinusInfinity<C>() + total.gain)));
    }
  }
};

}  // namespace oneflow_lite::cuda
