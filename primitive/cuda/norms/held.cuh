// SPDX-License-Identifier: Apache-2.0
//
// layer_norm and rms_norm as an algorithm of the row kernels (rows/row.cuh) for rows that stay in
// registers and lie anyhow: at an odd offset, or at another one than their weights. The values are
// held in the compute type, layer_norm's as distances from the mean of the part that a warp holds.
#pragma once

#include "primitive/cuda/norms/sums.cuh"
#include "primitive/cuda/rows/io.cuh"

namespace oneflow_lite::cuda {

template <class A, bool kCluster, class>
struct ShiftedShape;  // rows/shifted.cuh
template <class A>
struct WidestShape;

// N weights of T, whole words of 16 bytes of them, that begin kSkip words of 4 bytes and some bits
// into a word of a frame; kSkip -1: at its start.
template <class T, int N, int kSkip>
struct WeightWords {
  static constexpr int kWhole = N / kPackSize<T>;
  static constexpr bool kBits = sizeof(T) < 4;
  static constexpr int kNext = kSkip < 0 ? 0 : kSkip + (kBits ? 1 : 0);
  static constexpr int kHigh = kNext > 2 ? 4 : kNext > 0 ? kNext : 1;
  uint4 low[kWhole];
  uint32_t high[kHigh];

  OFL_DEVICE void Load(const uint4* from) {
#pragma unroll
    for (int i = 0; i < kWhole; ++i) low[i] = from[i];
    if constexpr (kNext > 0) {
      using Word = typename WordOf<4 * kHigh>::type;
      const Word word = *reinterpret_cast<const Word*>(from + kWhole);
      memcpy(high, &word, sizeof(word));
    }
  }
  OFL_DEVICE Pack<ComputeType<T>, N> Get(unsigned past) const {
    uint32_t w[4 * kWhole + 4];
    memcpy(w, low, sizeof(low));
#pragma unroll
    for (int i = 0; i < kNext; ++i) w[4 * kWhole + i] = high[i];
    if constexpr (kSkip >= 0) {
#pragma unroll
      for (int i = 0; i < 4 * kWhole; ++i) {
        w[i] = kBits ? __funnelshift_r(w[kSkip + i], w[kSkip + i + 1], past % 4 * 8) : w[kSkip + i];
      }
    }
    Pack<T, N> weights;
    memcpy(&weights, w, sizeof(weights));
    return ConvertPack<ComputeType<T>>(weights);
  }
};

// kStow: the values stay in the type in memory instead, which takes half the registers in half.
template <bool kCentre, class Load_, class Store_, bool kStow = false>
struct NormHeldRow : NormTensors<Load_, Store_> {
  using Tensors = NormTensors<Load_, Store_>;
  using Tensors::extras, Tensors::kPack, Tensors::load, Tensors::store, typename Tensors::C;
  static constexpr unsigned kOffers = RowOffers::kAt | RowOffers::kSetColumns |
                                      RowOffers::kColumnConstants | RowOffers::kStorePacks;
  using typename Tensors::Element, typename Tensors::Output;
  template <int N>
  using Raw = typename Tensors::template Raw<N>;

  // 16-bit elements add up nearly without an error, so what is left of their mean follows from
  // their sum.
  static constexpr bool kExact = sizeof(Element) == 2;

  // mean, sum and squares are those of the part, or the row, whose columns are counted.
  struct Total {
    C count = 0, mean = 0, sum = 0, squares = 0;
    C row_mean = 0, rstd = 0, offset = 0;
  };

