// SPDX-License-Identifier: Apache-2.0
//
// softmax and log_softmax of values that threads hold (fused/whole.cuh).
#pragma once

#include "primitive/cuda/fused/whole.cuh"
#include "primitive/cuda/softmax/forward.cuh"

namespace oneflow_lite::cuda {

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

  OFL_DEVICE explicit HeldRow(const Base&) {}

  // softmax: the exponentials replace the values, relative to the maximum of these lanes.
  template <int kLanes, bool kAlone, class Held>
  OFL_DEVICE Part Gather(Held& held, int64_t row) {
    if constexpr (!Held::kHolds) {
      held.Each([&](auto& v, int k) { Visit<kLanes>(v, k); });
      return Visited<kLanes>([&](auto&& f) { held.EachAgain(0, row, f); });
    }
    C max = MinusInfinity<C>(), sum = 0;
    held.Each([&](auto& v, int) { max = Larger{}(max, MaxOf<C>(v)); });
    level_ = max = ReduceLanes<kLanes>(max, Larger{});
    exp_ = RowExponential<C>(max);
    held.Each([&](auto& v, int) {
#pragma unroll
      for (C& x : v.v) {
        const C e = exp_(x);
        sum += e;
        if (!kLog) x = e;
      }
    });
    replaced_ = !kLog;
    sum = ReduceLanes<kLanes>(sum, Plus{});
    // In the quotients of a row of their own the exponentials' weight cancels.
    return {max, kAlone && !kLog ? sum : sum * exp_.Weight()};
  }
  // The same in one visit of values that are computed again, relative to the largest of these
  // lanes' first packs, which every lane has. That is `max` then, which serves as well unless
  // others are far above it, or it is no finite number: again(f) calls f with all values once more.
  template <int kLanes, int N>
  OFL_DEVICE void Visit(const Pack<C, N>& v, int k) {
    if (k == 0) {
      level_ = ReduceLanes<kLanes>(MaxOf<C>(v), Larger{});
      exp_ = RowExponential<C>(level_);
    }
#pragma unroll
    for (const C& x : v.v) sum_ += exp_(x);
  }
  template <int kLanes, class Again>
  OFL_DEVICE Part Visited(Again&& again) const {
    const C sum = ReduceLanes<kLanes>(sum_, Plus{}) * exp_.Weight();
    // Of a logarithm little is left where both terms of (x - level) - log(sum) are large.
    constexpr C kMost = C(1 << 16);
    if (level_ > MinusInfinity<C>() && sum > C(0.5) && sum < kMost) return {level_, sum};
    Online all;
    again([&](const auto& v) { all.Add(v); });
    all = ReduceLanes<kLanes>(all, MergeOnline{});
    return {all.max, all.sum};
  }
  static OFL_DEVICE Part Merge(const Part* parts, int count) {
    const int lane = threadIdx.x % kWarp;
    C max = MinusInfinity<C>(), sum = 0;
    for (int i = lane; i < count; i += kWarp) max = Larger{}(max, parts[i].max);
    max = ReduceLanes<kWarp>(max, Larger{});
    for (int i = lane; i < count; i += kWarp) {
      sum += parts[i].sum * Online::Weight(parts[i].max, max);
    }
    return {max, ReduceLanes<kWarp>(sum, Plus{})};
  }
  template <bool kAlone>
  OFL_DEVICE void Begin(const Part& row) {
    if constexpr (kLog) {
      scale_ = -LogOf(row.sum);
    } else {
      scale_ = ReciprocalOf(row.sum);  // the sum is 1/2 at least, or 0
      const C mine = level_;
      if (!replaced_) exp_ = RowExponential<C>(row.max);
      if (!kAlone) scale_ *= exp_.Weight();
      if (!kAlone && replaced_) scale_ *= Online::Weight(mine, row.max);
    }
    level_ = row.max;
  }
  template <int N>
  OFL_DEVICE Pack<C, N> Result(Pack<C, N> v) const {
#pragma unroll
    for (C& x : v.v) {
      if (kLog) {
        x = (x - level_) + scale_;
      } else {
        x = (replaced_ ? x : exp_(x)) * scale_;
      }
    }
    return v;
  }

 private:
  bool replaced_ = false;
  C level_ = 0, scale_ = 0, sum_ = 0;
  RowExponential<C> exp_;
};

}  // namespace oneflow_lite::cuda
