// SPDX-License-Identifier: Apache-2.0
//
// The launcher of primitive/presence.h. Null where there is no code for the dtype.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "oneflow_lite/core/dtype.h"
#include "primitive/cuda/chip/device_limits.h"

namespace oneflow_lite {
namespace cuda {

struct PresenceProblem {
  int64_t n;
  const void* x;
  int64_t low, size;
  bool* seen;
};
using PresenceLauncher = cudaError_t (*)(const PresenceProblem&, const DeviceLimits&, cudaStream_t);
PresenceLauncher FindPresence(DType dtype);

}  // namespace cuda
}  // namespace oneflow_lite
