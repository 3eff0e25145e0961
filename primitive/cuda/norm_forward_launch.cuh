// SPDX-License-Identifier: Apache-2.0
//
// The ways in which the norms' forward is launched: rows of whole packs by kernels of their own
// (norm_forward_whole.cuh; in clusters, rms_norm: norm_forward_staged.cuh), others by the tiers of
// row.cuh.
#pragma once

#include "primitive/cuda/norm_forward.cuh"
#include "primitive/cuda/norm_forward_staged.cuh"
#include "primitive/cuda/norm_team_launch.cuh"
#include "primitive/cuda/row.cuh"

namespace oneflow_lite {
namespace cuda {

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
                CeilDiv(p.a.rows, NormWholePolicy::kLaneThreads / kTeam),
                NormWholePolicy::kLaneThreads, 0, stream, p);
}
// capacity: packs that the lanes hold.
template <bool kCentre, bool kResidual, class T>
cudaError_t LaunchLanesFor(int capacity, const NormWhole<T>& p, cudaStream_t stream) {
  if constexpr (kResidual) {
    if (capacity <= 16) return LaunchLanes<kCentre, true, 8, 2>(p, stream);
    if (capacity <= 64) return LaunchLanes<kCentre, true, 16, 4>(p, stream);
  } else {
    if (capacity <= 4) return LaunchLanes<kCentre, false, 4, 1>(p, stream);
    if (capacity <= 8) return LaunchLanes<kCentre, false, 4, 2>(p, stream);
    if (capacity <= 16) return LaunchLanes<kCentre, false, 8, 2>(p, stream);
    if (capacity <= 32) return LaunchLanes<kCentre, false, 8, 4>(p, stream);
    if (capacity <= 64) return LaunchLanes<kCentre, false, 16, 4>(p, stream);
  }
  if constexpr (NormWholePolicy::kLanePacks < kCentre >> 96) {
    if (capacity > 96) return LaunchLanes<kCentre, kResidual, 32, 4>(p, stream);
  }
  return LaunchLanes<kCentre, kResidual, 32, 3>(p, stream);
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
  // Two packs a thread of one input, in layer_norm's 64 registers, are too little in flight: half
  // at 4096 columns 0.82 of a copy, 0.98 with four.
  t.early_waves = kResidual || !kCentre;
  t.waves = kResidual ? 3 : 1;
  t.most_blocks = 1;
  if (packs > t.lane_packs) {
    t.most_blocks =
        MaxClusterBlocks<NormBlockKernel<T, kCentre, kResidual, kWholePacks<kResidual>>>(
            t.most_threads, Exchange::Bytes(kMaxClusterBlocks, t.most_threads), limits);
  }
  return PlanNormWhole(a.rows, packs, t, limits, plan);
}

template <bool kCentre, bool kResidual, int kPacks, class T>
cudaError_t LaunchLoneBlocks(const NormWholePlan& plan, const NormWhole<T>& p,
                             cudaStream_t stream) {
  return Launch(NormRowKernel<T, kCentre, kResidual, kPacks>, p.a.rows, plan.threads, 0, stream, p);
}

template <bool kCentre, bool kResidual, int kPacks, class T>
cudaError_t LaunchBlocks(const NormWholePlan& plan, const NormWhole<T>& p,
                         const DeviceLimits& limits, cudaStream_t stream) {
  constexpr auto kernel = &NormBlockKernel<T, kCentre, kResidual, kPacks>;
  const size_t shared = WarpExchange<NormPart<ComputeType<T>>>::Bytes(plan.blocks, plan.threads);
  if (plan.blocks > 8) MaxClusterBlocks<kernel>(plan.threads, shared, limits);  // allows them
  return LaunchAs({plan.blocks}, kernel, p.a.rows * plan.blocks, plan.threads, shared, stream, p);
}

