// SPDX-License-Identifier: Apache-2.0
//
// layer_norm and rms_norm as an algorithm of the row kernels (rows/row.cuh): in registers as
// norms/held.cuh has them, and streamed.
#pragma once

#include "primitive/cuda/norms/held.cuh"
#include "primitive/cuda/rows/policy.h"

namespace oneflow_lite::cuda {

// kCentre: layer_norm. In registers the values stay in the type in memory: widened, a row would
// take twice the registers.
template <bool kCentre, class Load_, class Store_>
class NormRow : NormHeldRow<kCentre, Load_, Store_, true> {
  using Held = NormHeldRow<kCentre, Load_, Store_, true>;

 public:
  using Held::extras, Held::kInputs, Held::kMaxima, Held::kPack, Held::kRounds, Held::load,
      Held::store;
  using typename Held::C, typename Held::Element, typename Held::Output, typename Held::Merge,
      typename Held::Statistics;
  template <int N>
  using Raw = typename Held::template Raw<N>;
  template <int N>
  using Value = typename Held::template Value<N>;
  static constexpr bool kClusterRegisters = !kCentre;  // a part's mean would have to be its own
  // Rows in registers have an algorithm of their own where their words can be loaded as they lie.
  static constexpr unsigned kOffers =
      RowOffers::kInRegisters | RowOffers::kStorePacks | ShiftsOf<Load_, kPack>;

  struct Total : Held::Total {
    C low = 0;  // of the mean, where the row is streamed
  };

  __host__ __device__ NormRow(const NormTensors<Load_, Store_>& tensors) : Held{tensors} {}

  OFL_DEVICE bool IsAligned(int64_t row, int64_t head) const {
    return cuda::IsAligned(load, row, head);
  }
  bool LiesAlike() const { return cuda::IsAlignedEverywhere(load, store); }
  // Wide rows stay packed: more bytes are in flight (docs/lab/08-shifted-rows.md).
  template <bool kWide>
  NormHeldRow<kCentre, Load_, Store_, kWide> InRegisters() const {
    return {{load, store, extras}};
  }
  OFL_DEVICE Total Begin(int64_t row) const { return {Held::Begin(row)}; }
  using Held::End, Held::Finish, Held::Gathered, Held::Head, Held::Load, Held::Look, Held::Open,
      Held::Rebase, Held::Store, Held::Visit;
  template <int kPacks>
  OFL_DEVICE void StorePacks(int64_t row, int64_t col, int count,
                             const Value<kPack> (&value)[kPacks], const Total& total) const {
    Held::template StorePacks<kPacks>(row, col, count, value, total);
  }

  // Streamed.
  template <int N>
  OFL_DEVICE void Add(const Raw<N>& raw, int64_t, const Total&, Statistics& s) const {
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
  OFL_DEVICE void Conclude(const Statistics& s, Total& total) const {
    if constexpr (kCentre) {
      const CentredSums<C> centred(s);
      total.mean = centred.mean;
      total.low = centred.low;
      total.squares = centred.squares;
    } else {
      total.squares = s.v[0];
    }
    total.row_mean = total.mean + total.low;
    // A sum of squares that should be 0 may have been rounded below it.
    const C squares = total.squares < 0 ? C(0) : total.squares;
    total.rstd = ReciprocalRoot(squares * extras.share + extras.eps);
  }
  template <int N>
  OFL_DEVICE void StoreRaw(int64_t row, int64_t col, const Raw<N>& raw, const Total& total) const {
    Pack<C, N> y = ConvertPack<C>(raw.input[0]);
#pragma unroll
    for (C& v : y.v) v = (kCentre ? (v - total.mean) - total.low : v) * total.rstd;
    this->template Weigh<N>(col, y);
    store.template Store<N>(row, col, y);
  }
};

}  // namespace oneflow_lite::cuda
