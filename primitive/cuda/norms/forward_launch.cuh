// SPDX-License-Identifier: Apache-2.0
//
// The ways in which the norms' forward is launched: rows of whole packs by kernels of their own
// (norms/forward_whole.cuh, norms/forward_wide.cuh), others by the tiers of rows/row.cuh, with a
// residual after a sum that is a pass of its own.
#pragma once

#include "primitive/cuda/norms/forward.cuh"
#include "primitive/cuda/norms/forward_wide.cuh"
#include "primitive/cuda/norms/policy.h"
#include "primitive/cuda/rows/row.cuh"

namespace oneflow_lite::cuda {

// sum = x + residual, a block per row, or per `chunk` columns of what is then a single row.
template <class T>
__global__ void __launch_bounds__(NormPolicy::kSumThreads)
    NormAddKernel(const __grid_constant__ NormForward<T> a, T* sum, int64_t chunk) {
  using C = ComputeType<T>;
  constexpr int N = kPackSize<T>;
  const int64_t chunks = (a.cols + chunk - 1) / chunk;
  for (int64_t item = blockIdx.x; item < a.rows * chunks; item += gridDim.x) {
    const int64_t row = item / chunks, first = item % chunks * chunk;
    const int64_t cols = a.cols - first < chunk ? a.cols - first : chunk;
    const T* x = a.x + row * a.x_stride + first;
    const T* residual = a.residual + row * a.cols + first;
    T* to = sum + row * a.cols + first;
    const RowSpan<N> span(ElementsToBoundary(to), cols);
    const auto add = [&](auto size, int64_t col) {
      constexpr int kSize = decltype(size)::value;
      auto v = ConvertPack<C>(LoadPack<kSize>(x + col));
      v += ConvertPack<C>(LoadPack<kSize>(residual + col));
      StorePack(to + col, ConvertPack<T>(v));
    };
    for (int64_t p = threadIdx.x; p < span.packs; p += blockDim.x) {
      add(std::integral_constant<int, N>{}, span.PackColumn(p));
    }
    const int extra = threadIdx.x;
    if (extra < span.extras()) add(std::integral_constant<int, 1>{}, span.Column(extra));
  }
}

namespace internal {

// Whether all rows are whole packs of so many bytes, a divisor of 16.
template <class T>
bool IsWhole(const NormForward<T>& a, int bytes = kPackBytes) {
  const uint64_t by = kPackBytes / bytes;
  return AreMultiplesOf16({by * AddressOf(a.x), by * AddressOf(a.residual), by * AddressOf(a.y),
                           by * AddressOf(a.sum), by * a.cols * sizeof(T),
                           by * a.x_stride * sizeof(T)});
}

// pack: elements of one.
template <class T>
NormWhole<T> WholeOf(const NormForward<T>& a, bool centre, int pack = kPackSize<T>) {
  using C = ComputeType<T>;
  NormWhole<T> p;
  p.a = a;
  p.eps = static_cast<C>(a.eps);
  p.share = static_cast<C>(1.0 / static_cast<double>(a.cols));
  p.packs = static_cast<int>(a.cols / pack);
  const bool whole = a.weight && (centre || !a.bias) && (a.bias || !centre) &&
                     AreMultiplesOf16({AddressOf(a.weight), AddressOf(a.bias)});
  p.plain = whole && (std::is_same_v<T, float> || !a.float_weight);
  p.mixed = whole && !p.plain && sizeof(T) == 2;
  return p;
}

// shape: GroupShape.
template <bool kCentre, bool kResidual, int kBytes = kPackBytes, class Shape, class T>
cudaError_t LaunchLanes(Shape, const NormWhole<T>& p, const LaunchSite& site) {
  constexpr int kThreads = NormWholePolicy::kLaneThreads;
  return Launch(NormLanesKernel<T, kCentre, kResidual, Shape::lanes, Shape::packs, kBytes>,
                CeilDiv(p.a.rows, kThreads / Shape::lanes), kThreads, 0, site.stream, p);
}
// capacity: packs that the lanes hold.
template <bool kCentre, bool kResidual, class T>
cudaError_t LaunchLanesFor(int capacity, const NormWhole<T>& p, const LaunchSite& site) {
  const auto launch = [&](auto shape) { return LaunchLanes<kCentre, kResidual>(shape, p, site); };
  using Most = GroupShape<32, NormWholePolicy::kLanePacks<kCentre> / 32>;
  using Wide = GroupShape<32, 3>;
  if constexpr (kResidual) {
    return VisitShapes<GroupShape<8, 2>, GroupShape<16, 4>, Wide, Most>(capacity, launch);
  } else {
    return VisitShapes<GroupShape<4, 1>, GroupShape<4, 2>, GroupShape<8, 2>, GroupShape<8, 4>,
                       GroupShape<16, 4>, Wide, Most>(capacity, launch);
  }
}

// Narrow rows of 16-bit elements that are whole packs of 8 bytes.
template <bool kCentre, class T>
cudaError_t LaunchHalfPacks(const NormForward<T>& a, const LaunchSite& site) {
  using P = NormWholePolicy;
  constexpr int kBytes = kPackBytes / 2, N = kPackSize<T> / 2;
  const int64_t packs = a.cols / N;
  if (packs < P::kFewHalfPacks || packs > P::kMostHalfPacks || !IsWhole(a, kBytes)) {
    return kNotServed;
  }
  const NormWhole<T> p = WholeOf(a, kCentre, N);
  const auto launch = [&](auto shape) {
    return LaunchLanes<kCentre, false, kBytes>(shape, p, site);
  };
  using Four = GroupShape<16, 4>;
  if constexpr (kCentre) {
    return VisitShapes<GroupShape<8, 2>, GroupShape<8, 4>, Four>(packs, launch);
  } else {  // 100 columns of rms_norm: 9.1 us, 9.6 as 8 lanes of 4 packs
    if (packs > 44) return launch(GroupShape<32, 2>{});
    return VisitShapes<GroupShape<8, 2>, GroupShape<16, 2>, Four>(packs, launch);
  }
}

// Packs per thread, at most. Two inputs leave no room for eight.
template <bool kResidual>
inline constexpr int kWholePacks =
    kResidual ? NormWholePolicy::kBlockManyPacks : NormWholePolicy::kMostPacks;

template <bool kCentre, bool kResidual, class T>
bool PlanWholeOf(const NormForward<T>& a, const DeviceLimits& limits, NormWholePlan* plan) {
  using P = NormWholePolicy;
  using Exchange = WarpExchange<NormPart<ComputeType<T>>>;
  const int64_t packs = a.cols / kPackSize<T>;
  if (!IsWhole(a) || a.rows > kMaxBlocks / kMaxClusterBlocks) return false;
  NormWholeTraits t;
  t.most_threads = P::kWholeThreads<T>;
  t.most_alone = P::kAloneThreads<T>;
  t.resident = P::kWholeThreads<T> * P::kWholeBlocks<T>;
  t.most_packs = kWholePacks<kResidual>;
  t.lane_packs = P::kLanePacks<kCentre>;
  t.early_resident = P::kWholeThreads<T> * P::RowBlocks<T, kCentre, kResidual>(P::kEarlyPacks);
  // Two packs a thread of one input, in layer_norm's 64 registers, are too little in flight.
  t.early_waves = kResidual || !kCentre;
  t.waves = kResidual ? 3 : 1;
  t.mixed = !kResidual && WholeOf(a, kCentre).mixed;
  t.most_blocks = 1;
  if (packs > t.lane_packs) {
    t.most_blocks =
        MaxClusterBlocks<NormBlockKernel<T, kCentre, kResidual, kWholePacks<kResidual>>>(
            t.most_threads, Exchange::Bytes(kMaxClusterBlocks, t.most_threads), limits);
  }
  if (limits.multiprocessors > 0) return PlanNormWhole(a.rows, packs, t, limits, plan);
  return PlanNormWhole(NormPolicy::kAnyRows, packs, t, AnyRowsLimits(limits), plan);
}

template <bool kCentre, bool kResidual, int kPacks, class T>
cudaError_t LaunchBlocks(const NormWholePlan& plan, const NormWhole<T>& p, const LaunchSite& site) {
  constexpr auto kernel = &NormBlockKernel<T, kCentre, kResidual, kPacks>;
  const size_t shared = WarpExchange<NormPart<ComputeType<T>>>::Bytes(plan.blocks, plan.threads);
  if (plan.blocks > 8) MaxClusterBlocks<kernel>(plan.threads, shared, site.limits);  // allows them
  return LaunchAs({plan.blocks}, kernel, p.a.rows * plan.blocks, plan.threads, shared, site.stream,
                  p);
}

// rms_norm in clusters does better with small blocks in clusters twice as large.
template <class T, int kPacks>
void ShrinkBlocks(const NormWhole<T>& p, const DeviceLimits& limits, NormWholePlan* plan) {
  using P = NormWholePolicy;
  using Exchange = WarpExchange<NormPart<ComputeType<T>>>;
  if (plan->packs != kPacks || plan->threads <= P::kSmallThreads || plan->blocks < 4) return;
  const int most = MaxClusterBlocks<NormBlockKernel<T, false, false, kPacks>>(
      P::kWholeThreads<T>, Exchange::Bytes(kMaxClusterBlocks, P::kWholeThreads<T>), limits);
  if (2 * plan->blocks > most) return;
  plan->blocks *= 2;
  plan->threads = static_cast<int>(CeilDiv(p.packs, int64_t{32} * kPacks * plan->blocks) * 32);
}

// layer_norm of rows wider than a block's registers, if they can be cut into slices.
template <class T>
cudaError_t LaunchSliced(const NormForward<T>& a, const LaunchSite& site) {
  using P = NormSlicedPolicy;
  const DeviceLimits& limits = site.limits;
  using Exchange = WarpExchange<NormPart<ComputeType<T>>>;
  constexpr auto kernel = &NormSlicedKernel<T>;
  const auto bytes = [](int blocks, int threads) {
    return SlicedBytes(threads) + Exchange::Bytes(blocks, threads);
  };
  const int64_t most = bytes(kMaxClusterBlocks, P::kThreads);
  const int64_t packs = a.cols / kPackSize<T>;
  // Fewer rows than most of what runs at once are better in smaller parts.
  const int64_t at_once = int64_t{P::kBlocks} * P::kThreads * P::kPacks * limits.multiprocessors;
  if (packs <= NormWholePolicy::kMostPacks * NormWholePolicy::kWholeThreads<T> ||
      a.rows < at_once / packs * 3 / 4 || a.residual || !IsWhole(a) ||
      P::kBlocks * (most + kReservedSharedBytes) > limits.shared_per_multiprocessor) {
    return kNotServed;
  }
  const NormWhole<T> p = WholeOf(a, true);
  if (!p.plain) return kNotServed;
  const cudaError_t error = AllowAllShared<kernel>(limits);
  if (error != cudaSuccess) return error;
  NormSlicedPlan plan;
  const int most_blocks = MaxClusterBlocks<kernel>(P::kThreads, most, limits);
  if (!PlanNormSliced(packs, most_blocks, &plan)) return kNotServed;
  return LaunchAs({plan.blocks}, kernel, a.rows * plan.blocks, plan.threads,
                  bytes(plan.blocks, plan.threads), site.stream, p, plan.slice);
}

template <bool kCentre, bool kResidual, class T>
cudaError_t LaunchWhole(NormWholePlan plan, const NormForward<T>& a, const LaunchSite& site) {
  using P = NormWholePolicy;
  const NormWhole<T> p = WholeOf(a, kCentre);
  if (plan.lanes > 0) {
    return LaunchLanesFor<kCentre, kResidual>(plan.lanes * plan.packs, p, site);
  }
  constexpr int kEarly = P::kEarlyPacks, kMany = P::kBlockManyPacks, kMost = P::kMostPacks;
  const auto lone = [&](auto packs) {
    return Launch(NormRowKernel<T, kCentre, kResidual, decltype(packs)::value>, a.rows,
                  plan.threads, 0, site.stream, p);
  };
  const auto blocks = [&](auto packs) {
    return LaunchBlocks<kCentre, kResidual, decltype(packs)::value>(plan, p, site);
  };
  if constexpr (kResidual) {
    if (plan.blocks == 1) return VisitNumber<kEarly, kMany>(plan.packs, lone);
    return VisitNumber<kEarly, kMany>(plan.packs, blocks);
  } else {
    // rms_norm has no room for as many weights in registers: 0.65 of a copy.
    if constexpr (kCentre) {
      if (plan.blocks == 1) return VisitNumber<kEarly, kMany, kMost>(plan.packs, lone);
    } else if (plan.blocks == 1 && plan.packs != kMost) {
      return VisitNumber<kEarly, kMany>(plan.packs, lone);
    }
    if constexpr (!kCentre && sizeof(T) <= 4) ShrinkBlocks<T, kMost>(p, site.limits, &plan);
    return VisitNumber<kEarly, kMost, kMany>(plan.packs, blocks);
  }
}

template <bool kCentre, class T>
cudaError_t LaunchForwardRows(const NormForward<T>& a, const LaunchSite& site) {
  using C = ComputeType<T>;
  NormExtras<C> extras;
  extras.weight = a.weight, extras.bias = a.bias, extras.float_weight = a.float_weight;
  extras.cols = a.cols, extras.mean = a.mean, extras.rstd = a.rstd;
  extras.eps = static_cast<C>(a.eps);
  extras.share = static_cast<C>(1.0 / static_cast<double>(a.cols));
  using Row = NormRow<kCentre, DirectLoad<T>, DirectStore<T>>;
  const Row row{{{a.x, a.x_stride}, {a.y, a.cols}, extras}};
  return LaunchRowsAs<false>(row, {site, a.rows, a.cols});
}

// sum = a.x + a.residual, dense. Rows that are dense in x too are added as one.
template <class T>
cudaError_t LaunchAdd(NormForward<T> a, T* sum, cudaStream_t stream) {
  int64_t chunk = a.cols;
  if (a.x_stride == a.cols) {
    a.cols *= a.rows;
    a.rows = 1;
    chunk = int64_t{NormPolicy::kSumThreads} * kPackSize<T>;
  }
  return Launch(NormAddKernel<T>, a.rows * CeilDiv(a.cols, chunk), NormPolicy::kSumThreads, 0,
                stream, a, sum, chunk);
}

template <bool kCentre, class T>
cudaError_t LaunchForward(NormForward<T> a, const LaunchSite& site) {
  cudaError_t error = kNotServed;
  if constexpr (kCentre) error = LaunchSliced(a, site);
  if (error != kNotServed) return error;
  NormWholePlan plan;
  if (!a.residual) {
    if (PlanWholeOf<kCentre, false>(a, site.limits, &plan)) {
      return LaunchWhole<kCentre, false>(plan, a, site);
    }
    if constexpr (sizeof(T) == 2) error = LaunchHalfPacks<kCentre>(a, site);
    if (error != kNotServed) return error;
    return LaunchForwardRows<kCentre>(a, site);
  }
  if (PlanWholeOf<kCentre, true>(a, site.limits, &plan)) {
    return LaunchWhole<kCentre, true>(plan, a, site);
  }
  // The sum first: the other rows of two inputs are not worth kernels of their own.
  T* const sum = a.sum ? a.sum : a.y;
  error = LaunchAdd(a, sum, site.stream);
  if (error != cudaSuccess) return error;
  a.x = sum, a.x_stride = a.cols;
  a.residual = nullptr, a.sum = nullptr;
  return LaunchForward<kCentre>(a, site);
}

}  // namespace internal
}  // namespace oneflow_lite::cuda
