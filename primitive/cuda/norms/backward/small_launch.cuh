// SPDX-License-Identifier: Apache-2.0
//
// The launch of the norms' backward of few bytes where rows lie anywhere.
#pragma once

#include "primitive/cuda/norms/backward/few_launch.cuh"
#include "primitive/cuda/norms/backward/small.cuh"

namespace oneflow_lite {
namespace cuda {
namespace internal {

// Whether PlanSmall's plan serves these pointers.
template <class T>
bool ServesSmall(const NormBackward<T>& a) {
  return a.dx != a.dy && a.dx != a.x;
}

template <bool kCentre, class T>
cudaError_t LaunchNormSmall(const NormSmallPlan& plan, const NormBackward<T>& a,
                            const DeviceLimits& limits, cudaStream_t stream, void* workspace) {
  using C = ComputeType<T>;
  const bool corrects = NeedsCorrection<kCentre>(a);
  NormSmallGrid<T> grid;
  grid.column_blocks = a.dweight || a.dbias ? static_cast<int>(plan.column_blocks) : 0;
  grid.lanes = plan.lanes;
  grid.team = plan.team;
  grid.columns_split = plan.columns_split;
  grid.rows_split = plan.rows_split;
  grid.share = static_cast<C>(1.0 / static_cast<double>(a.cols));
  grid.residual = corrects ? static_cast<C*>(workspace) : nullptr;
  const int64_t blocks = grid.column_blocks + (a.dx || corrects ? plan.row_blocks : 0);
  LaunchKind kind;
  kind.cluster = plan.cluster;
  const cudaError_t error =
      LaunchAs(kind, NormSmallKernel<T, kCentre>, blocks, NormSmallPolicy::kThreads,
               NormSmall<T, kCentre>::SharedBytes(plan), stream, a, grid);
  if (error != cudaSuccess) return error;
  return LaunchCorrection<kCentre>(a, grid.residual, limits, stream);
}

}  // namespace internal
}  // namespace cuda
}  // namespace oneflow_lite