// rms_norm of rows as planned, if they are norm_forward_staged.cuh's; false: they are not.
template <int kPacks, class T>
bool LaunchStaged(NormWholePlan plan, const NormWhole<T>& p, const DeviceLimits& limits,
                  cudaStream_t stream, cudaError_t* error) {
  using P = NormStagedPolicy;
  constexpr auto kernel = &NormStagedKernel<T, kPacks>;
  constexpr int64_t kReserved = 1024;  // bytes of shared memory of a block, by the driver
  const auto bytes = [](int blocks, int threads) {
    return P::Bytes(kPacks, threads) +
           WarpExchange<NormPart<ComputeType<T>>>::Bytes(blocks, threads);
  };
  const int64_t most = bytes(kMaxClusterBlocks, P::kThreads);
  if (plan.packs != kPacks || plan.blocks == 1 || !p.plain ||
      P::kBlocks * (most + kReserved) > limits.shared_per_multiprocessor) {
    return false;
  }
  *error = AllowAllShared<kernel>(limits);
  if (*error != cudaSuccess) return true;
  const int most_blocks = MaxClusterBlocks<kernel>(P::kThreads, most, limits);
  if (plan.threads > P::kSmallThreads && plan.blocks >= P::kManyBlocks &&
      2 * plan.blocks <= most_blocks) {
    plan.blocks *= 2;
  }
  if (plan.blocks > most_blocks) return false;
  plan.threads = static_cast<int>(CeilDiv(p.packs, int64_t{32} * kPacks * plan.blocks) * 32);
  const auto slice = static_cast<int>(CeilDiv(CeilDiv(p.packs, plan.blocks), 8) * 8);  // of lines
  *error = LaunchAs({plan.blocks}, kernel, p.a.rows * plan.blocks, plan.threads,
                    bytes(plan.blocks, plan.threads), stream, p, slice);
  return true;
}

template <bool kCentre, bool kResidual, class T>
cudaError_t LaunchWhole(const NormWholePlan& plan, const NormForward<T>& a,
                        const DeviceLimits& limits, cudaStream_t stream) {
  using P = NormWholePolicy;
  const NormWhole<T> p = WholeOf(a, kCentre);
  if (plan.lanes > 0) {
    return LaunchLanesFor<kCentre, kResidual>(plan.lanes * plan.packs, p, stream);
  }
  if (plan.blocks == 1 && plan.packs == P::kEarlyPacks) {
    return LaunchLoneBlocks<kCentre, kResidual, P::kEarlyPacks>(plan, p, stream);
  }
  if (plan.blocks == 1 && plan.packs == P::kBlockManyPacks) {
    return LaunchLoneBlocks<kCentre, kResidual, P::kBlockManyPacks>(plan, p, stream);
  }
  if (plan.packs == P::kEarlyPacks) {
    return LaunchBlocks<kCentre, kResidual, P::kEarlyPacks>(plan, p, limits, stream);
  }
  if constexpr (!kResidual) {
    if constexpr (!kCentre && sizeof(T) <= 4) {
      cudaError_t error = cudaSuccess;
      if (LaunchStaged<P::kMostPacks>(plan, p, limits, stream, &error)) return error;
      if (LaunchStaged<P::kBlockManyPacks>(plan, p, limits, stream, &error)) return error;
    }
    if (plan.packs == P::kMostPacks) {
      return LaunchBlocks<kCentre, false, P::kMostPacks>(plan, p, limits, stream);
    }
  }
  return LaunchBlocks<kCentre, kResidual, P::kBlockManyPacks>(plan, p, limits, stream);
}

template <bool kCentre, class T>
cudaError_t LaunchForwardRows(const NormForward<T>& a, const DeviceLimits& limits,
                              cudaStream_t stream, void* workspace) {
  using C = ComputeType<T>;
  NormExtras<C> extras;
  extras.weight = a.weight, extras.bias = a.bias, extras.float_weight = a.float_weight;
  extras.cols = a.cols, extras.mean = a.mean, extras.rstd = a.rstd;
  extras.eps = static_cast<C>(a.eps);
  extras.share = static_cast<C>(1.0 / static_cast<double>(a.cols));
  using Row = NormRow<kCentre, DirectLoad<T>, DirectStore<T>>;
  const Row row{{{a.x, a.x_stride}, {a.y, a.cols}, extras}};
  return LaunchRows(row, a.rows, a.cols, limits, stream, workspace);
}

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
cudaError_t LaunchForward(const NormForward<T>& a, const DeviceLimits& limits, cudaStream_t stream,
                          void* workspace) {
  NormWholePlan plan;
  if (!a.residual) {
    if (PlanWholeOf<kCentre, false>(a, limits, &plan)) {
      return LaunchWhole<kCentre, false>(plan, a, limits, stream);
    }
    return LaunchForwardRows<kCentre>(a, limits, stream, workspace);
  }
  if (PlanWholeOf<kCentre, true>(a, limits, &plan)) {
    return LaunchWhole<kCentre, true>(plan, a, limits, stream);
  }
  // The sum first: the other rows of two inputs are not worth kernels of their own.
  T* const sum = a.sum ? a.sum : a.y;
  cudaError_t error = LaunchAdd(a, sum, stream);
  if (error != cudaSuccess) return error;
  NormForward<T> b = a;
  b.x = sum;
  b.x_stride = a.cols;
  b.residual = nullptr;
  b.sum = nullptr;
  return LaunchForward<kCentre>(b, limits, stream, workspace);
}

}  // namespace internal
}  // namespace cuda
}  // namespace oneflow_lite
