// SPDX-License-Identifier: Apache-2.0
//
// The launchers of binary_backward.cu.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "oneflow_lite/core/dtype.h"
#include "primitive/cuda/chip/device_limits.h"
#include "primitive/op_kinds.h"

namespace oneflow_lite {
namespace cuda {

// dy, a, da: [outer, axis, inner]; b, db: [axis].
struct BinaryBackwardRun {
  int64_t outer, axis, inner;
  const void *dy, *a, *b;
  void *da, *db;
  void *workspace;
};
struct BinaryBackwardLaunchers {
  size_t (*workspace_bytes)(int64_t outer, int64_t axis, int64_t inner,
                            const DeviceLimits &) = nullptr;
  cudaError_t (*launch)(const BinaryBackwardRun &, const DeviceLimits &, cudaStream_t) = nullptr;
};
// Null where there is no code for the op or the dtype.
BinaryBackwardLaunchers FindBinaryBackward(BinaryOp op, DType dtype);

}  // namespace cuda
}  // namespace oneflow_lite
