// SPDX-License-Identifier: Apache-2.0
//
// softmax and log_softmax as an algorithm of the row kernels (rows/row.cuh).
#pragma once

#include "primitive/cuda/rows/io.cuh"
#include "primitive/cuda/softmax/math.cuh"

namespace oneflow_lite::cuda {

template <bool kLog, class Load_, class Store_,
          bool kReplace = (sizeof(ComputeType<typename Store_::Element>) == 8),
          bool kStow =
              (sizeof(typename Load_::Element) < sizeof(ComputeType<typename Store_::Element>))>
struct SoftmaxRow {
  using Element = typename Load_::Element;
  using Output = typename Store_::Element;
  using C = ComputeType<Output>;
  static constexpr int kPack = kPackSize<Output>, kInputs = 1;
  static constexpr unsigned kOffers = RowOffers::kAt | RowOffers::kAlignedEverywhere |
                                      RowOffers::kWhole | RowOffers::kKeep | RowOffers::kNarrow |
                                      RowOffers::kWords | ShiftsOf<Load_, kPack>;

  // float16 has so small a range that its maximum, times log2(e), is no infinity.
  static constexpr bool kBase2 = !kLog && std::is_same_v<Element, __half>;
  using Statistics = OnlineSum<C, kBase2>;
  using Merge = MergeOnline;

  Load_ load;
  Store_ store;

  template <int N>
  using Raw = RawPacks<Element, kInputs, N>;
  struct Total {
    C max = MinusInfinity<C>();
    C sum = 0;    // of exp(x - max)
    C scale = 0;  // see Conclude
  };

  bool IsAlignedEverywhere() const { return cuda::IsAlignedEverywhere(load, store); }
  OFL_DEVICE SoftmaxRow At(int64_t row) const { return {AtRow(load, row), AtRow(store, row)}; }
  OFL_DEVICE int Head(int64_t row) const { return store.Head(row); }
  OFL_DEVICE bool IsAligned(int64_t row, int64_t head) const {
    return cuda::IsAligned(load, row, head);
  }
  bool IsWhole(int64_t cols) const {
    return cols % kPack == 0 && cuda::AllAligned(load) && cuda::AllAligned(store);
  }
  // For kernels with registers to spare: the exponentials stay, in C.
  using Kept = std::conditional_t<kLog, SoftmaxRow, SoftmaxRow<false, Load_, Store_, true, false>>;
  Kept Keep() const { return {load, store}; }
  template <Access kAccess, int N>
  OFL_DEVICE Raw<N> Load(int64_t row, int64_t col) const {
    return {{LoadFrom<kAccess, N>(load, row, col)}};
  }
  // A lane has few columns of a narrow row: their exponentials stay in registers.
  SoftmaxRow<kLog, Load_, Store_, true, false> Narrow() const { return {load, store}; }
  OFL_DEVICE WordFrame Frame(int, int64_t row, int64_t col) const { return load.Frame(row, col); }
  OFL_DEVICE Total Begin(int64_t) const { return {}; }
  OFL_DEVICE void Look(int64_t, Total&) const {}
  OFL_DEVICE void End(int64_t, const Total&) const {}

