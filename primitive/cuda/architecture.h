// SPDX-License-Identifier: Apache-2.0
//
// Asked by host files, answered by a file that nvcc compiles.
#pragma once

#include <cuda_runtime_api.h>

namespace oneflow_lite {
namespace cuda {

// The architecture of which the current device runs this library's code: see chip/device_query.cuh.
cudaError_t FindArchitecture(int* architecture);

}  // namespace cuda
}  // namespace oneflow_lite
