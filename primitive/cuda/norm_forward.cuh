// SPDX-License-Identifier: Apache-2.0
//
// layer_norm and rms_norm as an algorithm of the row kernels (row.cuh).
#pragma once

#include "primitive/cuda/norm_held.cuh"
#include "primitive/cuda/row_policy.h"

namespace oneflow_lite {
namespace cuda {

struct NoResidual {};

// kCentre: layer_norm. Residual: a Load functor like Load_, or NoResidual.
template <bool kCentre, class Load_, class Residual, class Store_>
struct NormRow {
  using Element = typename Load_::Element;
  using Output = typename Store_::Element;
  using C = ComputeType<Output>;
  static constexpr bool kResidual = !std::is_same_v<Residual, NoResidual>;
  static constexpr int kPack = kPackSize<Output>, kInputs = kResidual ? 2 : 1;

  Load_ load;
  Residual residual;
  Store_ store;
  NormExtras<Output, C> extras;

  template <int N>
  struct Raw {
    Pack<Element, N> input[kInputs];
  };
  struct Total {
    C mean = 0, low = 0, squares = 0, rstd = 0;
  };

  __device__ __forceinline__ int Head(int64_t row) const { return store.Head(row); }
  __device__ __forceinline__ bool IsAligned(int64_t row, int64_t head) const {
    if constexpr (kResidual) {
      if (!cuda::IsAligned(residual, row, head)) return false;
    }
    return cuda::IsAligned(load, row, head);
  }
  template <Access kAccess, int N>
  __device__ __forceinline__ Raw<N> Load(int64_t row, int64_t col) const {
    Raw<N> raw;
    raw.input[0] = LoadFrom<kAccess, N>(load, row, col);
    if constexpr (kResidual) raw.input[1] = LoadFrom<kAccess, N>(residual, row, col);
    return raw;
  }
  // Rows in registers have an algorithm of their own where their words can be loaded as they lie.
  static constexpr bool kShifts = !kResidual && HasShiftedLoads<Load_, kPack>;
  bool LiesAlike() const { return cuda::IsAlignedEverywhere(load, store); }
  // Wide rows stay packed: more bytes are in flight. Half, 12288 columns: layer_norm 1.04 of a
  // copy, 0.84 converted; 4096 columns: 0.90, 0.95 converted.
  template <bool kWide>
  NormHeldRow<kCentre, Load_, Store_, kWide> InRegisters() const {
    return {load, store, extras};
  }
  __device__ __forceinline__ Total Begin(int64_t) const { return {}; }
  __device__ __forceinline__ void Look(int64_t, Total&) const {}
  __device__ __forceinline__ void End(int64_t row, const Total& total) const {
    if (kCentre && extras.mean) extras.mean[row] = total.mean + total.low;
    if (extras.rstd) extras.rstd[row] = total.rstd;
  }

  // In registers, in the type in memory: widened, a row would take twice the registers. layer_norm
  // first adds the values up, then their distances from that mean and the squares of these;
  // rms_norm adds the squares. The sum with a residual is what the output type holds of it.
  using Kept = std::conditional_t<kResidual, Output, Element>;
  template <int N>
  using Value = StowedPack<Kept, N>;
  static constexpr int kRounds = kCentre ? 2 : 1;
  static constexpr bool kClusterRegisters = !kCentre;
  template <int kRound>
  using Sums = SumOf<C, kCentre && kRound == 1 ? 2 : 1>;

  template <int N>
  static __device__ __forceinline__ Pack<Kept, N> KeptOf(const Raw<N>& raw) {
    if constexpr (kResidual) {
      const auto x = ConvertPack<C>(raw.input[0]), residual = ConvertPack<C>(raw.input[1]);
      Pack<C, N> sum;
#pragma unroll
      for (int i = 0; i < N; ++i) sum.v[i] = x.v[i] + residual.v[i];
      return ConvertPack<Kept>(sum);
    } else {
      return raw.input[0];
    }
  }
  template <int N>
  static __device__ __forceinline__ Value<N> Open(const Raw<N>& raw, bool, int64_t, const Total&) {
    return Value<N>::Of(KeptOf<N>(raw));
  }
  template <int>
  static __device__ __forceinline__ Plus Join() {
    return {};
  }
  template <int kRound>
  static __device__ __forceinline__ Sums<kRound> Identity() {
    return {};
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
    StoreKept<N>(row, col, value.Get(), total);
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
    const auto x = ConvertPack<C>(KeptOf<N>(raw));
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
    StoreKept<N>(row, col, KeptOf<N>(raw), total);
  }

 private:
  template <int N>
  __device__ __forceinline__ void StoreKept(int64_t row, int64_t col, const Pack<Kept, N>& x,
                                            const Total& total) const {
    Pack<C, N> y = ConvertPack<C>(x);
#pragma unroll
    for (C& v : y.v) v = (kCentre ? (v - total.mean) - total.low : v) * total.rstd;
    if (extras.weight) {
      const Pack<C, N> w = Weights<N>(extras.weight, col);
#pragma unroll
      for (int i = 0; i < N; ++i) y.v[i] *= w.v[i];
    }
    if (extras.bias) {
      const Pack<C, N> b = Weights<N>(extras.bias, col);
#pragma unroll
      for (int i = 0; i < N; ++i) y.v[i] += b.v[i];
    }
    if constexpr (kResidual) {
      if (extras.sum) StorePack(extras.sum + row * extras.cols + col, x);
    }
    store.template Store<N>(row, col, y);
  }
  __device__ __forceinline__ void SetScale(Total& total) const {
    // A sum of squares that should be 0 may have been rounded below it.
    const C squares = total.squares < 0 ? C(0) : total.squares;
    total.rstd = ReciprocalRoot(squares * extras.share + extras.eps);
  }
  template <int N>
  __device__ __forceinline__ Pack<C, N> Weights(const void* weights, int64_t col) const {
    return LoadWeights<C, N, Output>(weights, extras.float_weight, col, 0, N, C(0));
  }
};

}  // namespace cuda
}  // namespace oneflow_lite
