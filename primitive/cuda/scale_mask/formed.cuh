// SPDX-License-Identifier: Apache-2.0
//
// softmax(scale * x + mask) under masks of every kind, as an algorithm of the row kernels
// (rows/row.cuh): scores are formed as a row is loaded, and held in the compute type. Of which kind
// the mask is is asked once a row, so that one kernel serves all and its loads are in flight
// together.
#pragma once

#include "primitive/cuda/rows/load.cuh"
#include "primitive/cuda/scale_mask/rows.cuh"
#include "primitive/cuda/softmax/math.cuh"

namespace oneflow_lite::cuda {

// kAligned: packs of x, y and the mask alike are aligned.
template <class T, class Index, bool kAligned>
struct FormedMaskRow {
  using Rows = MaskedRows<T, Index>;
  using C = ComputeType<T>;
  using Element = C;
  using Output = T;
  using Column = typename Rows::Column;
  using Statistics = OnlineSum<C>;
  using Merge = MergeOnline;
  static constexpr int kPack = kPackSize<T>, kInputs = 1;
  static constexpr int kRounds = 2, kMaxima = 1;
  static constexpr bool kClusterRegisters = true;
  static constexpr unsigned kOffers = RowOffers::kAt | RowOffers::kSeen | RowOffers::kLoadsPacks;

  Rows rows;

  template <int N>
  using Raw = RawPacks<Element, kInputs, N>;  // scores
  template <int N>
  using Value = Pack<C, N>;  // scores, later their exponentials
  struct Total {
    Column visible = 0;
    C max = 0, sum = 0, gain = 0;
    RowExponential<C> exp;  // of the part
  };
  OFL_DEVICE FormedMaskRow At(int64_t row) const { return {rows.At(row)}; }
  // Of the row at hand.
  OFL_DEVICE int64_t Seen(int64_t, int64_t) const { return rows.Visible(); }
  OFL_DEVICE int Head(int64_t row) const { return rows.y.Head(row) % kPack; }
  OFL_DEVICE bool IsAligned(int64_t, int64_t) const { return true; }
  OFL_DEVICE Total Begin(int64_t) const {
    Total total;
    total.visible = rows.Visible();
    return total;
  }
  OFL_DEVICE void Look(int64_t, Total&) const {}
  OFL_DEVICE void End(int64_t, const Total&) const {}

  // The packs of a thread, the first of which begins at column col.
  template <int kPacks, class Stowed>
  OFL_DEVICE void LoadPacks(int64_t col, const internal::Places& places,
                            Stowed (&stowed)[kPacks]) const {
    StowedPack<T, kPack> x[kPacks];
    LoadThese(rows.x, 1, col, places, x);
    switch (rows.type) {
      case MaskType::kNone:
        return Form<kPacks>(places, x, stowed, [&](int, int, C v) { return v * rows.scale; });
      case MaskType::kBool:
        return FormWith<bool>(col, places, x, stowed);
      case MaskType::kOwn:
        return FormWith<T>(col, places, x, stowed);
      case MaskType::kWide:
        if constexpr (!std::is_same_v<T, C>) FormWith<C>(col, places, x, stowed);
    }
  }
  template <Access, int N>
  OFL_DEVICE Raw<N> Load(int64_t, int64_t col) const {
    return {{Scores(ConvertPack<C>(LoadEach<N>(rows.x + col)), col)}};
  }
  template <int N>
  OFL_DEVICE Value<N> Open(const Raw<N>& raw, bool present, int64_t col, const Total& total) const {
    Value<N> v = raw.input[0];
    const Column left = total.visible - static_cast<Column>(col);
    if (present && left < N) {
#pragma unroll
      for (int i = 0; i < N; ++i) v.v[i] = i < left ? v.v[i] : MinusInfinity<C>();
    }
    return v;
  }
  template <int kRound, int N>
  OFL_DEVICE C Visit(Value<N>& value, bool present, const Total& total) const {
    if constexpr (kRound == 0) {
      return present ? MaxOf<C>(value) : MinusInfinity<C>();
    } else {
      C sum = 0;
      if (present) {
#pragma unroll
        for (C& v : value.v) {
          v = total.exp(v);
          sum += v;
        }
      } else {
#pragma unroll
        for (C& v : value.v) v = 0;
      }
      return sum;
    }
  }
  template <int kRound>
  OFL_DEVICE void Finish(C found, Total& total) const {
    if constexpr (kRound == 0) {
      total.exp = RowExponential<C>(found);
      total.max = Statistics::Finite(found);
    } else {
      Conclude({total.max, found * total.exp.Weight()}, total);
      total.gain *= total.exp.Weight();
    }
  }
  // A part of nothing but -inf has the maximum 0 and the sum 0: it must not lead.
  static OFL_DEVICE Statistics Gathered(const Total& part) {
    return part.sum == C(0) ? Statistics{} : Statistics{part.max, part.sum};
  }
  OFL_DEVICE void Rebase(const Statistics& row, Total& total) const {
    const C max = total.max, sum = total.sum;
    Conclude(row, total);
    if (sum != C(0)) total.gain *= Statistics::Weight(max, total.max) * total.exp.Weight();
  }
  template <int N>
  OFL_DEVICE void Store(int64_t row, int64_t col, Value<N> value, const Total& total) const {
    value *= total.gain;
    rows.y.template Store<N>(row, col, value);
  }

