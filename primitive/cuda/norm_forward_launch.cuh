// SPDX-License-Identifier: Apache-2.0
//
// The two ways in which the norms' forward is launched: rows of whole packs by kernels of their own
// (norm_forward_whole.cuh), others by the tiers of row.cuh.
#pragma once

#include "primitive/cuda/norm_forward.cuh"
#include "primitive/cuda/norm_forward_whole.cuh"
#include "primitive/cuda/norm_team_launch.cuh"
#include "primitive/cuda/row.cuh"

namespace oneflow_lite {
namespace cuda {

// sum = x + residual, a block per row.
template <class T>
__global__ void __launch_bounds__(NormPolicy::kSumThreads)
    NormAddKernel(const __grid_constant__ NormForward<T> a, T* sum) {
  using C = ComputeType<T>;
  constexpr int N = kPackSize<T>;
  for (int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
    const T* x = a.x + row * a.x_stride;
    const T* residual = a.residual + row * a.cols;
    T* to = sum + row * a.cols;
    const RowSpan<N> span(ElementsToBoundary(to), a.cols);
    const auto add = [&](auto size, int64_t col) {
      constexpr int kSize = decltype(size)::value;
      auto v = ConvertPack<C>(LoadPack<kSize>(x + col));
      const auto other = ConvertPack<C>(LoadPack<kSize>(residual + col));
#pragma unroll
      for (int i = 0; i < kSize; ++i) v.v[i] += other.v[i];
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

template <class T>
bool IsWhole(const NormForward<T>& a) {
  return AreMultiplesOf16({AddressOf(a.x), AddressOf(a.residual), AddressOf(a.y), AddressOf(a.sum),
                           a.cols * sizeof(T), a.x_stride * sizeof(T)});
}

template <class T>
NormWhole<T> WholeOf(const NormForward<T>& a, bool centre) {
  using C = ComputeType<T>;
  NormWhole<T> p;
  p.a = a;
  p.eps = static_cast<C>(a.eps);
  p.share = static_cast<C>(1.0 / static_cast<double>(a.cols));
  p.packs = static_cast<int>(a.cols / kPackSize<T>);
  p.plain = a.weight && (centre || !a.bias) && (a.bias || !centre) &&
            (std::is_same_v<T, float> || !a.float_weight) &&
            AreMultiplesOf16({AddressOf(a.weight), AddressOf(a.bias)});
  return p;
}

template <bool kCentre, bool kResidual, int kTeam, int kPacks, class T>
cudaError_t LaunchLanes(const NormWhole<T>& p, cudaStream_t stream) {
  return Launch(NormLanesKernel<T, kCentre, kResidual, kTeam, kPacks>,
                CeilDiv(p.a.rows, NormPolicy::kLaneThreads / kTeam), NormPolicy::kLaneThreads, 0,
                stream, p);
}
// capacity: packs that the lanes hold.
template <bool kCentre, bool kResidual, class T>
cudaError_t LaunchLanesFor(int capacity, const NormWhole<T>& p, cudaStream_t stream) {
  if constexpr (kResidual) {
    if (capacity <= 16) return LaunchLanes<kCentre, true, 8, 2>(p, stream);
    if (capacity <= 64) return LaunchLanes<kCentre, true, 16, 4>(p, stream);
  } else {
    if (capacity <= 4) return LaunchLanes<kCentre, false, 4, 1>(p, stream);
    if (capacity <= 8) return LaunchLanes<kCentre, false, 8, 1>(p, stream);
    if (capacity <= 16) return LaunchLanes<kCentre, false, 16, 1>(p, stream);
    if (capacity <= 32) return LaunchLanes<kCentre, false, 16, 2>(p, stream);
    if (capacity <= 64) return LaunchLanes<kCentre, false, 16, 4>(p, stream);
  }
  return LaunchLanes<kCentre, kResidual, 32, 4>(p, stream);
}

// Packs per thread of the kernel of clusters. Two inputs leave no room for eight.
template <bool kResidual>
inline constexpr int kClusterPacks =
    kResidual ? NormPolicy::kBlockManyPacks : NormPolicy::kMostPacks;

template <bool kCentre, bool kResidual, class T>
bool PlanWholeOf(const NormForward<T>& a, const DeviceLimits& limits, WholePlan* plan) {
  using P = NormPolicy;
  const int64_t packs = a.cols / kPackSize<T>;
  if (!IsWhole(a) || a.rows > kMaxBlocks / kMaxClusterBlocks) return false;
  const int most_blocks =
      packs <= P::kLanePacks
          ? 1
          : MaxClusterBlocks<
                NormBlockKernel<T, kCentre, kResidual, true, kClusterPacks<kResidual>>>(
                P::kWholeThreads<T>, 0, limits);
  return PlanWhole(a.rows, packs, P::kWholeThreads<T>, kClusterPacks<kResidual>, most_blocks,
                   limits, plan);
}

template <bool kCentre, bool kResidual, class T>
cudaError_t LaunchWhole(const WholePlan& plan, const NormForward<T>& a, cudaStream_t stream) {
  using P = NormPolicy;
  const NormWhole<T> p = WholeOf(a, kCentre);
  if (plan.lanes > 0) {
    return LaunchLanesFor<kCentre, kResidual>(plan.lanes * plan.packs, p, stream);
  }
  if (plan.packs == P::kEarlyPacks) {
    return Launch(NormBlockKernel<T, kCentre, kResidual, false, P::kEarlyPacks>, a.rows,
                  plan.threads, 0, stream, p);
  }
  if constexpr (!kResidual) {
    if (plan.packs == P::kBlockManyPacks) {
      return Launch(NormBlockKernel<T, kCentre, false, false, P::kBlockManyPacks>, a.rows,
                    plan.threads, 0, stream, p);
    }
  }
  return LaunchAs({plan.blocks},
                  NormBlockKernel<T, kCentre, kResidual, true, kClusterPacks<kResidual>>,
                  a.rows * plan.blocks, plan.threads, 0, stream, p);
}

template <bool kCentre, class T>
cudaError_t LaunchForwardRows(const NormForward<T>& a, const DeviceLimits& limits,
                              cudaStream_t stream, void* workspace) {
  using C = ComputeType<T>;
  NormExtras<T, C> extras;
  extras.weight = a.weight, extras.bias = a.bias, extras.float_weight = a.float_weight;
  extras.cols = a.cols, extras.mean = a.mean, extras.rstd = a.rstd;
  extras.eps = static_cast<C>(a.eps);
  extras.share = static_cast<C>(1.0 / static_cast<double>(a.cols));
  using Row = NormRow<kCentre, DirectLoad<T>, NoResidual, DirectStore<T>>;
  const Row row{{a.x, a.x_stride}, {}, {a.y, a.cols}, extras};
  return LaunchRows(row, a.rows, a.cols, limits, stream, workspace);
}

template <bool kCentre, class T>
cudaError_t LaunchForward(const NormForward<T>& a, const DeviceLimits& limits, cudaStream_t stream,
                          void* workspace) {
  WholePlan plan;
  if (!a.residual) {
    if (PlanWholeOf<kCentre, false>(a, limits, &plan)) {
      return LaunchWhole<kCentre, false>(plan, a, stream);
    }
    return LaunchForwardRows<kCentre>(a, limits, stream, workspace);
  }
  if (PlanWholeOf<kCentre, true>(a, limits, &plan)) {
    return LaunchWhole<kCentre, true>(plan, a, stream);
  }
  // The sum first: the other rows of two inputs are not worth kernels of their own.
  NormForward<T> b = a;
  b.x = a.sum ? a.sum : a.y;
  b.x_stride = a.cols;
  b.residual = nullptr;
  b.sum = nullptr;
  const cudaError_t error =
      Launch(NormAddKernel<T>, a.rows, NormPolicy::kSumThreads, 0, stream, a, a.sum ? a.sum : a.y);
  if (error != cudaSuccess) return error;
  return LaunchForward<kCentre>(b, limits, stream, workspace);
}

}  // namespace internal
}  // namespace cuda
}  // namespace oneflow_lite
