// SPDX-License-Identifier: Apache-2.0
//
// The launcher of adam.cu.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "oneflow_lite/core/dtype.h"
#include "primitive/adam_math.h"

namespace oneflow_lite {
namespace cuda {

using AdamLauncher = cudaError_t (*)(const AdamProblem&, const AdamTensors* tensors, int64_t count,
                                     cudaStream_t);
AdamLauncher FindAdam(DType dtype);  // of the parameters

}  // namespace cuda
}  // namespace oneflow_lite
