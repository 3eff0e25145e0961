// SPDX-License-Identifier: Apache-2.0
//
// What activation.cu and activation_backward.cu offer the host file beside them, as launchers.h
// does for the other families.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "oneflow_lite/core/dtype.h"
#include "primitive/activation_kinds.h"

namespace oneflow_lite {
namespace cuda {

using ActivationLauncher = cudaError_t (*)(int64_t n, const ActivationNumbers& numbers,
                                           const void* x, void* y, cudaStream_t);
ActivationLauncher FindActivation(ActivationOp op, DType dtype);

// With one_dy, dy is one element that stands for all.
using SlopeLauncher = cudaError_t (*)(int64_t n, const ActivationNumbers& numbers, const void* dy,
                                      bool one_dy, const void* x, void* dx, cudaStream_t);
SlopeLauncher FindSlope(ActivationOp op, bool of_output, DType dtype);

}  // namespace cuda
}  // namespace oneflow_lite