  OFL_DEVICE NormHeldRow At(int64_t row) const {
    return {{AtRow(load, row), AtRow(store, row), extras}};
  }
  OFL_DEVICE WordFrame Frame(int, int64_t row, int64_t col) const { return load.Frame(row, col); }
  OFL_DEVICE Total Begin(int64_t) const {
    Total total;
    total.count = static_cast<C>(extras.cols);
    return total;
  }
  // Only so many columns are the part's.
  OFL_DEVICE static void SetColumns(int count, Total& part) { part.count = static_cast<C>(count); }
  OFL_DEVICE void End(int64_t row, const Total& total) const {
    if (kCentre && extras.mean) extras.mean[row] = total.row_mean;
    if (extras.rstd) extras.rstd[row] = total.rstd;
  }

  template <int N>
  using Values = Pack<C, N>;
  template <int N>
  struct Value {
    std::conditional_t<kStow, StowedPack<Element, N>, Values<N>> held;
  };
  static constexpr int kRounds = kCentre ? 2 : 1, kMaxima = 0;
  static constexpr bool kClusterRegisters = true;
  template <int kRound>
  using Sums = SumOf<C, kCentre && kRound == 1 && !kExact ? 2 : 1>;
  template <int N>
  static OFL_DEVICE Value<N> Open(const Raw<N>& raw, bool, int64_t, const Total&) {
    if constexpr (kStow) {
      return {StowedPack<Element, N>::Of(raw.input[0])};
    } else {
      return {ConvertPack<C>(raw.input[0])};
    }
  }
  template <int kRound, int N>
  static OFL_DEVICE Sums<kRound> Visit(Value<N>& x, bool present, const Total& total) {
    Sums<kRound> sums;
    if (!present) return sums;
    Values<N> values = ValuesOf(x.held);
#pragma unroll
    for (C& v : values.v) {
      if constexpr (!kCentre) {
        sums.v[0] += v * v;
      } else if constexpr (kRound == 0) {
        sums.v[0] += v;
      } else {
        v = Centred(v, total.mean);
        sums.v[0] += v * v;
        if constexpr (!kExact) sums.v[1] += v;
      }
    }
    if constexpr (!kStow) x.held = values;
    return sums;
  }
  template <int kRound>
  OFL_DEVICE void Finish(const Sums<kRound>& sums, Total& total) const {
    if constexpr (kCentre && kRound == 0) {
      total.sum = sums.v[0];
      total.mean = Quotient(total.sum, Larger{}(total.count, C(1)));
      return;
    }
    total.squares = sums.v[0];
    if constexpr (kCentre && kExact) {
      total.sum = fma(-total.count, total.mean, total.sum);
    } else if constexpr (kCentre) {
      total.sum = sums.v[1];
    }
    Conclude(Gathered(total), total);
  }

  using Statistics = std::conditional_t<kCentre, PivotSums<C>, SumOf<C, 1>>;
  using Merge = std::conditional_t<kCentre, MergePivotSums, Plus>;
  static OFL_DEVICE Statistics Gathered(const Total& part) {
    if constexpr (kCentre) {
      return {part.count, part.mean, part.sum, part.squares};
    } else {
      return {{part.squares}};
    }
  }
  OFL_DEVICE void Rebase(const Statistics& row, Total& part) const { Conclude(row, part); }

