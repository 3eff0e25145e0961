// SPDX-License-Identifier: Apache-2.0
//
// softmax(scale * x + mask) under a boolean mask or none, with a scale above 0, as an algorithm of
// the row kernels (rows/row.cuh): what the mask hides is -inf from the time on when a row is
// loaded, and the rest waits as it lies in memory. scale_mask/formed.cuh has the other masks.
#pragma once

#include "primitive/cuda/rows/load.cuh"
#include "primitive/cuda/rows/masks.cuh"
#include "primitive/cuda/scale_mask/rows.cuh"
#include "primitive/cuda/softmax/math.cuh"

namespace oneflow_lite::cuda {

// kWhole: rows of whole packs, whose masks are aligned to them. Of float16, whose range is small,
// scores are exponents of 2: rows.scale has log2(e) in it.
template <class T, bool kWhole>
struct ScaleMaskRow {
  using Rows = MaskedRows<T, uint32_t>;
  using Element = T;
  using Output = T;
  using C = ComputeType<T>;
  static constexpr int kPack = kPackSize<T>, kInputs = 1;
  // Narrow rows are rows/whole.cuh's.
  static constexpr unsigned kOffers =
      RowOffers::kAt | RowOffers::kSeen | RowOffers::kOnlyWide | RowOffers::kLoadsPacks;
  static constexpr bool kBase2 = std::is_same_v<T, __half>;
  using Statistics = OnlineSum<C, kBase2>;
  using Merge = MergeOnline;
  using Column = typename Rows::Column;

  Rows rows;

  template <int N>
  using Raw = RawPacks<Element, kInputs, N>;  // x, -inf where the mask hides it
  struct Total {
    Column visible = 0;  // columns
    C max = 0;           // of the scores, or 0 where they are all -inf
    C sum = 0;           // of the exponentials of the scores less max
    C gain = 0;          // see Conclude
  };

  OFL_DEVICE ScaleMaskRow At(int64_t row) const { return {rows.At(row)}; }
  // Of the row at hand, as all that follows.
  OFL_DEVICE int64_t Seen(int64_t, int64_t) const { return rows.Visible(); }
  OFL_DEVICE int Head(int64_t row) const { return rows.y.Head(row); }
  OFL_DEVICE bool IsAligned(int64_t, int64_t head) const { return rows.IsAligned(head); }
  template <Access kAccess, int N>
  OFL_DEVICE Raw<N> Load(int64_t, int64_t col) const {
    const auto keep = LoadKeep<kAccess, N>(Mask(), col, rows.where.col_stride, rows.mask);
    return {{Kept(rows.template Load<kAccess, N>(col), keep, Lowest())}};
  }
  // The packs of a thread, the first of which begins at column col: all of x are on their way
  // before any of the mask are asked for, and these, some at a time, before one is looked at.
  template <int kPacks, class Stowed>
  OFL_DEVICE void LoadPacks(int64_t col, const internal::Places& places,
                            Stowed (&stowed)[kPacks]) const {
    const T* const x = rows.x + col;
    const int step = places.step * kPack;
    const auto load = [&](const auto& at) {
#pragma unroll
      for (int k = 0; k < kPacks; ++k) {
        if (places.Reads(k)) stowed[k].Set(at(x + k * step));
      }
    };
    if (kWhole || IsAlignedFor<uint4>(x)) {
      load([](const T* p) { return LoadAlignedPack<kPack>(p); });
    } else {
      load([](const T* p) { return LoadEach<kPack>(p); });
    }
    if (rows.mask) {
      const auto place = reinterpret_cast<uintptr_t>(Mask() + col);
      if (kWhole || (rows.where.col_stride == 1 && place % kPack == 0)) {
        ApplyMask<true>(col, step, places, stowed);
      } else {
        ApplyMask<false>(col, step, places, stowed);
      }
    }
    if (!kWhole && rows.Visible() < rows.cols) {
#pragma unroll
      for (int k = 0; k < kPacks; ++k) {
        const Column left = rows.Visible() - static_cast<Column>(col) - k * step;
        if (places.Reads(k) && left < kPack) HideFrom(stowed[k].input[0], left, Lowest());
      }
    }
  }
  OFL_DEVICE Total Begin(int64_t) const {
    Total total;
    total.visible = rows.Visible();
    return total;
  }
  OFL_DEVICE void Look(int64_t, Total&) const {}
  OFL_DEVICE void End(int64_t, const Total&) const {}

