// SPDX-License-Identifier: Apache-2.0
//
// The launchers of creation.cu. Null where there is no code for the dtype.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "oneflow_lite/core/dtype.h"
#include "primitive/cuda/strided/strided.h"

namespace oneflow_lite {
namespace cuda {

using FillLauncher = cudaError_t (*)(const Strided<1>& g, ScalarBits value, void* y, cudaStream_t);
FillLauncher FindFill(DType dtype);

// Integer dtypes take the integer pair, floats the floating one.
struct ArangeArguments {
  int64_t int_start, int_step;
  double start, step;
};
using ArangeLauncher = cudaError_t (*)(int64_t n, const ArangeArguments&, void* y, cudaStream_t);
ArangeLauncher FindArange(DType dtype);

// The first `half` of n numbers are counted from start, the others from end.
struct LinspaceArguments {
  double start, end, step;
  int64_t half, last;
};
using LinspaceLauncher = cudaError_t (*)(int64_t n, const LinspaceArguments&, void* y,
                                         cudaStream_t);
LinspaceLauncher FindLinspace(DType dtype);

}  // namespace cuda
}  // namespace oneflow_lite
