// SPDX-License-Identifier: Apache-2.0
//
// The launchers of gated.cu.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "oneflow_lite/core/dtype.h"
#include "primitive/gate_kinds.h"

namespace oneflow_lite {
namespace cuda {

struct GatedLaunchers {
  cudaError_t (*forward)(int64_t rows, int64_t half, const void* x, void* y,
                         cudaStream_t stream) = nullptr;
  cudaError_t (*backward)(int64_t rows, int64_t half, const void* dy, const void* x, void* dx,
                          cudaStream_t stream) = nullptr;
};
// Null ones where there is no code for the dtype.
GatedLaunchers FindGated(GateKind kind, DType dtype);

}  // namespace cuda
}  // namespace oneflow_lite
