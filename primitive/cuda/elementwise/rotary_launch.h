// SPDX-License-Identifier: Apache-2.0
//
// The launchers of rotary.cu.
#pragma once

#include <cuda_runtime_api.h>

#include "oneflow_lite/core/dtype.h"
#include "primitive/rotary_shape.h"

namespace oneflow_lite {
namespace cuda {

using RotaryLauncher = cudaError_t (*)(const RotaryShape& shape, const void* x, const void* cos,
                                       const void* sin, void* y, cudaStream_t stream);
// Null where there is no code for the dtype.
RotaryLauncher FindRotary(DType dtype);

}  // namespace cuda
}  // namespace oneflow_lite
