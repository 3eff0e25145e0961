// SPDX-License-Identifier: Apache-2.0
//
// The launch of the norms' backward column by column (norm_backward_columns.cuh).
#pragma once

#include "primitive/cuda/launch.cuh"
#include "primitive/cuda/norm_backward_columns.cuh"

namespace oneflow_lite {
namespace cuda {
namespace internal {

template <class T>
bool ServesColumns(const NormBackward<T>& a) {
  return sizeof(T) <= 4 && !a.from_output;
}

// Leaves plan.units parts, columns in their order, in the workspace.
template <bool kCentre, class T>
cudaError_t LaunchNormColumns(const NormColumnsPlan& plan, const NormBackward<T>& a,
                              cudaStream_t stream, void* workspace) {
  if constexpr (sizeof(T) <= 4) {
    using C = ComputeType<T>;
    constexpr int kFew = NormColumnsPolicy::kFewLanes;
    const NormColumnsGrid<T> grid{plan.team, static_cast<C>(1.0 / static_cast<double>(a.cols)),
                                  static_cast<C*>(workspace)};
    const auto kernel = plan.team == kFew ? &NormColumnsKernel<T, kFew, kCentre>
                                          : &NormColumnsKernel<T, kWarp, kCentre>;
    return Launch(kernel, plan.units, plan.threads, static_cast<size_t>(plan.shared), stream, a,
                  grid);
  }
  return cudaErrorInvalidValue;
}

}  // namespace internal
}  // namespace cuda
}  // namespace oneflow_lite
