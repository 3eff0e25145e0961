// SPDX-License-Identifier: Apache-2.0
//
// The launchers of the norms, compiled once per element type and norm (layer_norm_<dtype>.cu,
// rms_norm_<dtype>.cu). Plain values in, cudaError_t out.
#pragma once

#include "primitive/cuda/chip/launch.cuh"

namespace oneflow_lite::cuda {

struct NormProblem {
  int64_t rows = 0, cols = 0, x_stride = 0;
  double eps = 0;
  bool float_weight = false;  // weight, bias and their gradients are float32; else of x's type
};

// As NormForward and NormBackward of norms/math.cuh; either x or y is given backward.
struct NormForwardPointers {
  const void *x = nullptr, *residual = nullptr, *weight = nullptr, *bias = nullptr;
  void *y = nullptr, *sum = nullptr, *mean = nullptr, *rstd = nullptr;
};
struct NormBackwardPointers {
  const void *x = nullptr, *y = nullptr, *dy = nullptr, *weight = nullptr, *bias = nullptr;
  const void *mean = nullptr, *rstd = nullptr, *dsum = nullptr;
  void *dx = nullptr, *dweight = nullptr, *dbias = nullptr;
};

// One element type's launchers of one norm.
struct NormLaunchers {
  size_t (*forward_bytes)(int64_t rows, int64_t cols, const DeviceLimits &);
  size_t (*backward_bytes)(int64_t rows, int64_t cols, const DeviceLimits &);
  cudaError_t (*forward)(const NormProblem &, const NormForwardPointers &, void *workspace,
                         const DeviceLimits &, cudaStream_t);
  cudaError_t (*backward)(const NormProblem &, const NormBackwardPointers &, void *workspace,
                          const DeviceLimits &, cudaStream_t);
};
extern const NormLaunchers kLayerNormFloat16, kRmsNormFloat16;
extern const NormLaunchers kLayerNormBFloat16, kRmsNormBFloat16;
extern const NormLaunchers kLayerNormFloat32, kRmsNormFloat32;
extern const NormLaunchers kLayerNormFloat64, kRmsNormFloat64;

}  // namespace oneflow_lite::cuda
