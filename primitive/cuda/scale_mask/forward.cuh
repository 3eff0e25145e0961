// SPDX-License-Identifier: Apache-2.0
//
// The scores of scale_mask/scale_mask_softmax.cuh, scale * x + mask, by kind of mask. What is read
// waits on chip as it lies in memory and is combined where it is first used, so that all loads of a
// row are in flight together; causality is a matter of where the row's visible part ends.
//
//   KeptScores   a boolean mask or none; scales above 0
//   AddedScores  an additive mask of x's type, for wide rows
//
// Each (scale_mask/formed.cuh has the others) has
//   Element, kInputs, Raw<N>        what is read, as for a row algorithm (rows/row.cuh)
//   IsAligned(head); Raw<N> Load<kAccess, N>(col), where col is visible, of the row at hand
//   Held<N> Open(Raw<N>, left)      what waits in registers, `left` columns before what is hidden
//   kBase2                          whether scores are exponents of 2: `scale` has log2(e) in it,
//                                   which the small range of float16 allows
//   kClusters                       whether blocks of a cluster may hold a row in registers
//   C Max(Held<N>)                  the largest score
//   Pack<C, N> Less(Held<N>, max)   the scores less max
#pragma once

#include "primitive/cuda/rows/masks.cuh"
#include "primitive/cuda/scale_mask/rows.cuh"
#include "primitive/cuda/softmax/math.cuh"

