// SPDX-License-Identifier: Apache-2.0
//
// Loss and gradient of cross entropy in one go, as an algorithm of the row kernels (row.cuh): the
// row stays on chip while its statistics are found, so logits move through memory once each way.
#pragma once

#include "primitive/cuda/cross_entropy_rows.cuh"
#include "primitive/cuda/row.cuh"

namespace oneflow_lite {
namespace cuda {

// A sum of exponentials with the deviation that goes along.
template <class C>
struct SumAndDeviation {
  C sum = 0, deviation = 0;
};
template <class C>
__device__ __forceinline__ SumAndDeviation<C> ShuffleXor(SumAndDeviation<C> v, int mask) {
  return {ShuffleXor(v.sum, mask), ShuffleXor(v.deviation, mask)};
}
struct AddBoth {
  template <class C>
  __device__ __forceinline__ SumAndDeviation<C> operator()(const SumAndDeviation<C>& a,
                                                           const SumAndDeviation<C>& b) const {
    return {a.sum + b.sum, a.deviation + b.deviation};
  }
};

template <class T>
struct CrossEntropyInPlaceRow {
  using Element = T;
  using Output = T;
  using C = ComputeType<T>;
  static constexpr int kPack = kPackSize<T>, kInputs = 1;

  using Statistics = CrossEntropyPartial<C>;
  using Merge = MergePartials;

  CrossEntropyRows<T> p;  // p.x is what is overwritten
  DirectStore<T> dx;
  const C* scale;  // may be null
  C* loss;

  template <int N>
  struct Raw {
    Pack<T, N> input[kInputs];
  };
  struct Total {
    int64_t target = 0;
    TargetLogit<C> at;  // read before the row is overwritten
    C factor = 0;       // the scale
    Statistics row;
    C log_sum = 0, inverse = 0;  // of the row's sum
  };

  __device__ __forceinline__ int Head(int64_t row) const { return dx.Head(row); }
  __device__ __forceinline__ bool IsAligned(int64_t row, int64_t head) const {
    return IsAlignedFor<uint4>(p.x + row * p.classes + head);
  }
  template <Access kAccess, int N>
  __device__ __forceinline__ Raw<N> Load(int64_t row, int64_t col) const {
    return {{LoadFrom<kAccess, N>(DirectLoad<T>{p.x, p.classes}, row, col)}};
  }
  __device__ __forceinline__ Total Begin(int64_t row) const {
    Total total;
    total.target = p.target[row];
    total.at = TargetLogitOf(p, row, total.target);
    total.factor = scale ? *scale : C(1);
    return total;
  }
  __device__ __forceinline__ void Look(int64_t, Total&) const {}
  __device__ __forceinline__ void End(int64_t row, const Total& total) const {
    // 0 times an infinite factor, the mean over no row, is NaN.
    loss[row] = LossOf(p, total.target, total.at, total.row, total.log_sum) * total.factor;
  }

  // In registers: the maximum, then the sum of exponentials, which replace the values.
  template <int N>
  using Value = Pack<C, N>;
  static constexpr int kRounds = 2;
  static constexpr bool kClusterRegisters = false;
  template <int N>
  static __device__ __forceinline__ Value<N> Open(const Raw<N>& raw, bool present, int64_t,
                                                  const Total&) {
    Value<N> value;
    if (present) return ConvertPack<C>(raw.input[0]);
#pragma unroll
    for (C& v : value.v) v = MinusInfinity<C>();
    return value;
  }
  template <int kRound>
  static __device__ __forceinline__ auto Join() {
    return std::conditional_t<kRound == 0, Larger, AddBoth>{};
  }
  template <int kRound>
  static __device__ __forceinline__ auto Identity() {
    if constexpr (kRound == 0) {
      return MinusInfinity<C>();
    } else {
      return SumAndDeviation<C>{};
    }
  }
  template <int kRound, int N>
  __device__ __forceinline__ auto Visit(Value<N>& x, bool present, const Total& total) const {
    if constexpr (kRound == 0) {
      return MaxOf<C>(x);
    } else {
      SumAndDeviation<C> both;
#pragma unroll
      for (C& v : x.v) {
        if (p.smoothing != C(0) && present) both.deviation += v - total.at.anchor;
        v = ExpNonPositive(v - total.row.sum.max);
        both.sum += v;
      }
      return both;
    }
  }
  template <int kRound, class Found>
  __device__ __forceinline__ void Finish(const Found& found, Total& total) const {
    if constexpr (kRound == 0) {
      total.row.sum.max = found;
    } else {
      Conclude({{total.row.sum.max, found.sum}, found.deviation}, total);
    }
  }
  template <int N>
  __device__ __forceinline__ void Store(int64_t row, int64_t col, const Value<N>& e,
                                        const Total& total) const {
    Value<N> out;
    const bool counts = p.Counts(total.target);
    const C uniform = p.smoothing / static_cast<C>(p.classes);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      out.v[i] = counts ? (e.v[i] * total.inverse - uniform) * total.factor : C(0);
    }
    if (counts && total.target >= col && total.target < col + N) {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const C sharp = e.v[i] * total.inverse - uniform - (C(1) - p.smoothing);
        if (total.target == col + i) out.v[i] = sharp * total.factor;
      }
    }
    dx.template Store<N>(row, col, out);
  }

  // Streamed: every exponential is computed again when written.
  template <int N>
  __device__ __forceinline__ void Add(const Raw<N>& raw, int64_t, const Total& start,
                                      Statistics& s) const {
    const Pack<C, N> x = ConvertPack<C>(raw.input[0]);
    s.sum.Add(x);
    if (p.smoothing == C(0)) return;
#pragma unroll
    for (const C& v : x.v) s.deviation += v - start.at.anchor;
  }
  __device__ __forceinline__ void Conclude(const Statistics& row, Total& total) const {
    total.row = row;
    total.log_sum = LogOf(row.sum.sum);
    total.inverse = C(1) / row.sum.sum;
  }
  template <int N>
  __device__ __forceinline__ void StoreRaw(int64_t row, int64_t col, const Raw<N>& raw,
                                           const Total& total) const {
    Value<N> x = ConvertPack<C>(raw.input[0]);
#pragma unroll
    for (C& v : x.v) v = ExpNonPositive(v - total.row.sum.max);
    Store<N>(row, col, x, total);
  }
};

// The losses where there are no classes.
template <class T>
__global__ void CrossEntropyNoClassesKernel(CrossEntropyRows<T> p, const ComputeType<T>* scale,
                                            ComputeType<T>* loss) {
  using C = ComputeType<T>;
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t row = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; row < p.rows; row += step) {
    loss[row] = LossOf(p, p.target[row], TargetLogit<C>{}, {}, C(0)) * (scale ? *scale : C(1));
  }
}

}  // namespace cuda
}  // namespace oneflow_lite
