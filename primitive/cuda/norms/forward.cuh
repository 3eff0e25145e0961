// SPDX-License-Identifier: Apache-2.0
//
// layer_norm and rms_norm as an algorithm of the row kernels (rows/row.cuh).
#pragma once

#include "primitive/cuda/norms/held.cuh"
#include "primitive/cuda/rows/policy.h"

namespace oneflow_lite::cuda {

// kCentre: layer_norm.
template <bool kCentre, class Load_, class Store_>
struct NormRow : NormTensors<Load_, Store_> {
  using Tensors = NormTensors<Load_, Store_>;
  using Tensors::extras, Tensors::kPack, Tensors::load, Tensors::store, typename Tensors::C,
      typename Tensors::Element;
  template <int N>
  using Raw = typename Tensors::template Raw<N>;

  struct Total {
    C mean = 0, low = 0, squares = 0, rstd = 0;
  };

  __device__ __forceinline__ bool IsAligned(int64_t row, int64_t head) const {
    return cuda::IsAligned(load, row, head);
  }
  // Rows in registers have an algorithm of their own where their words can be loaded as they lie.
  static constexpr unsigned kOffers = RowOffers::kInRegisters | ShiftsOf<Load_, kPack>;
  bool LiesAlike() const { return cuda::IsAlignedEverywhere(load, store); }
  // Wide rows stay packed: more bytes are in flight. Half, 12288 columns: layer_norm 1.04 of a
  // copy, 0.84 converted; 4096 columns: 0.90, 0.95 converted.
  template <bool kWide>
  NormHeldRow<kCentre, Load_, Store_, kWide> InRegisters() const {
    return {{load, store, extras}};
  }
  __device__ __forceinline__ Total Begin(int64_t) const { return {}; }
  __device__ __forceinline__ void End(int64_t row, const Total& total) const {
    if (kCentre && extras.mean) extras.mean[row] = total.mean + total.low;
    if (extras.rstd) extras.rstd[row] = total.rstd;
  }

  // In registers, in the type in memory: widened, a row would take twice the registers. layer_norm
  // first adds the values up, then their distances from that mean and the squares of these;
  // rms_norm adds the squares.
  template <int N>
  using Value = StowedPack<Element, N>;
  static constexpr int kRounds = kCentre ? 2 : 1, kMaxima = 0;
  static constexpr bool kClusterRegisters = !kCentre;
  template <int kRound>
  using Sums = SumOf<C, kCentre && kRound == 1 ? 2 : 1>;

  template <int N>
  static __device__ __forceinline__ Value<N> Open(const Raw<N>& raw, bool, int64_t, const Total&) {
    return Value<N>::Of(raw.input[0]);
  }
  template <int kRound, int N>
  __device__ __forceinline__ Sums<kRound> Visit(Value<N>& x, bool present,
                                                const Total& total) const {
    Sums<kRound> sums;
    if (!present) return sums;
    const auto values = ConvertPack<C>(x.Get());
#pragma unroll
    for (const C& v : values.v) {
      if constexpr (!kCentre) {
        sums.v[0] += v * v;
      } else if constexpr (kRound == 0) {
        sums.v[0] += v;
      } else {
        const C d = v - total.mean;
        sums.v[0] += d;
        sums.v[1] += d * d;
      }
    }
    return sums;
  }
  template <int kRound>
  __device__ __forceinline__ void Finish(const Sums<kRound>& sums, Total& total) const {
    if constexpr (!kCentre) {
      total.squares = sums.v[0];
      SetScale(total);
    } else if constexpr (kRound == 0) {
      total.mean = DividedBy(static_cast<C>(extras.cols), extras.share, sums.v[0]);
    } else {
      total.low = DividedBy(static_cast<C>(extras.cols), extras.share, sums.v[0]);
      total.squares = sums.v[1] - sums.v[0] * total.low;
      SetScale(total);
    }
  }
  template <int N>
  __device__ __forceinline__ void Store(int64_t row, int64_t col, const Value<N>& value,
                                        const Total& total) const {
    Write<N>(row, col, value.Get(), total);
  }

  // Of parts of a row.
  using Statistics = std::conditional_t<kCentre, PivotSums<C>, SumOf<C, 1>>;
  using Merge = std::conditional_t<kCentre, MergePivotSums, Plus>;
  static __device__ __forceinline__ Statistics Gathered(const Total& part) {
    static_assert(!kCentre, "a part's mean would have to be that of its own columns");
    return {{part.squares}};
  }
  __device__ __forceinline__ void Rebase(const Statistics& row, Total& total) const {
    Conclude(row, total);
  }
  __device__ __forceinline__ void Conclude(const Statistics& s, Total& total) const {
    if constexpr (kCentre) {
      const CentredSums<C> centred(s);
      total.mean = centred.mean;
      total.low = centred.low;
      total.squares = centred.squares;
    } else {
      total.squares = s.v[0];
    }
    SetScale(total);
  }

  // Streamed.
  template <int N>
  __device__ __forceinline__ void Add(const Raw<N>& raw, int64_t, const Total&,
                                      Statistics& s) const {
    const auto x = ConvertPack<C>(raw.input[0]);
    if constexpr (kCentre) {
      s.Add(x);
    } else {
      C square = 0;
#pragma unroll
      for (const C& v : x.v) square += v * v;
      s.v[0] += square;
    }
  }
  template <int N>
  __device__ __forceinline__ void StoreRaw(int64_t row, int64_t col, const Raw<N>& raw,
                                           const Total& total) const {
    Write<N>(row, col, raw.input[0], total);
  }

 private:
  template <int N>
  __device__ __forceinline__ void Write(int64_t row, int64_t col, const Pack<Element, N>& x,
                                        const Total& total) const {
    Pack<C, N> y = ConvertPack<C>(x);
#pragma unroll
    for (C& v : y.v) v = (kCentre ? (v - total.mean) - total.low : v) * total.rstd;
    if (extras.weight) y *= this->template Weights<N>(extras.weight, col);
    if (extras.bias) y += this->template Weights<N>(extras.bias, col);
    store.template Store<N>(row, col, y);
  }
  __device__ __forceinline__ void SetScale(Total& total) const {
    // A sum of squares that should be 0 may have been rounded below it.
    const C squares = total.squares < 0 ? C(0) : total.squares;
    total.rstd = ReciprocalRoot(squares * extras.share + extras.eps);
  }
};

}  // namespace oneflow_lite::cuda
