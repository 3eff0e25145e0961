// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/core/cuda/cuda_status.h"

namespace oneflow_lite::internal {

Status CudaError(cudaError_t error, const char* what) {
  cudaGetLastError();
  const ErrorKind kind =
      error == cudaErrorMemoryAllocation ? ErrorKind::kOutOfMemory : ErrorKind::kRuntime;
  return Error(kind, "CUDA: ", what, " failed: ", cudaGetErrorString(error), " (",
               cudaGetErrorName(error), ")");
}

}  // namespace oneflow_lite::internal
