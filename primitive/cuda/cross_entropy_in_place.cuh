// SPDX-License-Identifier: Apache-2.0
//
// Loss and gradient of cross entropy in one go, as an algorithm of the row kernels (row.cuh): the
// row stays on chip while its statistics are found, so logits move through memory once each way.
#pragma once

#include "primitive/cuda/cross_entropy_rows.cuh"
#include "primitive/cuda/row.cuh"

namespace oneflow_lite {
namespace cuda {

// What the parts of a row tell each other. The target's logit goes along, so that it has been read
// before any of them overwrites it.
template <class C>
struct InPlacePartial {
  CrossEntropyPartial<C> row;
  C target_logit = MinusInfinity<C>();
};
template <class C>
__device__ __forceinline__ InPlacePartial<C> ShuffleXor(InPlacePartial<C> v, int mask) {
  return {ShuffleXor(v.row, mask), ShuffleXor(v.target_logit, mask)};
}
struct MergeInPlace {
  template <class C>
  __device__ __forceinline__ InPlacePartial<C> operator()(const InPlacePartial<C>& a,
                                                          const InPlacePartial<C>& b) const {
    return {MergePartials{}(a.row, b.row), Larger{}(a.target_logit, b.target_logit)};
  }
};
template <int kLanes, class C>
__device__ __forceinline__ InPlacePartial<C> ReduceLanes(const InPlacePartial<C>& v, MergeInPlace) {
  return {
      {ReduceLanes<kLanes>(v.row.sum, MergeOnline{}), ReduceLanes<kLanes>(v.row.deviation, Plus{})},
      ReduceLanes<kLanes>(v.target_logit, Larger{})};
}

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

  using Statistics = InPlacePartial<C>;
  using Merge = MergeInPlace;

  CrossEntropyRows<T> p;
  DirectLoad<T> x;  // p.x, which is what is overwritten
  DirectStore<T> dx;
  const C* scale;  // may be null
  C* loss;

  template <int N>
  struct Raw {
    Pack<T, N> input[kInputs];
  };
  struct Total {
    int64_t target = 0;
    CrossEntropyPartial<C> row;
    C target_logit = MinusInfinity<C>();
    C anchor = 0;  // of the deviation
    C factor = 0;  // the scale
    C gain = 0;    // factor / sum
  };

  __device__ __forceinline__ CrossEntropyInPlaceRow At(int64_t row) const {
    CrossEntropyInPlaceRow here = *this;
    here.x = {x.x + row * x.row_stride, 0};
    here.dx = {dx.y + row * dx.row_stride, 0};
    return here;
  }
  __device__ __forceinline__ int Head(int64_t row) const { return dx.Head(row); }
  __device__ __forceinline__ bool IsAligned(int64_t row, int64_t head) const {
    return x.IsAligned(row, head);
  }
  template <Access kAccess, int N>
  __device__ __forceinline__ Raw<N> Load(int64_t row, int64_t col) const {
    return {{LoadFrom<kAccess, N>(x, row, col)}};
  }
  // The target's logit is two loads in turn away: where the deviation does not want it from the
  // first column on, it is asked for behind those of the row.
  __device__ __forceinline__ Total Begin(int64_t row) const {
    Total total;
    total.target = p.target[row];
    total.factor = scale ? *scale : C(1);
    if (p.smoothing != C(0)) {
      const TargetLogit<C> at = TargetLogitOf(p, row, total.target);
      total.target_logit = at.x;
      total.anchor = at.anchor;
    }
    return total;
  }
  __device__ __forceinline__ void Look(int64_t row, Total& total) const {
    if (p.smoothing == C(0)) total.target_logit = TargetLogitOf(p, row, total.target).x;
  }
  __device__ __forceinline__ void End(int64_t row, const Total& total) const {
    // 0 times an infinite factor, the mean over no row, is NaN.
    loss[row] = LossOf(p, total.target, TargetLogit<C>{total.target_logit, total.anchor}, total.row,
                       LogOf(total.row.sum.sum)) *
                total.factor;
  }

