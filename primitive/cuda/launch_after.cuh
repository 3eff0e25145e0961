// SPDX-License-Identifier: Apache-2.0
//
// Launching a kernel behind another one of the same op, so that the gap between them is short.
#pragma once

#include <cuda_runtime_api.h>

#include "primitive/cuda/device_limits.h"

namespace oneflow_lite {
namespace cuda {
namespace internal {

// A kernel that begins with WaitForPreviousKernel(): its blocks may be in place before the kernel
// in front of it has ended, on devices that can do that: those that have clusters.
template <class... Params, class... Args>
cudaError_t LaunchAfter(const DeviceLimits& limits, void (*kernel)(Params...), dim3 blocks,
                        int threads, cudaStream_t stream, const Args&... args) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = blocks;
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = limits.clusters ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, Params(args)...);
}

}  // namespace internal
}  // namespace cuda
}  // namespace oneflow_lite
