// SPDX-License-Identifier: Apache-2.0
//
// softmax and log_softmax as an algorithm of the row kernels (row.cuh).
#pragma once

#include "primitive/cuda/row_io.cuh"
#include "primitive/cuda/row_policy.h"
#include "primitive/cuda/softmax_math.cuh"

namespace oneflow_lite {
namespace cuda {

template <bool kLog, class Load_, class Store_>
struct SoftmaxRow {
  using Element = typename Load_::Element;
  using Output = typename Store_::Element;
  using C = ComputeType<Output>;
  static constexpr int kPack = kPackSize<Output>, kInputs = 1;

  using Statistics = OnlineSum<C>;
  using Merge = MergeOnline;

  Load_ load;
  Store_ store;

  template <int N>
  struct Raw {
    Pack<Element, N> input[kInputs];
  };
  struct Total {
    C max = MinusInfinity<C>();
    C scale = 0;  // 1 / sum of exp(x - max), or minus its logarithm
  };

  __device__ __forceinline__ int Head(int64_t row) const { return store.Head(row); }
  __device__ __forceinline__ bool IsAligned(int64_t row, int64_t head) const {
    return cuda::IsAligned(load, row, head);
  }
  bool IsWhole(int64_t cols) const {
    return cols % kPack == 0 && cuda::AllAligned(load) && cuda::AllAligned(store);
  }
  template <Access kAccess, int N>
  __device__ __forceinline__ Raw<N> Load(int64_t row, int64_t col) const {
    return {{LoadFrom<kAccess, N>(load, row, col)}};
  }
  __device__ __forceinline__ Total Begin(int64_t) const { return {}; }
  __device__ __forceinline__ void End(int64_t, const Total&) const {}

  // In registers: the maximum, then the sum of exponentials, which replace the values (the
  // logarithm keeps x - max). Columns that are not there hold -inf, which adds nothing.
  template <int N>
  using Value = Pack<C, N>;
  static constexpr int kRounds = 2;
  static constexpr bool kClusterRegisters = false;  // two reductions: slower than shared memory
  template <int N>
  static __device__ __forceinline__ Value<N> Open(const Raw<N>& raw, bool present) {
    Value<N> value;
    if (present) return ConvertPack<C>(raw.input[0]);
#pragma unroll
    for (C& v : value.v) v = MinusInfinity<C>();
    return value;
  }
  template <int kRound>
  static __device__ __forceinline__ auto Join() {
    return std::conditional_t<kRound == 0, Larger, Plus>{};
  }
  template <int kRound>
  static __device__ __forceinline__ C Identity() {
    return kRound == 0 ? MinusInfinity<C>() : C(0);
  }
  template <int kRound, int N>
  __device__ __forceinline__ C Visit(Value<N>& x, bool, const Total& total) const {
    if constexpr (kRound == 0) return MaxOf<C>(x);
    C sum = 0;
#pragma unroll
    for (C& v : x.v) {
      const C d = v - total.max, e = ExpNonPositive(d);
      sum += e;
      v = kLog ? d : e;
    }
    return sum;
  }
  template <int kRound>
  static __device__ __forceinline__ void Finish(C found, Total& total) {
    if constexpr (kRound == 0) {
      total.max = found;
    } else {
      Conclude({total.max, found}, total);
    }
  }
  template <int N>
  __device__ __forceinline__ void Store(int64_t row, int64_t col, const Value<N>& value,
                                        const Total& total) const {
    Value<N> y;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      y.v[i] = kLog ? value.v[i] + total.scale : value.v[i] * total.scale;
    }
    store.template Store<N>(row, col, y);
  }

  // Streamed: maximum and sum at once; every exponential is computed again when written.
  template <int N>
  __device__ __forceinline__ void Add(const Raw<N>& raw, const Total&, Statistics& s) const {
    s.Add(ConvertPack<C>(raw.input[0]));
  }
  static __device__ __forceinline__ void Conclude(const OnlineSum<C>& row, Total& total) {
    total = {row.max, kLog ? -LogOf(row.sum) : C(1) / row.sum};
  }
  template <int N>
  __device__ __forceinline__ void StoreRaw(int64_t row, int64_t col, const Raw<N>& raw,
                                           const Total& total) const {
    Value<N> x = ConvertPack<C>(raw.input[0]);
#pragma unroll
    for (C& v : x.v) {
      v -= total.max;
      if constexpr (!kLog) v = ExpNonPositive(v);
    }
    Store<N>(row, col, x, total);
  }
};

}  // namespace cuda
}  // namespace oneflow_lite