  // In registers, as they lie in memory: the maximum, then the sum of exponentials, which are
  // computed again when written.
  template <int N>
  struct Value {
    StowedPack<T, N> x;
  };
  static constexpr int kRounds = 2;
  static constexpr bool kClusterRegisters = true;
  template <int N>
  static __device__ __forceinline__ Value<N> Open(const Raw<N>& raw, bool, int64_t, const Total&) {
    return {StowedPack<T, N>::Of(raw.input[0])};
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
  __device__ __forceinline__ auto Visit(const Value<N>& value, bool present,
                                        const Total& total) const {
    auto found = Identity<kRound>();
    if (!present) return found;
    if constexpr (kRound == 0) {
      found = MaxOf<C>(value.x.Get());
    } else {
      const Pack<C, N> x = ConvertPack<C>(value.x.Get());
      const C max = OnlineSum<C>::Finite(total.row.sum.max);
#pragma unroll
      for (const C& v : x.v) found.sum += ExpNonPositive(v - max);
      if (p.smoothing != C(0)) found.deviation = DeviationOf(x, total.anchor);
    }
    return found;
  }
  template <int kRound, class Found>
  __device__ __forceinline__ void Finish(const Found& found, Total& total) const {
    if constexpr (kRound == 0) {
      total.row.sum.max = found;
    } else {
      Conclude({{{total.row.sum.max, found.sum}, found.deviation}, total.target_logit}, total);
    }
  }
  static __device__ __forceinline__ Statistics Gathered(const Total& part) {
    return {part.row, part.target_logit};
  }
  __device__ __forceinline__ void Rebase(const Statistics& row, Total& total) const {
    Conclude(row, total);
  }
  template <int N>
  __device__ __forceinline__ void Store(int64_t row, int64_t col, const Value<N>& value,
                                        const Total& total) const {
    Write<N>(row, col, value.x.Get(), total);
  }

  // Streamed: the target's logit is met on the way.
  template <int N>
  __device__ __forceinline__ void Add(const Raw<N>& raw, int64_t col, const Total& start,
                                      Statistics& s) const {
    const Pack<C, N> x = ConvertPack<C>(raw.input[0]);
    s.row.sum.Add(x);
    if (start.target >= col && start.target < col + N) {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        if (start.target == col + i) s.target_logit = x.v[i];
      }
    }
    if (p.smoothing != C(0)) s.row.deviation += DeviationOf(x, start.anchor);
  }
  __device__ __forceinline__ void Conclude(const Statistics& s, Total& total) const {
    total.row = s.row;
    total.target_logit = s.target_logit;
    total.gain = total.factor / s.row.sum.sum;
  }
  template <int N>
  __device__ __forceinline__ void StoreRaw(int64_t row, int64_t col, const Raw<N>& raw,
                                           const Total& total) const {
    Write<N>(row, col, raw.input[0], total);
  }

 private:
  template <int N>
  static __device__ __forceinline__ C DeviationOf(const Pack<C, N>& x, C anchor) {
    C deviation = 0;
#pragma unroll
    for (const C& v : x.v) deviation += v - anchor;
    return deviation;
  }
  // dx = factor (exp(x - max) / sum - smoothing / classes), less factor (1 - smoothing) at the
  // target; 0 in a row that does not count, whatever it holds.
  template <int N>
  __device__ __forceinline__ void Write(int64_t row, int64_t col, const Pack<T, N>& raw,
                                        const Total& total) const {
    if (!p.Counts(total.target)) {
      dx.template Store<N>(row, col, Pack<C, N>{});
      return;
    }
    Pack<C, N> x = ConvertPack<C>(raw);
    const C uniform = p.smoothing / static_cast<C>(p.classes) * total.factor;
#pragma unroll
    for (C& v : x.v) v = ExpNonPositive(v - total.row.sum.max) * total.gain - uniform;
    if (total.target >= col && total.target < col + N) {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        if (total.target == col + i) x.v[i] -= (C(1) - p.smoothing) * total.factor;
      }
    }
    dx.template Store<N>(row, col, x);
  }
};

// What is read lies as what is written does: it is the same memory.
template <class T>
struct BlockShape<CrossEntropyInPlaceRow<T>> : BlockBounds<ComputeType<T>> {
  static constexpr bool kAligned = true;
  static constexpr int kPacks = RowPolicy::kBlockPacks;
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
