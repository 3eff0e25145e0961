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
// A norm of something else than a tensor in memory, or into something else, reads and writes
// through Load and Store functors (rows/io.cuh):
//
//   NormExtras<float> extras;
//   extras.weight = weight, extras.eps = 1e-5f;      // what is null is not there
//   error = LaunchNormOf<false>(load, store, extras, rows, cols, limits, stream);
//
// A launch neither allocates nor synchronises and may be captured into a graph. The same call gives
// the same bits.
#pragma once

#include "primitive/cuda/norms/backward/launch.cuh"
#include "primitive/cuda/norms/forward_launch.cuh"

namespace oneflow_lite::cuda {

// Bytes of workspace, aligned to 16, that LaunchNorm can make use of; often none.
template <class T, bool kCentre>
size_t NormWorkspaceBytes(int64_t rows, int64_t cols, const DeviceLimits& limits) {
  return RowWorkspaceBytes<NormRow<kCentre, DirectLoad<T>, DirectStore<T>>>(rows, cols, limits);
}

// kCentre: layer_norm, else rms_norm.
template <bool kCentre, class T>
cudaError_t LaunchNorm(const NormForward<T>& a, const DeviceLimits& limits, cudaStream_t stream,
                       void* workspace = nullptr) {
  if (a.rows <= 0 || a.cols <= 0) return cudaSuccess;
  return internal::LaunchForward<kCentre>(a, LaunchSite{limits, stream, workspace});
}

// The norm of what `load` gives, to `store`, in the tiers of rows/row.cuh; extras' cols and share
// are set here. Element of the Store is the type of weight and bias, unless extras.float_weight.
template <bool kCentre, class Load, class Store>
cudaError_t LaunchNormOf(const Load& load, const Store& store,
                         NormExtras<ComputeType<typename Store::Element>> extras, int64_t rows,
                         int64_t cols, const DeviceLimits& limits, cudaStream_t stream,
                         void* workspace = nullptr) {
  if (rows <= 0 || cols <= 0) return cudaSuccess;
  extras.cols = cols;
  extras.share = 1 / static_cast<decltype(extras.share)>(cols);
  const NormRow<kCentre, Load, Store> row{{load, store, extras}};
  return LaunchRows(row, rows, cols, limits, stream, workspace);
}

}  // namespace oneflow_lite::cuda
