// SPDX-License-Identifier: Apache-2.0
//
// The launchers of loss.cu.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "oneflow_lite/core/dtype.h"
#include "primitive/loss_math.h"

namespace oneflow_lite {
namespace cuda {

struct LossArguments {
  LossOrder order;
  double a, b, scale;
  int64_t n, period;
  bool one_dy;
  const void *dy, *x, *t, *p;  // dy and p may be null
  void* y;
};

// Blocks of a sum, each of which leaves one partial sum (a double) in the workspace.
int64_t LossBlocks(int64_t n, DType dtype, int multiprocessors);

struct LossLaunchers {
  cudaError_t (*elements)(const LossArguments& args, cudaStream_t) = nullptr;
  cudaError_t (*sum)(const LossArguments& args, int64_t blocks, double* partial,
                     cudaStream_t) = nullptr;
};
LossLaunchers FindLoss(LossKind kind, DType dtype);

}  // namespace cuda
}  // namespace oneflow_lite
