// SPDX-License-Identifier: Apache-2.0
//
// The losses of cross entropy, and what their gradient needs, as an algorithm of the row kernels
// (primitive/cuda/rows/row.cuh) that writes no row.
#pragma once

#include "primitive/cuda/cross_entropy/cross_entropy.cuh"
#include "primitive/cuda/norms/sums.cuh"
#include "python/torch/invariant/own_columns.cuh"

namespace oneflow_lite {
namespace cuda {

// kSmooth: whether there is smoothing.
template <class T, bool kSmooth>
struct CrossEntropyLossRow {
  using Element = T;
  using Output = T;
  using C = ComputeType<T>;
  static constexpr int kPack = kPackSize<T>, kInputs = 1;
  static constexpr unsigned kOffers = RowOffers::kShifts;
  static constexpr bool kWrites = false;
  using Statistics = CrossEntropyPartial<C>;
  using Merge = MergePartials;

  CrossEntropyRows<T> p;
  C* loss;
  C* stats;

  template <int N>
  struct Raw {
    Pack<T, N> input[kInputs];
  };
  template <int N>
  using Value = StowedPack<T, N>;
  struct Total {
    C max = MinusInfinity<C>();
    C sum = 0, deviation = 0, anchor = 0;
    int64_t target = 0;
  };

  template <Access kAccess, int N>
  __device__ __forceinline__ Raw<N> Load(int64_t row, int64_t col) const {
    return {{LoadFrom<kAccess, N>(DirectLoad<T>{p.x, p.row_stride}, row, col)}};
  }
  __device__ __forceinline__ int Head(int64_t) const { return 0; }
  __device__ __forceinline__ WordFrame Frame(int, int64_t row, int64_t col) const {
    return DirectLoad<T>{p.x, p.row_stride}.Frame(row, col);
  }
  __device__ __forceinline__ Total Begin(int64_t row) const {
    Total total;
    if (kSmooth) total.anchor = AnchorOf(p, p.x + row * p.row_stride);
    return total;
  }
  __device__ __forceinline__ void Look(int64_t row, Total& total) const {
    total.target = p.target[row];
  }
  __device__ __forceinline__ void End(int64_t row, const Total& total) const {
    const int64_t target = total.target;
    Statistics part;
    part.sum = {total.max, total.sum};
    part.deviation = total.deviation;
    WriteLoss(p, loss, stats, row, target, TargetLogitOf(p, row, target), total.anchor, part);
  }

  // In registers: the maximum, then the sum of exponentials and the deviation.
  static constexpr int kRounds = 2, kMaxima = 1;
  static constexpr bool kClusterRegisters = false;
  template <int kRound>
  using Sum = std::conditional_t<kRound == 0, C, SumOf<C, 2>>;
  template <int N>
  static __device__ __forceinline__ Value<N> Open(const Raw<N>& raw, bool, int64_t, const Total&) {
    return Value<N>::Of(raw.input[0]);
  }
  template <int kRound, int N>
  __device__ __forceinline__ Sum<kRound> Visit(Value<N>& value, bool present,
                                               const Total& total) const {
    auto sum = internal::IdentityOf<kRound, CrossEntropyLossRow>();
    if (!present) return sum;
    const Pack<C, N> x = ConvertPack<C>(value.Get());
    if constexpr (kRound == 0) {
      sum = MaxOf<C>(value.Get());
    } else {
      const C max = OnlineSum<C>::Finite(total.max);
#pragma unroll
      for (const C& v : x.v) sum.v[0] += ExpNonPositive(v - max);
      if (kSmooth) sum.v[1] = DeviationOf(x, total.anchor);
    }
    return sum;
  }
  template <int kRound>
  static __device__ __forceinline__ void Finish(const Sum<kRound>& sum, Total& total) {
    if constexpr (kRound == 0) {
      total.max = sum;
    } else {
      total.sum = sum.v[0];
      total.deviation = sum.v[1];
    }
  }
  // Of parts of a row.
  static __device__ __forceinline__ Statistics Gathered(const Total& part) {
    return {{part.max, part.sum}, part.deviation};
  }
  static __device__ __forceinline__ void Rebase(const Statistics& row, Total& total) {
    Conclude(row, total);
  }
  template <int N>
  __device__ __forceinline__ void Store(int64_t, int64_t, const Value<N>&, const Total&) const {}

  // Streamed.
  template <int N>
  __device__ __forceinline__ void Add(const Raw<N>& raw, int64_t, const Total& start,
                                      Statistics& s) const {
    const Pack<C, N> x = ConvertPack<C>(raw.input[0]);
    s.sum.Add(x);
    if (kSmooth) s.deviation += DeviationOf(x, start.anchor);
  }
  static __device__ __forceinline__ void Conclude(const Statistics& s, Total& total) {
    total.max = s.sum.max;
    total.sum = s.sum.sum;
    total.deviation = s.deviation;
  }
  template <int N>
  __device__ __forceinline__ void StoreRaw(int64_t, int64_t, const Raw<N>&, const Total&) const {}
};

// 16384 x 4097 of float32: 65 us, by the registers of a block 73 us; x 8191 123 and 141 us.
// Of bfloat16 registers are faster: x 8191 67 us.
template <class T, bool kSmooth>
inline constexpr int64_t kStagedAbove<CrossEntropyLossRow<T, kSmooth>> = sizeof(T) == 4 ? 960
                                                                                        : INT64_MAX;
// 16384 x 1001 of float32: 19 us, by two warps 25 us.
template <class T, bool kSmooth>
inline constexpr int kMostOfWarp<CrossEntropyLossRow<T, kSmooth>> = sizeof(T) == 8 ? 128 : 256;

}  // namespace cuda
}  // namespace oneflow_lite
