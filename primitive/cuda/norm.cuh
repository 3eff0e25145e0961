// SPDX-License-Identifier: Apache-2.0
//
// layer_norm and rms_norm, forward and backward, as a header-only library: C++17, no dependency but
// the CUDA Toolkit. Rows may have any width and any alignment.
//
//   using namespace oneflow_lite::cuda;
//   DeviceLimits limits;
//   QueryDeviceLimits(device, &limits);              // once; keep it
//   NormForward<__half> a;
//   a.rows = rows, a.cols = cols, a.x_stride = cols, a.eps = 1e-5;
//   a.x = x, a.weight = weight, a.bias = bias, a.y = y, a.mean = mean, a.rstd = rstd;
//   cudaError_t error = LaunchNorm<true>(a, limits, stream, workspace);   // false: rms_norm
//
// A norm of something else than a tensor in memory, or into something else, is LaunchRows of a
// NormRow (norm_forward.cuh) over Load and Store functors (row_io.cuh).
//
// A launch neither allocates nor synchronises and may be captured into a graph. The same call gives
// the same bits.
#pragma once

#include "primitive/cuda/norm_backward_launch.cuh"
#include "primitive/cuda/norm_forward_launch.cuh"

namespace oneflow_lite {
namespace cuda {

// Bytes of workspace, aligned to 16, that LaunchNorm can make use of; often none.
template <class T, bool kCentre>
size_t NormWorkspaceBytes(int64_t rows, int64_t cols, const DeviceLimits& limits) {
  return RowWorkspaceBytes<NormRow<kCentre, DirectLoad<T>, NoResidual, DirectStore<T>>>(rows, cols,
                                                                                        limits);
}

// kCentre: layer_norm, else rms_norm.
template <bool kCentre, class T>
cudaError_t LaunchNorm(const NormForward<T>& a, const DeviceLimits& limits, cudaStream_t stream,
                       void* workspace = nullptr) {
  if (a.rows <= 0 || a.cols <= 0) return cudaSuccess;
  return internal::LaunchForward<kCentre>(a, limits, stream, workspace);
}

}  // namespace cuda
}  // namespace oneflow_lite