namespace oneflow_lite::cuda {

template <class T>
OFL_DEVICE T LowestOf() {
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

  OFL_DEVICE KeptScores At(int64_t row) const { return {Base::At(row)}; }
  template <int N>
  using Raw = RawPacks<Element, kInputs, N>;  // x; the mask's N bytes, repeated
  template <Access kAccess, int N>
  OFL_DEVICE Raw<N> Load(int64_t col) const {
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
  OFL_DEVICE Held<N> Open(const Raw<N>& raw, typename Base::Column left) const {
    Keep<N> keep;
    memcpy(keep.words, &raw.input[1], N);
    if (left < N) keep.HideFrom(left);
    return {StowedPack<T, N>::Of(Kept(raw.input[0], keep, LowestOf<T>()))};
  }
  template <int N>
  OFL_DEVICE C Max(const Held<N>& held) const {
    return MaxOf<C>(held.x.Get()) * this->scale;
  }
  template <int N>
  OFL_DEVICE Pack<C, N> Less(const Held<N>& held, C max) const {
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

  OFL_DEVICE AddedScores At(int64_t row) const { return {Base::At(row)}; }
  template <int N>
  using Raw = RawPacks<Element, kInputs, N>;  // x, mask
  template <Access kAccess, int N>
  OFL_DEVICE Raw<N> Load(int64_t col) const {
    return {
        {Base::template Load<kAccess, N>(col),
         LoadBroadcast<kAccess, N>(reinterpret_cast<const T*>(this->mask), this->where, 0, col)}};
  }
  template <int N>
  struct Held {
    StowedPack<T, N> x, mask;
  };
  template <int N>
  OFL_DEVICE Held<N> Open(const Raw<N>& raw, typename Base::Column left) const {
    Held<N> held{StowedPack<T, N>::Of(raw.input[0]), StowedPack<T, N>::Of(raw.input[1])};
    if (left < N) {
      HideFrom(held.x, left, ConvertTo<T>(0.0f));
      HideFrom(held.mask, left, LowestOf<T>());
    }
    return held;
  }
  template <int N>
  OFL_DEVICE Pack<C, N> Less(const Held<N>& held, C max) const {
    Pack<C, N> v = ConvertPack<C>(held.x.Get());
    const Pack<C, N> mask = ConvertPack<C>(held.mask.Get());
#pragma unroll
    for (int i = 0; i < N; ++i) v.v[i] = (v.v[i] * this->scale + mask.v[i]) - max;
    return v;
  }
  template <int N>
  OFL_DEVICE C Max(const Held<N>& held) const {
    return MaxOf<C>(Less(held, C(0)));
  }
};

// softmax(scale * x + mask) as an algorithm of the row kernels (rows/row.cuh), over these kinds of
// scores.

template <class C, int N>
struct KeptExponentials {
  Pack<C, N> exponentials;
};
template <class C>
struct KeptExponentials<C, 0> {};

template <class T, class Scores>
struct ScaleMaskRow {
  using Element = typename Scores::Element;
  using Output = T;
  using C = ComputeType<T>;
  static constexpr int kPack = kPackSize<T>, kInputs = Scores::kInputs;
  // Narrow rows are rows/whole.cuh's.
  static constexpr unsigned kOffers = RowOffers::kAt | RowOffers::kSeen | RowOffers::kOnlyWide;

  using Statistics = OnlineSum<C, Scores::kBase2>;
  using Merge = MergeOnline;
  using Column = typename Scores::Column;

  Scores scores;

  template <int N>
  using Raw = typename Scores::template Raw<N>;
  struct Total {
    Column visible = 0;  // columns
    C max = 0;           // of the scores, or 0 where they are all -inf
    C sum = 0;           // of the exponentials of the scores less max
    C gain = 0;          // see Conclude
  };

  OFL_DEVICE ScaleMaskRow At(int64_t row) const { return {scores.At(row)}; }
  // Of the row at hand, as all that follows.
  OFL_DEVICE int64_t Seen(int64_t, int64_t) const { return scores.Visible(); }
  OFL_DEVICE int Head(int64_t row) const { return scores.y.Head(row); }
  OFL_DEVICE bool IsAligned(int64_t, int64_t head) const { return scores.IsAligned(head); }
  template <Access kAccess, int N>
  OFL_DEVICE Raw<N> Load(int64_t, int64_t col) const {
    return scores.template Load<kAccess, N>(col);
  }
  OFL_DEVICE Total Begin(int64_t) const {
    Total total;
    total.visible = scores.Visible();
    return total;
  }
  OFL_DEVICE void Look(int64_t, Total&) const {}
  OFL_DEVICE void End(int64_t, const Total&) const {}

  // In registers: what was read, and its exponentials where they take no more room; else they are
  // computed again when written. Packs of which nothing is visible are neither read nor visited.
  static constexpr bool kReplaced = sizeof(T) == sizeof(C);
  template <int N>
  struct Value : KeptExponentials<C, kReplaced ? N : 0> {
    typename Scores::template Held<N> held;
  };
  static constexpr int kRounds = 2, kMaxima = 1;
  static constexpr bool kClusterRegisters = Scores::kClusters;
  template <int N>
  OFL_DEVICE Value<N> Open(const Raw<N>& raw, bool present, int64_t col, const Total& total) const {
    Value<N> value;
    value.held = scores.template Open<N>(raw, present ? LeftOf(total, col) : N);
    return value;
  }
  template <int kRound, int N>
  OFL_DEVICE C Visit(Value<N>& value, bool present, const Total& total) const {
    if constexpr (kRound == 0) {
      return present ? scores.Max(value.held) : MinusInfinity<C>();
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
  OFL_DEVICE void Finish(C found, Total& total) const {
    if constexpr (kRound == 0) {
      total.max = Statistics::Finite(found);
    } else {
      Conclude({total.max, found}, total);
    }
  }
  // A part of nothing but -inf has the maximum 0 and the sum 0: it must not lead.
  static OFL_DEVICE Statistics Gathered(const Total& part) {
    return part.sum == C(0) ? Statistics{} : Statistics{part.max, part.sum};
  }
  OFL_DEVICE void Rebase(const Statistics& row, Total& total) const {
    const C max = total.max, sum = total.sum;
    Conclude(row, total);
    // A part without any weight is 0 already, and its maximum is none.
    if (kReplaced && sum != C(0)) total.gain *= Statistics::Weight(max, total.max);
  }
  template <int N>
  OFL_DEVICE void Store(int64_t row, int64_t col, const Value<N>& value, const Total& total) const {
    if constexpr (kReplaced) {
      scores.y.template Store<N>(row, col, Times(value.exponentials, total.gain));
    } else {
      Write<N>(row, col, LeftOf(total, col) > 0, value.held, total);
    }
  }

  // Streamed: maximum and sum at once; scores and exponentials are formed again when written.
  template <int N>
  OFL_DEVICE void Add(const Raw<N>& raw, int64_t col, const Total& start, Statistics& s) const {
    const auto held = scores.template Open<N>(raw, LeftOf(start, col));
    const C max = Larger{}(s.max, scores.Max(held));
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
  OFL_DEVICE void Conclude(const Statistics& row, Total& total) const {
    const bool is_zero = scores.zero_masked_rows && row.sum == C(0);
    total.max = Statistics::Finite(row.max);
    total.sum = row.sum;
    if constexpr (kReplaced) {
      total.gain = is_zero ? C(0) : C(1) / row.sum;
    } else {
      total.gain = is_zero ? MinusInfinity<C>() : -log2f(row.sum);
    }
  }
  template <int N>
  OFL_DEVICE void StoreRaw(int64_t row, int64_t col, const Raw<N>& raw, const Total& total) const {
    const Column left = LeftOf(total, col);
    Write<N>(row, col, left > 0, scores.template Open<N>(raw, left), total);
  }

 private:
  static OFL_DEVICE Column LeftOf(const Total& total, int64_t col) {
    return total.visible - static_cast<Column>(col);
  }
  template <int N>
  static OFL_DEVICE Pack<C, N> Times(Pack<C, N> e, C gain) {
#pragma unroll
    for (C& v : e.v) v *= gain;
    return e;
  }
  template <class Held>
  OFL_DEVICE auto Exponentials(const Held& held, const Total& total) const {
    auto e = scores.Less(held, total.max);
#pragma unroll
    for (C& v : e.v) {
      if constexpr (Scores::kBase2) {
        v = Exp2(v);
      } else {
        v = ExpNonPositive(v);
      }
    }
    return e;
  }
  template <int N, class Held>
  OFL_DEVICE void Write(int64_t row, int64_t col, bool visible, const Held& held,
                        const Total& total) const {
    if constexpr (kReplaced) {
      auto e = FilledPack<N>(C(0));
      if (visible) e = Exponentials(held, total);
      scores.y.template Store<N>(row, col, Times(e, total.gain));
    } else if (visible) {
      auto v = scores.Less(held, Scores::kBase2 ? total.max - total.gain : total.max);
#pragma unroll
      for (C& e : v.v) e = Exp2(Scores::kBase2 ? e : fmaf(e, kLog2E, total.gain));
      scores.y.template Store<N>(row, col, v);
    } else {
      // Not a value of the same store: it would be merged as elements, not as words.
      scores.y.template Store<N>(row, col, FilledPack<N>(Exp2(MinusInfinity<C>() + total.gain)));
    }
  }
};

}  // namespace oneflow_lite::cuda
