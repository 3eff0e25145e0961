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
#include "primitive/cuda/norm_forward.cuh"
#include "primitive/cuda/row.cuh"

namespace oneflow_lite {
namespace cuda {

// Rows of x lie x_stride elements apart, all else is dense; pointers are aligned to their element.
// Only x and y are required. With a residual, x + residual is what is normalised, and `sum`
// receives it. weight and bias are float32 where float_weight, else T. mean is not for rms_norm. y
// may be x, sum may be x or residual; otherwise no two may overlap.
template <class T>
struct NormForward {
  using C = ComputeType<T>;
  int64_t rows = 0, cols = 0, x_stride = 0;
  double eps = 0;
  const T* x = nullptr;
  const T* residual = nullptr;
  const void* weight = nullptr;
  const void* bias = nullptr;
  bool float_weight = false;
  T* y = nullptr;
  T* sum = nullptr;
  C* mean = nullptr;
  C* rstd = nullptr;
};

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
  using C = ComputeType<T>;
  const DirectLoad<T> load{a.x, a.x_stride};
  const DirectStore<T> store{a.y, a.cols};
  NormExtras<T, C> extras;
  extras.weight = a.weight, extras.bias = a.bias, extras.float_weight = a.float_weight;
  extras.sum = a.sum, extras.cols = a.cols, extras.mean = a.mean, extras.rstd = a.rstd;
  extras.eps = static_cast<C>(a.eps);
  extras.share = static_cast<C>(1.0 / static_cast<double>(a.cols > 0 ? a.cols : 1));
  if (!a.residual) {
    using Row = NormRow<kCentre, DirectLoad<T>, NoResidual, DirectStore<T>>;
    return LaunchRows(Row{load, {}, store, extras}, a.rows, a.cols, limits, stream, workspace);
  }
  using Row = NormRow<kCentre, DirectLoad<T>, DirectLoad<T>, DirectStore<T>>;
  const DirectLoad<T> residual{a.residual, a.cols};
  return LaunchRows(Row{load, residual, store, extras}, a.rows, a.cols, limits, stream, workspace);
}

}  // namespace cuda
}  // namespace oneflow_lite
