// SPDX-License-Identifier: Apache-2.0
//
// The gradient of scale_mask/scale_mask_softmax.cuh as an algorithm of the row kernels
// (rows/row.cuh):
//
//   dx = scale y (dy - sum(y dy))
//
// The mask has played its part in y. What causality hides is not read and becomes 0, also in a row
// whose sum is NaN.
#pragma once

#include "primitive/cuda/chip/compensated_sum.cuh"
#include "primitive/cuda/rows/masks.cuh"

namespace oneflow_lite::cuda {

template <class T>
struct ScaleMaskBackwardRow {
  using Element = T;
  using Output = T;
  using C = ComputeType<T>;
  static constexpr int kPack = kPackSize<T>, kInputs = 2;
  static constexpr unsigned kOffers =
      RowOffers::kAt | RowOffers::kSeen | RowOffers::kAlignedEverywhere;

  using Statistics = CompensatedSum<C>;
  using Merge = MergeCompensated;

  DirectLoad<T> y, dy;
  DirectStore<T> dx;
  C scale;
  CausalRows<uint64_t> causal;

  template <int N>
  struct Raw {
    Pack<T, N> input[kInputs];  // y, dy
  };
  struct Total {
    int64_t visible = 0;  // columns
    C sum = 0;
  };

  bool IsAlignedEverywhere() const {
    return cuda::IsAlignedEverywhere(y, dx) && cuda::IsAlignedEverywhere(dy, dx);
  }
  __device__ __forceinline__ ScaleMaskBackwardRow At(int64_t row) const {
    return {y.At(row), dy.At(row), dx.At(row), scale, causal.At(row)};
  }
  __device__ __forceinline__ int Head(int64_t row) const { return dx.Head(row); }
  __device__ __forceinline__ bool IsAligned(int64_t row, int64_t head) const {
    return y.IsAligned(row, head) && dy.IsAligned(row, head);
  }
  template <Access kAccess, int N>
  __device__ __forceinline__ Raw<N> Load(int64_t row, int64_t col) const {
    return {{LoadFrom<kAccess, N>(y, row, col), LoadFrom<kAccess, N>(dy, row, col)}};
  }
  __device__ __forceinline__ Total Begin(int64_t row) const {
    Total total;
    total.visible = causal.Visible(row);
    return total;
  }
  __device__ __forceinline__ int64_t Seen(int64_t row, int64_t) const {
    return causal.Visible(row);
  }
  __device__ __forceinline__ void Look(int64_t, Total&) const {}
  __device__ __forceinline__ void End(int64_t, const Total&) const {}

  // Both stay in their own dtype; 0 where they are hidden.
  template <int N>
  struct Value {
    StowedPack<T, N> y, dy;
    __device__ __forceinline__ Raw<N> Get() const { return {{y.Get(), dy.Get()}}; }
  };
  static constexpr int kRounds = 1, kMaxima = 0;
  static constexpr bool kClusterRegisters = true;
  template <int N>
  __device__ __forceinline__ Value<N> Open(const Raw<N>& raw, bool present, int64_t col,
                                           const Total& total) const {
    return Visible(raw, present ? VisibleOf<N>(total.visible, col) : N);
  }
  template <int, int N>
  __device__ __forceinline__ C Visit(Value<N>& value, bool present, const Total&) const {
    return present ? Terms(value.Get()) : C(0);
  }
  template <int>
  static __device__ __forceinline__ void Finish(C sum, Total& total) {
    total.sum = sum;
  }
  static __device__ __forceinline__ Statistics Gathered(const Total& part) { return {part.sum, 0}; }
  static __device__ __forceinline__ void Rebase(const Statistics& row, Total& total) {
    Conclude(row, total);
  }
  template <int N>
  __device__ __forceinline__ void Store(int64_t row, int64_t col, const Value<N>& value,
                                        const Total& total) const {
    StoreRaw<N>(row, col, value.Get(), total);
  }

  // Streamed: the terms of many packs are added with their rounding errors kept.
  template <int N>
  __device__ __forceinline__ void Add(const Raw<N>& raw, int64_t col, const Total& start,
                                      Statistics& s) const {
    s.Add(Terms(Visible(raw, VisibleOf<N>(start.visible, col)).Get()));
  }
  static __device__ __forceinline__ void Conclude(const Statistics& s, Total& total) {
    total.sum = s.Get();
  }
  template <int N>
  __device__ __forceinline__ void StoreRaw(int64_t row, int64_t col, const Raw<N>& raw,
                                           const Total& total) const {
    const int left = VisibleOf<N>(total.visible, col);
    Pack<C, N> v = FilledPack<N>(C(0));
    if (left > 0) {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const C y = ConvertTo<C>(raw.input[0].v[i]), dy = ConvertTo<C>(raw.input[1].v[i]);
        v.v[i] = scale * y * (dy - total.sum);
      }
      if (left < N) {
#pragma unroll
        for (int i = 0; i < N; ++i) v.v[i] = i < left ? v.v[i] : C(0);
      }
    }
    dx.template Store<N>(row, col, v);
  }

 private:
  template <int N>
  static __device__ __forceinline__ Value<N> Visible(const Raw<N>& raw, int left) {
    Value<N> value{StowedPack<T, N>::Of(raw.input[0]), StowedPack<T, N>::Of(raw.input[1])};
    if (left < N) {
      HideFrom(value.y, left, ConvertTo<T>(0.0f));
      HideFrom(value.dy, left, ConvertTo<T>(0.0f));
    }
    return value;
  }
  template <int N>
  static __device__ __forceinline__ C Terms(const Raw<N>& raw) {
    C sum = 0;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      sum += ConvertTo<C>(raw.input[0].v[i]) * ConvertTo<C>(raw.input[1].v[i]);
    }
    return sum;
  }
};

}  // namespace oneflow_lite::cuda