  // Streamed.
  template <int N>
  OFL_DEVICE void Add(const Raw<N>& raw, int64_t col, const Total& start, Statistics& s) const {
    s.Add(Open<N>(raw, true, col, start));
  }
  OFL_DEVICE void Conclude(const Statistics& row, Total& total) const {
    total.max = Statistics::Finite(row.max);
    total.sum = row.sum;
    total.gain = rows.GainOf(row.sum);
  }
  template <int N>
  OFL_DEVICE void StoreRaw(int64_t row, int64_t col, const Raw<N>& raw, const Total& total) const {
    Value<N> v = FilledPack<N>(MinusInfinity<C>());
    if (col < total.visible) v = Open<N>(raw, true, col, total);
#pragma unroll
    for (C& e : v.v) e = ExpNonPositive(e - total.max);
    Store<N>(row, col, v, total);
  }

 protected:
  template <int N>
  OFL_DEVICE Pack<C, N> Scores(Pack<C, N> x, int64_t col) const {
    if (rows.type == MaskType::kBool) return ScoresUnder<bool>(x, col);
    if (rows.type == MaskType::kOwn) return ScoresUnder<T>(x, col);
    if (rows.type == MaskType::kWide) return ScoresUnder<C>(x, col);
    return x *= rows.scale;
  }

 private:
  template <class M, int N>
  OFL_DEVICE Pack<C, N> ScoresUnder(Pack<C, N> x, int64_t col) const {
    const int64_t stride = rows.where.col_stride;
    const M* const mask = reinterpret_cast<const M*>(rows.mask) + col * stride;
#pragma unroll
    for (int i = 0; i < N; ++i) x.v[i] = rows.Score(x.v[i], mask[i * stride]);
    return x;
  }
  // Packs of x or of the mask, `stride` elements from column to column.
  template <class M, int kPacks>
  OFL_DEVICE void LoadThese(const M* row, int64_t stride, int64_t col,
                            const internal::Places& places,
                            StowedPack<M, kPack> (&packs)[kPacks]) const {
    constexpr unsigned kBytes = kPack * sizeof(M),
                       kWord = kBytes < kPackBytes ? kBytes : kPackBytes;
    const M* p = row + col * stride;
    const int64_t step = places.step * kPack;
    if (kAligned || (stride == 1 && reinterpret_cast<uintptr_t>(p) % kWord == 0)) {
#pragma unroll
      for (int k = 0; k < kPacks; ++k) {
        if (places.Reads(k))
          packs[k] = StowedPack<M, kPack>::Of(LoadAlignedPack<kPack>(p + k * step));
      }
    } else if (stride == 1) {  // addresses that differ by constants
#pragma unroll
      for (int k = 0; k < kPacks; ++k) {
        if (places.Reads(k)) packs[k] = StowedPack<M, kPack>::Of(LoadEach<kPack>(p + k * step));
      }
    } else {
#pragma unroll
      for (int k = 0; k < kPacks; ++k) {
        if (!places.Reads(k)) continue;
        Pack<M, kPack> pack;
#pragma unroll
        for (int i = 0; i < kPack; ++i) pack.v[i] = p[(k * step + i) * stride];
        packs[k] = StowedPack<M, kPack>::Of(pack);
      }
    }
  }
  template <class M, int kPacks, class Stowed>
  OFL_DEVICE void FormWith(int64_t col, const internal::Places& places,
                           const StowedPack<T, kPack> (&x)[kPacks],
                           Stowed (&stowed)[kPacks]) const {
    StowedPack<M, kPack> mask[kPacks];
    LoadThese(reinterpret_cast<const M*>(rows.mask), rows.where.col_stride, col, places, mask);
    Form<kPacks>(places, x, stowed,
                 [&](int k, int i, C v) { return rows.Score(v, mask[k].Get().v[i]); });
  }
  template <int kPacks, class Stowed, class F>
  static OFL_DEVICE void Form(const internal::Places& places,
                              const StowedPack<T, kPack> (&x)[kPacks], Stowed (&stowed)[kPacks],
                              const F& score) {
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (!places.Reads(k)) continue;
      Pack<C, kPack> v = ConvertPack<C>(x[k].Get());
#pragma unroll
      for (int i = 0; i < kPack; ++i) v.v[i] = score(k, i, v.v[i]);
      stowed[k].Set(v);
    }
  }
};

// The same for blocks, whose threads have more packs than registers for masks: x waits as it lies
// in memory, and a pack's scores are formed, with the mask read column by column, when it is
// opened.
template <class T>
struct LateMaskRow : FormedMaskRow<T, uint32_t, false> {
  using Base = FormedMaskRow<T, uint32_t, false>;
  using Element = T;
  using Base::kPack, Base::rows;
  using typename Base::C, typename Base::Total;
  static constexpr unsigned kOffers = RowOffers::kAt | RowOffers::kSeen;
  template <int N>
  using Raw = RawPacks<T, 1, N>;
  template <int N>
  using Value = typename Base::template Value<N>;

  OFL_DEVICE LateMaskRow At(int64_t row) const { return {{rows.At(row)}}; }
  OFL_DEVICE bool IsAligned(int64_t, int64_t head) const {
    return IsAlignedFor<uint4>(rows.x + head);
  }
  template <Access kAccess, int N>
  OFL_DEVICE Raw<N> Load(int64_t, int64_t col) const {
    return {{rows.template Load<kAccess, N>(col)}};
  }
  template <int N>
  OFL_DEVICE Value<N> Open(const Raw<N>& raw, bool present, int64_t col, const Total& total) const {
    if (!present) return {};
    return Base::template Open<N>({{Base::Scores(ConvertPack<C>(raw.input[0]), col)}}, true, col,
                                  total);
  }
};

}  // namespace oneflow_lite::cuda
