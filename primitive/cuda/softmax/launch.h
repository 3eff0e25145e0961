// SPDX-License-Identifier: Apache-2.0
//
// The softmax launchers, compiled once per element type (softmax_<dtype>.cu). Plain values in,
// cudaError_t out.
#pragma once

#include "primitive/cuda/chip/launch.cuh"

namespace oneflow_lite::cuda {

// See SoftmaxShape: where inner is 1, the rows of the inputs lie so far apart. to_float32: of a
// 16-bit x, for the forward alone; inner is 1.
struct SoftmaxProblem {
  int64_t rows = 0, cols = 0, inner = 1;
  int64_t strides[2] = {0, 0};
  bool log = false, to_float32 = false;
};

// One element type's launchers.
struct SoftmaxLaunchers {
  size_t (*workspace_bytes)(const SoftmaxProblem&, const DeviceLimits&);
  cudaError_t (*forward)(const SoftmaxProblem&, const void* x, void* y, void* workspace,
                         const DeviceLimits&, cudaStream_t);
  cudaError_t (*backward)(const SoftmaxProblem&, const void* y, const void* dy, void* dx,
                          void* workspace, const DeviceLimits&, cudaStream_t);
};
extern const SoftmaxLaunchers kSoftmaxFloat16;
extern const SoftmaxLaunchers kSoftmaxBFloat16;
extern const SoftmaxLaunchers kSoftmaxFloat32;
extern const SoftmaxLaunchers kSoftmaxFloat64;

}  // namespace oneflow_lite::cuda