  template <int N>
  OFL_DEVICE void Store(int64_t row, int64_t col, const Value<N>& value, const Total& total) const {
    Values<N> y = Normalised(ValuesOf(value.held), total);
    this->template Weigh<N>(col, y);
    store.template Store<N>(row, col, y);
  }
  // Weight and bias of a thread's columns, first as they lie in memory: converted at once, each
  // would be waited for before the next one is asked for.
  template <int kColumns>
  struct ColumnConstants {
    C weight[kColumns], bias[kColumns];
  };
  template <int kStep, int kColumns>
  OFL_DEVICE void Ask(int col, ColumnConstants<kColumns>& c) const {
    AskFor<kStep>(extras.weight, col, c.weight);
    AskFor<kStep>(extras.bias, col, c.bias);
  }
  template <int kColumns>
  OFL_DEVICE void Take(ColumnConstants<kColumns>& c) const {
    TakeOr(C(1), extras.weight, c.weight);
    TakeOr(C(0), extras.bias, c.bias);
  }
  template <int kColumns>
  OFL_DEVICE void StoreColumn(int64_t row, int64_t col, const Value<1>& value, const Total& total,
                              const ColumnConstants<kColumns>& c, int k) const {
    Values<1> y = Normalised(ValuesOf(value.held), total);
    y.v[0] = y.v[0] * c.weight[k] + c.bias[k];
    store.template Store<1>(row, col, y);
  }
  // The `count` packs of a lane, the first at column col, those of a warp's lanes side by side.
  // Another pack of the row lies before and behind each.
  template <int kPacks>
  OFL_DEVICE void StorePacks(int64_t row, int64_t col, int count,
                             const Value<kPack> (&value)[kPacks], const Total& total) const {
    if (std::is_same_v<Output, float> || !extras.float_weight) {
      if (StoreWith<Output>(row, col, count, value, total)) return;
    } else if constexpr (kNarrowWeights) {
      if (StoreWith<float>(row, col, count, value, total)) return;
    }
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (k < count) Store<kPack>(row, col + k * kWarp * kPack, value[k], total);
    }
  }

