// SPDX-License-Identifier: Apache-2.0
//
// softmax(scale * x + mask) as an algorithm of the row kernels (rows/row.cuh), over the kinds of
// scores of scale_mask/scores.cuh.
#pragma once

#include "primitive/cuda/scale_mask/scores.cuh"

namespace oneflow_lite {
namespace cuda {

namespace internal {

template <class C, int N>
struct KeptExponentials {
  Pack<C, N> exponentials;
};
template <class C>
struct KeptExponentials<C, 0> {};

}  // namespace internal

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

  __device__ __forceinline__ ScaleMaskRow At(int64_t row) const { return {scores.At(row)}; }
  // Of the row at hand, as all that follows.
  __device__ __forceinline__ int64_t Seen(int64_t, int64_t) const { return scores.Visible(); }
  __device__ __forceinline__ int Head(int64_t row) const { return scores.y.Head(row); }
  __device__ __forceinline__ bool IsAligned(int64_t, int64_t head) const {
    return scores.IsAligned(head);
  }
  template <Access kAccess, int N>
  __device__ __forceinline__ Raw<N> Load(int64_t, int64_t col) const {
    return scores.template Load<kAccess, N>(col);
  }
  __device__ __forceinline__ Total Begin(int64_t) const {
    Total total;
    total.visible = scores.Visible();
    return total;
  }
  __device__ __forceinline__ void Look(int64_t, Total&) const {}
  __device__ __forceinline__ void End(int64_t, const Total&) const {}

  // In registers: what was read, and its exponentials where they take no more room; else they are
  // computed again when written. Packs of which nothing is visible are neither read nor visited.
  static constexpr bool kReplaced = sizeof(T) == sizeof(C);
  template <int N>
  struct Value : internal::KeptExponentials<C, kReplaced ? N : 0> {
    typename Scores::template Held<N> held;
  };
  static constexpr int kRounds = 2, kMaxima = 1;
  static constexpr bool kClusterRegisters = Scores::kClusters;
  template <int N>
  __device__ __forceinline__ Value<N> Open(const Raw<N>& raw, bool present, int64_t col,
                                           const Total& total) const {
    Value<N> value;
    value.held = scores.template Open<N>(raw, present ? LeftOf(total, col) : N);
    return value;
  }
  template <int kRound, int N>
  __device__ __forceinline__ C Visit(Value<N>& value, bool present, const Total& total) const {
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
      scores.y.template Store<N>(row, col, Times(value.exponentials, total.gain));
    } else {
      Write<N>(row, col, LeftOf(total, col) > 0, value.held, total);
    }
  }

  // Streamed: maximum and sum at once; scores and exponentials are formed again when written.
  template <int N>
  __device__ __forceinline__ void Add(const Raw<N>& raw, int64_t col, const Total& start,
                                      Statistics& s) const {
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
  __device__ __forceinline__ void Conclude(const Statistics& row, Total& total) const {
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
  __device__ __forceinline__ void StoreRaw(int64_t row, int64_t col, const Raw<N>& raw,
                                           const Total& total) const {
    const Column left = LeftOf(total, col);
    Write<N>(row, col, left > 0, scores.template Open<N>(raw, left), total);
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
  template <class Held>
  __device__ __forceinline__ auto Exponentials(const Held& held, const Total& total) const {
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
  __device__ __forceinline__ void Write(int64_t row, int64_t col, bool visible, const Held& held,
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

}  // namespace cuda
}  // namespace oneflow_lite
