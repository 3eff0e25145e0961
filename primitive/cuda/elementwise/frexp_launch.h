// SPDX-License-Identifier: Apache-2.0
//
// The launchers of frexp.cu.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "oneflow_lite/core/dtype.h"
#include "primitive/cuda/strided/strided.h"

namespace oneflow_lite {
namespace cuda {

// Operands of g in the order x, mantissa, exponent.
using FrexpLauncher = cudaError_t (*)(const Strided<3>& g, const void* x, void* mantissa,
                                      int32_t* exponent, cudaStream_t stream);
// Null where there is no code for the dtype.
FrexpLauncher FindFrexp(DType dtype);

}  // namespace cuda
}  // namespace oneflow_lite