  // In registers: the maximum, then the sum of exponentials. These replace the values where they
  // take no more room; else, and for the logarithm, the values stay as they lie in memory, and the
  // exponentials are computed again when written. Columns that are not there hold -inf, which adds
  // nothing, or are passed over.
  static constexpr bool kReplaced = !kLog && !kStow && kReplace;
  template <int N>
  struct Value {
    std::conditional_t<kStow, StowedPack<Element, N>, Pack<C, N>> held;
    OFL_DEVICE auto Get() const {
      if constexpr (kStow) return held.Get();
      if constexpr (!kStow) return held;
    }
  };
  static constexpr int kRounds = 2, kMaxima = 1;
  static constexpr bool kClusterRegisters = true;
  template <int N>
  static OFL_DEVICE Value<N> Open(const Raw<N>& raw, bool, int64_t, const Total&) {
    if constexpr (kStow) {
      return {StowedPack<Element, N>::Of(raw.input[0])};
    } else {
      return {ConvertPack<C>(raw.input[0])};
    }
  }
  template <int kRound, int N>
  OFL_DEVICE C Visit(Value<N>& value, bool present, const Total& total) const {
    if (!present) return kRound == 0 ? MinusInfinity<C>() : C(0);
    if constexpr (kRound == 0) {
      return MaxOf<C>(value.Get());
    } else {
      const C max = Statistics::Finite(total.max);
      Pack<C, N> x = ConvertPack<C>(value.Get());
      C sum = 0;
#pragma unroll
      for (C& v : x.v) sum += v = Statistics::Exponential(v, max);
      if constexpr (kReplaced) value.held = x;
      return sum;
    }
  }
  template <int kRound>
  static OFL_DEVICE void Finish(C found, Total& total) {
    if constexpr (kRound == 0) {
      total.max = Statistics::Level(found);
    } else {
      total.sum = found;
      Conclude({total.max, found}, total);
    }
  }
  // A part's exponentials are relative to the part's own maximum.
  static OFL_DEVICE Statistics Gathered(const Total& part) { return {part.max, part.sum}; }
  static OFL_DEVICE void Rebase(const Statistics& row, Total& total) {
    const C max = total.max;
    Conclude(row, total);
    if constexpr (kReplaced) total.scale *= Statistics::Weight(max, row.max);
  }
  template <int N>
  OFL_DEVICE void Store(int64_t row, int64_t col, const Value<N>& value, const Total& total) const {
    if constexpr (kReplaced) {
      Pack<C, N> y = value.held;
      y *= total.scale;
      store.template Store<N>(row, col, y);
    } else {
      Write<N>(row, col, ConvertPack<C>(value.Get()), total);
    }
  }

  // Rows in words (rows/narrow.cuh): what fills a word outside the row, and one column of a word.
  static OFL_DEVICE Element Nothing() { return ConvertTo<Element>(MinusInfinity<C>()); }
  template <int N>
  static OFL_DEVICE Value<1> Only(const Value<N>& value, bool last) {
    const auto unpacked = value.Get();
    Value<1> only;
    only.held.v[0] = last ? unpacked.v[N - 1] : unpacked.v[0];
    return only;
  }

  // Streamed: maximum and sum at once; every exponential is computed again when written.
  template <int N>
  OFL_DEVICE void Add(const Raw<N>& raw, int64_t, const Total&, Statistics& s) const {
    s.Add(ConvertPack<C>(raw.input[0]));
  }
  // log_softmax is x - max + scale, softmax scale * exp(x - max), with the factor in the exponent
  // where that is for free.
  static constexpr bool kScaleInExponent = !kLog && !kBase2 && !kReplaced && sizeof(C) == 4;
  static OFL_DEVICE void Conclude(const Statistics& row, Total& total) {
    total.max = row.max;
    total.sum = row.sum;
    if constexpr (kLog) {
      total.scale = -LogOf(row.sum);
    } else if constexpr (kScaleInExponent) {
      total.scale = -log2f(row.sum);
    } else {
      total.scale = ReciprocalOf(row.sum);  // the sum is 1 at least, or 0
    }
  }
  template <int N>
  OFL_DEVICE void StoreRaw(int64_t row, int64_t col, const Raw<N>& raw, const Total& total) const {
    Write<N>(row, col, ConvertPack<C>(raw.input[0]), total);
  }

 private:
  template <int N>
  OFL_DEVICE void Write(int64_t row, int64_t col, Pack<C, N> x, const Total& total) const {
#pragma unroll
    for (C& v : x.v) {
      if constexpr (kLog) {
        v = (v - total.max) + total.scale;
      } else if constexpr (kScaleInExponent) {
        v = Exp2(fmaf(v - total.max, kLog2E, total.scale));
      } else {
        v = Statistics::Exponential(v, total.max) * total.scale;
      }
    }
    store.template Store<N>(row, col, x);
  }
};

}  // namespace oneflow_lite::cuda
