// SPDX-License-Identifier: Apache-2.0
//
// CUDA's error codes as Status, and the guard that makes a device current.
//
//   DeviceGuard guard(stream.device().index);
//   OFL_RETURN_IF_ERROR(CudaStatus(cudaMemcpyAsync(...), "copy to host"));
#pragma once

#include <cuda_runtime_api.h>

#include "oneflow_lite/core/status.h"
#include "oneflow_lite/core/stream.h"

namespace oneflow_lite {

namespace internal {
Status CudaError(cudaError_t error, const char* what);
}

// OK for cudaSuccess. Else a RuntimeError, or an OutOfMemoryError for cudaErrorMemoryAllocation,
// that names `what` was tried; the runtime's remembered error is cleared, so that the next call
// does not report it again.
inline Status CudaStatus(cudaError_t error, const char* what) {
  if (error == cudaSuccess) [[likely]]
    return OkStatus();
  return internal::CudaError(error, what);
}

// Makes `device` current for this thread until destroyed.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device) {
    if (cudaGetDevice(&previous_) == cudaSuccess && previous_ == device) {
      previous_ = -1;
    } else {
      cudaSetDevice(device);
    }
  }
  ~DeviceGuard() {
    if (previous_ >= 0) cudaSetDevice(previous_);
  }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int previous_ = -1;
};

inline cudaStream_t NativeStream(const Stream& stream) {
  return static_cast<cudaStream_t>(stream.native());
}

}  // namespace oneflow_lite