  // In registers: what was read, and later its exponentials where they take no more room and short
  // code gains by them; else they are computed again when written. Packs of which nothing is
  // visible are neither read nor visited.
  static constexpr bool kReplaced = sizeof(T) == (kWhole ? sizeof(C) : 8);
  template <int N>
  using Value = StowedPack<T, N>;
  static constexpr int kRounds = 2, kMaxima = 1;
  static constexpr bool kClusterRegisters = true;
  template <int N>
  OFL_DEVICE Value<N> Open(const Raw<N>& raw, bool present, int64_t col, const Total& total) const {
    constexpr bool kHidden = N == kPack && !kWhole;  // by LoadPacks
    return Visible(raw, present && !kHidden ? LeftOf(total, col) : N);
  }
  template <int kRound, int N>
  OFL_DEVICE C Visit(Value<N>& value, bool present, const Total& total) const {
    if constexpr (kRound == 0) {
      return present ? MaxOf<C>(value.Get()) * rows.scale : MinusInfinity<C>();
    } else {
      auto e = FilledPack<N>(C(0));
      C sum = 0;
      if (present) {
        e = Exponentials(value, total);
#pragma unroll
        for (const C& v : e.v) sum += v;
      }
      if constexpr (kReplaced) value = Value<N>::Of(e);
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
      Pack<C, N> y = value.Get();
      rows.y.template Store<N>(row, col, y *= total.gain);
    } else {
      Write<N>(row, col, LeftOf(total, col) > 0, value, total);
    }
  }

  // Streamed: maximum and sum at once; scores and exponentials are formed again when written.
  template <int N>
  OFL_DEVICE void Add(const Raw<N>& raw, int64_t col, const Total& start, Statistics& s) const {
    const auto held = Visible(raw, LeftOf(start, col));
    const C max = Larger{}(s.max, MaxOf<C>(held.Get()) * rows.scale);
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
  OFL_DEVICE void StoreRaw(int64_t row, int64_t col, const Raw<N>& raw, const Total& total) const {
    const Column left = LeftOf(total, col);
    Write<N>(row, col, left > 0, Visible(raw, left), total);
  }

 private:
  OFL_DEVICE const bool* Mask() const { return reinterpret_cast<const bool*>(rows.mask); }
  static OFL_DEVICE T Lowest() { return ConvertTo<T>(MinusInfinity<C>()); }
  static OFL_DEVICE Column LeftOf(const Total& total, int64_t col) {
    return total.visible - static_cast<Column>(col);
  }
  template <int N>
  static OFL_DEVICE Value<N> Visible(const Raw<N>& raw, Column left) {
    auto x = Value<N>::Of(raw.input[0]);
    if (left < N) HideFrom(x, left, Lowest());
    return x;
  }
  // Whether the mask's packs around the one at column col, which are read where it is not aligned,
  // are in its row.
  template <bool kAligned>
  OFL_DEVICE bool IsInside(Column col) const {
    return kAligned || (rows.where.col_stride == 1 && col >= kPack && col + 2 * kPack <= rows.cols);
  }
  template <bool kAligned, int kPacks, class Stowed>
  OFL_DEVICE void ApplyMask(int64_t first_col, int step, const internal::Places& places,
                            Stowed (&stowed)[kPacks]) const {
    constexpr int kTogether = kPacks <= 4 ? kPacks : kAligned ? 4 : 2;
    const int64_t stride = rows.where.col_stride;
    const bool* const mask = Mask() + first_col * stride;
    const auto col = static_cast<Column>(first_col);
#pragma unroll
    for (int first = 0; first < kPacks; first += kTogether) {
      KeepWords<kPack> words[kTogether];
#pragma unroll
      for (int k = 0; k < kTogether; ++k) {
        const int at = first + k;
        words[k].template Load<kAligned>(mask + at * step,
                                         places.Reads(at) && IsInside<kAligned>(col + at * step));
      }
#pragma unroll
      for (int k = 0; k < kTogether; ++k) {
        const int at = first + k;
        if (at >= kPacks || !places.Reads(at)) continue;
        auto keep = words[k].Get();
        if (!IsInside<kAligned>(col + at * step)) {
          keep = LoadKeep<Access::kAny, kPack>(Mask(), first_col + at * step, stride, true);
        }
        stowed[at].Set(Kept(stowed[at].Get().input[0], keep, Lowest()));
      }
    }
  }
  // The scores less max.
  template <int N>
  OFL_DEVICE Pack<C, N> Less(const Value<N>& value, C max) const {
    Pack<C, N> v = ConvertPack<C>(value.Get());
#pragma unroll
    for (C& e : v.v) e = e * rows.scale - max;
    return v;
  }
  template <int N>
  OFL_DEVICE Pack<C, N> Exponentials(const Value<N>& value, const Total& total) const {
    auto e = Less(value, total.max);
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
  template <int N>
  OFL_DEVICE void Write(int64_t row, int64_t col, bool visible, const Value<N>& value,
                        const Total& total) const {
    if constexpr (kReplaced) {
      auto e = FilledPack<N>(C(0));
      if (visible) e = Exponentials(value, total);
      rows.y.template Store<N>(row, col, e *= total.gain);
    } else if (visible) {
      auto v = Less(value, kBase2 ? total.max - total.gain : total.max);
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