 private:
  static constexpr bool kNarrowWeights = sizeof(Output) == 2;
  template <int kStep, int kColumns>
  OFL_DEVICE void AskFor(const void* weights, int col, C (&bits)[kColumns]) const {
    if (!weights) return;
    const bool narrow = kNarrowWeights && !extras.float_weight;
#pragma unroll
    for (int k = 0; k < kColumns; ++k) {
      const int at = col + k * kStep;
      if (at >= static_cast<int>(extras.cols)) continue;
      if constexpr (kNarrowWeights) {
        uint32_t word;
        if (narrow)
          word = static_cast<const uint16_t*>(weights)[at];
        else
          word = static_cast<const uint32_t*>(weights)[at];
        bits[k] = __uint_as_float(word);
      } else {
        bits[k] = this->template Weights<1>(weights, at).v[0];
      }
    }
  }
  template <int kColumns>
  OFL_DEVICE void TakeOr(C missing, const void* weights, C (&bits)[kColumns]) const {
#pragma unroll
    for (int k = 0; k < kColumns; ++k) {
      if (!weights) bits[k] = missing;
      if constexpr (kNarrowWeights) {
        if (weights && !extras.float_weight) {
          const uint16_t low = static_cast<uint16_t>(__float_as_uint(bits[k]));
          Output weight;
          memcpy(&weight, &low, sizeof(weight));
          bits[k] = ConvertTo<C>(weight);
        }
      }
    }
  }
  template <int N>
  static OFL_DEVICE Values<N> ValuesOf(const Values<N>& value) {
    return value;
  }
  template <int N>
  static OFL_DEVICE Values<N> ValuesOf(const StowedPack<Element, N>& value) {
    return ConvertPack<C>(value.Get());
  }
  template <int N>
  static OFL_DEVICE Values<N> Normalised(Values<N> y, const Total& total) {
#pragma unroll
    for (C& v : y.v) {
      if (kCentre && kStow) v -= total.mean;
      v = kCentre ? v * total.rstd + total.offset : v * total.rstd;
    }
    return y;
  }
  // StorePacks with weights, and maybe biases, of W that lie alike; false: they do not, or there is
  // no weight.
  template <class W, int kPacks>
  OFL_DEVICE bool StoreWith(int64_t row, int64_t col, int count,
                            const Value<kPack> (&value)[kPacks], const Total& total) const {
    if (!extras.weight || (!kCentre && sizeof(W) > sizeof(Output) && extras.bias)) return false;
    const WordFrame w = WordFrame::Of(static_cast<const W*>(extras.weight) + col);
    WordFrame b = w;
    if (extras.bias) b = WordFrame::Of(static_cast<const W*>(extras.bias) + col);
    if (w.past != b.past) return false;
    if (w.past == 0) {
      StoreShifted<W, -1>(row, col, count, value, total, w, b.words);
      return true;
    }
    VisitWordShift<W>(w.past, [&](auto skip) {
      StoreShifted<W, decltype(skip)::value>(row, col, count, value, total, w, b.words);
    });
    return true;
  }
  template <class W, int kSkip, int kPacks>
  OFL_DEVICE void StoreShifted(int64_t row, int64_t col, int count,
                               const Value<kPack> (&value)[kPacks], const Total& total,
                               const WordFrame& weight, const uint4* bias) const {
    using Words = WeightWords<W, kPack, kSkip>;
    // Of wide weights there are registers for one of both at a time.
    constexpr bool kLate = Words::kWhole > 1;
    const bool biased = extras.bias && (kCentre || !kLate);
    // No load passes the store of a pack: beside many packs, those that are stored leave registers
    // for the next one's weights.
    constexpr int kSlots = kPacks > 8 ? 2 : 1, kFirst = kPacks > 8 ? 4 : kPacks;
    Words w[kSlots], b[kSlots];
    const auto ask = [&](int k) {
      if (k >= kPacks || k >= count) return;
      w[k % kSlots].Load(weight.words + k * kWarp * Words::kWhole);
      if (biased && !kLate) b[k % kSlots].Load(bias + k * kWarp * Words::kWhole);
    };
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (k >= count) continue;
      if (k <= kFirst) ask(k);
      if (k >= kFirst) ask(k + 1);
      Values<kPack> y = Normalised(ValuesOf(value[k].held), total);
      y *= w[k % kSlots].Get(weight.past);
      if (biased && kLate) {
#pragma unroll
        for (C& v : y.v) PinRegister(v);
        b[0].Load(bias + k * kWarp * Words::kWhole);
      }
      if (biased) y += b[k % kSlots].Get(weight.past);
      store.template Store<kPack>(row, col + k * kWarp * kPack, y);
    }
  }
  OFL_DEVICE void Conclude(const Statistics& row, Total& total) const {
    if constexpr (kCentre) {
      const CentredSums<C> centred(row);
      Conclude(centred.mean, centred.low, centred.squares, total);
    } else {
      Conclude(0, 0, row.v[0], total);
    }
  }
  // Of the row: its mean as a sum of two, and the squares of the distances from it.
  OFL_DEVICE void Conclude(C mean, C low, C squares, Total& total) const {
    // A sum of squares that should be 0 may have been rounded below it.
    if (squares < 0) squares = 0;
    total.rstd = ReciprocalRoot(squares * extras.share + extras.eps);
    total.row_mean = mean + low;
    total.offset = ((total.mean - mean) - low) * total.rstd;
  }
};

// Blocks, by measurement (docs/lab/40-tuning-narrow-rows.md); wider ones with 6 packs a thread, see
// NormRow::InRegisters.
template <bool kCentre, class Load, class Store, bool kStow, bool kCluster>
struct ShiftedShape<NormHeldRow<kCentre, Load, Store, kStow>, kCluster, void> {
  static constexpr int kBytes = sizeof(typename Load::Element);
  static constexpr int kPacks = !kStow ? 4 : kCluster && kBytes == 2 ? 8 : 6;
  static constexpr int kThreads = !kStow     ? (kBytes == 8 ? 384 : 512)
                                  : kCluster ? (kBytes == 8 ? 256 : 320)
                                             : 384;
  static constexpr int kBlocks = kStow && kCluster ? 3 : 2;  // per SM
};
// As softmax's: more than 122,880 columns of float32.
template <bool kCentre>
struct WidestShape<NormHeldRow<kCentre, DirectLoad<float>, DirectStore<float>, true>> {
  static constexpr int kPacks = 16, kThreads = 256, kBlocks = 2;
};

}  // namespace oneflow_lite::cuda
