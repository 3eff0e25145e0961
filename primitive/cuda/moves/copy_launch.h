// SPDX-License-Identifier: Apache-2.0
//
// The launchers of copy.cu and repeat.cu.
#pragma once

#include <cuda_runtime_api.h>

#include "primitive/cuda/strided/strided.h"

namespace oneflow_lite {
namespace cuda {

// Pointers are device memory; operands of g: source, destination.
using CopyLauncher = cudaError_t (*)(const Strided<2>& g, const void* src, void* dst, cudaStream_t);
// A transpose as PlanCopy (copy_plan.h) gives it.
CopyLauncher FindTransposingCopy(int element_bytes, int access_bytes);

// dst[i] = src[i / times] of `count` elements of src.
using RepeatLauncher = cudaError_t (*)(int64_t count, int64_t times, const void* src, void* dst,
                                       cudaStream_t);
RepeatLauncher FindRepeat(int element_bytes);
// dst[k * bytes + i] = src[i] for k < times, in accesses of 16 bytes, to which both are aligned.
cudaError_t LaunchRepeatLine(int64_t bytes, int64_t times, const void* src, void* dst,
                             cudaStream_t stream);

}  // namespace cuda
}  // namespace oneflow_lite
