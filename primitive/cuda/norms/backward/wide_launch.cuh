// SPDX-License-Identifier: Apache-2.0
//
// The launch of the wide norms' backward.
#pragma once

#include "primitive/cuda/norms/backward/wide.cuh"
#include "primitive/cuda/norms/team_launch.cuh"

namespace oneflow_lite {
namespace cuda {
namespace internal {

template <class T, bool kCentre>
bool PlanWideFor(int64_t rows, int64_t cols, NormTraits traits, const DeviceLimits& limits,
                 NormWidePlan* plan) {
  if constexpr (sizeof(T) > 4) {
    return false;
  } else {
    using C = ComputeType<T>;
    traits.scratch_bytes = sizeof(NormWideScratch<C, NormSums<T, kCentre>>);
    return PlanWide(
        rows, cols, traits, limits,
        [&](int blocks) {
          return MaxClusters<NormWideKernel<T, kCentre, false>>(  // the same for all
              blocks, NormWidePolicy::kMaxWorkers + NormWidePolicy::kOtherThreads, limits);
        },
        plan);
  }
}

template <bool kCentre, bool kFromOutput, class T>
cudaError_t LaunchWideInstance(const NormWidePlan& plan, const NormBackward<T>& a,
                               const NormWideGrid<T>& grid, const DeviceLimits& limits,
                               cudaStream_t stream) {
  constexpr auto kernel = NormWideKernel<T, kCentre, kFromOutput>;
  cudaError_t error = AllowAllShared<kernel>(limits);
  if (error == cudaSuccess && !plan.grid && plan.slices > 8) error = AllowLargeClusters<kernel>();
  if (error != cudaSuccess) return error;
  LaunchKind kind;
  kind.cluster = plan.grid ? 1 : plan.slices;
  kind.cooperative = plan.grid;
  return LaunchAs(kind, kernel, plan.units * plan.slices,
                  plan.workers + NormWidePolicy::kOtherThreads, static_cast<size_t>(plan.shared),
                  stream, a, grid);
}

// Where in the workspace the parts of the gradients of weight and bias are, in bytes: behind what
// slices exchange.
template <class T, bool kCentre>
int64_t WidePartsAt(const NormWidePlan& plan) {
  using Exchange = NormSliceExchange<NormSums<T, kCentre>, kNormSumCount<T, kCentre>>;
  return plan.grid ? 8 * Exchange::Words(plan.units, plan.slices) : 0;  // turns are even
}

// Leaves plan.parts() parts in the workspace.
template <bool kCentre, class T>
cudaError_t LaunchNormWide(const NormWidePlan& plan, const NormBackward<T>& a,
                           const DeviceLimits& limits, cudaStream_t stream, void* workspace) {
  if constexpr (sizeof(T) > 4) {
    return cudaErrorInvalidValue;  // has no such plan
  } else {
    NormWideGrid<T> grid;
    grid.slices = plan.slices;
    grid.packs = plan.packs;
    grid.stages = plan.stages;
    grid.ahead = plan.ahead;
    grid.tensor_bytes = plan.tensor_bytes;
    grid.period = plan.period;
    grid.needs_sums = a.template needs_sums<kCentre>();
    grid.share = static_cast<ComputeType<T>>(1.0 / static_cast<double>(a.cols));
    char* const memory = static_cast<char*>(workspace);
    grid.words = plan.grid ? reinterpret_cast<uint64_t*>(memory) : nullptr;
    grid.parts = reinterpret_cast<ComputeType<T>*>(memory + WidePartsAt<T, kCentre>(plan));
    return a.from_output ? LaunchWideInstance<kCentre, true>(plan, a, grid, limits, stream)
                         : LaunchWideInstance<kCentre, false>(plan, a, grid, limits, stream);
  }
}

}  // namespace internal
}  // namespace cuda
}  // namespace oneflow_lite
