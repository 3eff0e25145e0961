// SPDX-License-Identifier: Apache-2.0
//
// The scale-mask-softmax launchers, compiled once per element type (scale_mask_softmax_<dtype>.cu).
// Plain values in, cudaError_t out.
#pragma once

#include "primitive/cuda/chip/launch.cuh"

namespace oneflow_lite::cuda {

enum class ScaleMaskKind { kNone, kBool, kAdditive };

struct ScaleMaskProblem {
  int64_t rows = 0, cols = 0;
  int64_t queries = 1;  // rows per matrix
  double scale = 1;
  bool causal = false;
  bool zero_masked_rows = false;
  ScaleMaskKind kind = ScaleMaskKind::kNone;
  bool wide_mask = false;  // an additive mask of float32 over 16-bit x
  // The mask of row r starts at the sum of c[d] mask_strides[d], with c the coordinates of r in
  // mask_dims, outermost first.
  int64_t mask_dims[3] = {1, 1, 1}, mask_strides[3] = {0, 0, 0}, mask_col_stride = 1;
};

struct ScaleMaskLaunchers {
  size_t (*workspace_bytes)(int64_t rows, int64_t cols, const DeviceLimits&);
  cudaError_t (*forward)(const ScaleMaskProblem&, const void* x, const void* mask, void* y,
                         void* workspace, const DeviceLimits&, cudaStream_t);
  cudaError_t (*backward)(const ScaleMaskProblem&, const void* y, const void* dy, void* dx,
                          void* workspace, const DeviceLimits&, cudaStream_t);
};
extern const ScaleMaskLaunchers kScaleMaskFloat16;
extern const ScaleMaskLaunchers kScaleMaskBFloat16;
extern const ScaleMaskLaunchers kScaleMaskFloat32;
extern const ScaleMaskLaunchers kScaleMaskFloat64;

}  // namespace oneflow_lite::cuda
