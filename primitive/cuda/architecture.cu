// SPDX-License-Identifier: Apache-2.0
#include "primitive/cuda/architecture.h"
#include "primitive/cuda/chip/device_query.cuh"

namespace oneflow_lite {
namespace cuda {

cudaError_t FindArchitecture(int* architecture) { return QueryArchitecture(architecture); }

}  // namespace cuda
}  // namespace oneflow_lite
