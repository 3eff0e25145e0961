// SPDX-License-Identifier: Apache-2.0
//
// The launchers of copy.cu.
#pragma once

#include <cuda_runtime_api.h>

#include "primitive/cuda/strided/strided.h"

namespace oneflow_lite {
namespace cuda {

// Pointers are device memory; operands of g: source, destination.
using CopyLauncher = cudaError_t (*)(const Strided<2>& g, const void* src, void* dst, cudaStream_t);
// A transpose as PlanCopy (copy_plan.h) gives it.
CopyLauncher FindTransposingCopy(int element_bytes, int access_bytes);

}  // namespace cuda
}  // namespace oneflow_lite
