// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "primitive/cuda/chip/launch.cuh"

namespace oneflow_lite {
namespace cuda {

// What the current device and this library's code can do. The driver is asked once per device;
// threads may ask at once.
cudaError_t LimitsOfCurrentDevice(DeviceLimits* limits);

}  // namespace cuda
}  // namespace oneflow_lite
