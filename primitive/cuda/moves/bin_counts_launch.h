// SPDX-License-Identifier: Apache-2.0
//
// The launcher of primitive/bin_counts.h without edges and weights. Null where there is no code for
// the dtype.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "oneflow_lite/core/dtype.h"
#include "primitive/cuda/chip/device_limits.h"

namespace oneflow_lite {
namespace cuda {

struct BinCountsProblem {
  int64_t n;
  const void* x;
  int64_t bins;
  double low, high;
  int64_t* counts;
};
using BinCountsLauncher = cudaError_t (*)(const BinCountsProblem&, const DeviceLimits&,
                                          cudaStream_t);
BinCountsLauncher FindBinCounts(DType dtype);

}  // namespace cuda
}  // namespace oneflow_lite
