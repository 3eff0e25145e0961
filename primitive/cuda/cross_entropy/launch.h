// SPDX-License-Identifier: Apache-2.0
//
// The cross-entropy launchers, compiled once per element type (cross_entropy_<dtype>.cu). Plain
// values in, cudaError_t out. What void points to has the compute type, but for x, dx and value.
#pragma once

#include "primitive/cuda/chip/launch.cuh"

namespace oneflow_lite::cuda {

struct CrossEntropyProblem {
  int64_t rows = 0, classes = 0, ignore_index = -100;
  double smoothing = 0;
  int64_t row_stride = 0;  // of x
};

struct CrossEntropyLaunchers {
  size_t (*workspace_bytes)(int64_t rows, int64_t classes, const DeviceLimits&);
  cudaError_t (*forward)(const CrossEntropyProblem&, const void* x, const int64_t* target,
                         void* loss, void* stats, const LaunchSite&);
  cudaError_t (*backward)(const CrossEntropyProblem&, const void* x, const int64_t* target,
                          const void* stats, const void* dloss, int64_t dloss_stride, void* dx,
                          const LaunchSite&);
  size_t (*in_place_workspace_bytes)(int64_t rows, int64_t classes, const DeviceLimits&);
  cudaError_t (*in_place)(const CrossEntropyProblem&, void* x, const int64_t* target,
                          const void* scale, void* loss, const LaunchSite&);
  // Without `value` the weight alone, of no losses.
  cudaError_t (*reduce)(int64_t rows, int64_t ignore_index, const void* loss, const int64_t* target,
                        void* value, void* weight, cudaStream_t);
  cudaError_t (*scale_rows)(int64_t rows, int64_t cols, const void* factor, int64_t stride, void* x,
                            const LaunchSite&);
};
extern const CrossEntropyLaunchers kCrossEntropyFloat16;
extern const CrossEntropyLaunchers kCrossEntropyBFloat16;
extern const CrossEntropyLaunchers kCrossEntropyFloat32;
extern const CrossEntropyLaunchers kCrossEntropyFloat64;

}  // namespace oneflow_lite::cuda
