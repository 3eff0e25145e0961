// SPDX-License-Identifier: Apache-2.0
//
// layer_norm and rms_norm of values that threads hold (fused/whole.cuh). layer_norm: lanes centre
// their own columns about their mean; parts merge as in norms/sums.cuh.
#pragma once

#include "primitive/cuda/fused/whole.cuh"
#include "primitive/cuda/norms/forward.cuh"

namespace oneflow_lite::cuda {

template <bool kCentre, class Load, class Store>
class HeldRow<NormRow<kCentre, Load, Store>> {
  using Base = NormRow<kCentre, Load, Store>;
  using C = typename Base::C;

 public:
  using Part = NormPart<C>;

  OFL_DEVICE explicit HeldRow(const Base& base) : extras_(base.extras) {}

  template <int kLanes, bool kAlone, class Held>
  OFL_DEVICE Part Gather(Held& held, int64_t) {
    if constexpr (!kCentre || !Held::kHolds) {
      held.Each([&](auto& v, int k) { Visit<kLanes>(v, k); });
      return Visited<kLanes>([](auto&&) {});
    } else {
      C sum = 0;
      held.Each([&](auto& v, int) {
#pragma unroll
        for (const C& x : v.v) sum += x;
      });
      sum = ReduceLanes<kLanes>(sum, Plus{});
      Part part;
      part.count = static_cast<C>(held.places.template Count<kLanes>());
      const C share = part.count == 0 ? C(0) : Quotient(C(1), part.count);
      part.mean = mean_ = sum * share;
      SumOf<C, 2> sums;  // of the distances, and of their squares
      held.Each([&](auto& v, int) {
#pragma unroll
        for (C& x : v.v) {
          const C d = Centred(x, mean_);
          sums.v[0] += d;
          sums.v[1] += d * d;
          x = d;
        }
      });
      apart_ = true;
      SetCentred<C, kLanes>(sum, sums, share, part);
      return part;
    }
  }
  // The same in one visit of values that are computed again; layer_norm about one of the lanes'.
  template <int kLanes, int N>
  OFL_DEVICE void Visit(const Pack<C, N>& v, int) {
    if constexpr (kCentre) {
      sums_.Add(v);
    } else {
#pragma unroll
      for (const C& x : v.v) sums_.squares += x * x;
    }
  }
  template <int kLanes, class Again>
  OFL_DEVICE Part Visited(Again&&) const {
    Part part;
    if constexpr (kCentre) {
      const auto sums = ReduceLanes<kLanes>(sums_, MergePivotSums{});
      if (sums.count == 0) return part;
      const CentredSums<C> centred(sums);
      part = {centred.count, centred.mean, centred.low, centred.squares};
    } else {
      part.squares = ReduceLanes<kLanes>(sums_.squares, Plus{});
    }
    return part;
  }
  OFL_DEVICE Part Merge(const Part* parts, int count) const {
    SumOf<C, 2> sums;
    const C base = parts[0].mean;
    for (int i = threadIdx.x % kWarp; i < count; i += kWarp) {
      const Part part = parts[i];
      const C apart = (part.mean - base) + part.low;
      if (kCentre) sums.v[0] += part.count * apart;
      sums.v[1] += kCentre ? part.squares + part.count * apart * apart : part.squares;
    }
    Part row;
    if constexpr (kCentre) {
      sums = ReduceLanes<kWarp>(sums, Plus{});
      row.mean = base;
      row.low = sums.v[0] * extras_.share;
      row.squares = sums.v[1] - sums.v[0] * row.low;
    } else {
      row.squares = ReduceLanes<kWarp>(sums.v[1], Plus{});
    }
    return row;
  }
  template <bool kAlone>
  OFL_DEVICE void Begin(const Part& row) {
    rstd_ = RstdOf<true>(row, extras_.share, extras_.eps);
    // y = (v - mean_) * rstd + offset
    if (kCentre && !apart_) mean_ = row.mean;
    if constexpr (kCentre) offset_ = ((mean_ - row.mean) - row.low) * rstd_;
  }
  template <int N>
  OFL_DEVICE Pack<C, N> Result(Pack<C, N> v) const {
#pragma unroll
    for (C& x : v.v) {
      if (kCentre && !apart_) x = Centred(x, mean_);
      x = kCentre ? x * rstd_ + offset_ : x * rstd_;
    }
    return v;
  }

 private:
  const NormExtras<C>& extras_;
  bool apart_ = false;
  C mean_ = 0, rstd_ = 0, offset_ = 0;
  PivotSums<C> sums_;
};

}  // namespace oneflow_lite::cuda
