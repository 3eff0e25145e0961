// SPDX-License-Identifier: Apache-2.0
//
// softmax and log_softmax of values that threads hold (fused_whole.cuh).
#pragma once

#include "primitive/cuda/fused_whole.cuh"
#include "primitive/cuda/softmax_forward.cuh"

namespace oneflow_lite {
namespace cuda {

template <bool kLog, class Load, class Store>
class HeldRow<SoftmaxRow<kLog, Load, Store>> {
  using Base = SoftmaxRow<kLog, Load, Store>;
  using C = typename Base::C;
  using Online = OnlineSum<C>;

 public:
  // The maximum, and the sum of exp(x - max).
  struct alignas(16) Part {
    C max = MinusInfinity<C>(), sum = 0;
  };

  __device__ __forceinline__ explicit HeldRow(const Base&) {}

  // softmax: the exponentials replace the values, relative to the maximum of these lanes.
  template <int kLanes, class Held>
  __device__ __forceinline__ Part Gather(Held& held) {
    if constexpr (!Held::kHolds) {
      Online all;
      held.Each([&](auto& v, int) { all.Add(v); });
      all = ReduceLanes<kLanes>(all, MergeOnline{});
      return {all.max, all.sum};
    }
    C max = MinusInfinity<C>(), sum = 0;
    held.Each([&](auto& v, int) { max = Larger{}(max, MaxOf<C>(v)); });
    max = ReduceLanes<kLanes>(max, Larger{});
    const C level = Online::Finite(max);
    held.Each([&](auto& v, int) {
#pragma unroll
      for (C& x : v.v) {
        const C e = Online::Exponential(x, level);
        sum += e;
        if (!kLog) x = e;
      }
    });
    replaced_ = !kLog;
    level_ = max;
    return {max, ReduceLanes<kLanes>(sum, Plus{})};
  }
  static __device__ __forceinline__ Part Merge(const Part* parts, int count) {
    const int lane = threadIdx.x % kWarp;
    C max = MinusInfinity<C>(), sum = 0;
    for (int i = lane; i < count; i += kWarp) max = Larger{}(max, parts[i].max);
    max = ReduceLanes<kWarp>(max, Larger{});
    for (int i = lane; i < count; i += kWarp) {
      sum += parts[i].sum * Online::Weight(parts[i].max, max);
    }
    return {max, ReduceLanes<kWarp>(sum, Plus{})};
  }
  __device__ __forceinline__ void Begin(const Part& row) {
    if constexpr (kLog) {
      scale_ = -LogOf(row.sum);
    } else {
      scale_ = C(1) / row.sum;
      if (replaced_) scale_ *= Online::Weight(level_, row.max);
    }
    level_ = row.max;
  }
  template <int N>
  __device__ __forceinline__ Pack<C, N> Result(Pack<C, N> v) const {
#pragma unroll
    for (C& x : v.v) {
      if (kLog) {
        x = (x - level_) + scale_;
      } else {
        x = (replaced_ ? x : Online::Exponential(x, level_)) * scale_;
      }
    }
    return v;
  }

 private:
  bool replaced_ = false;
  C level_ = 0, scale_ = 0;
};

}  // namespace cuda
}  // namespace oneflow_lite
