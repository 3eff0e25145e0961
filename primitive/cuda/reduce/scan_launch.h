// SPDX-License-Identifier: Apache-2.0
//
// The launchers of scan.cu.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "oneflow_lite/core/dtype.h"
#include "primitive/cuda/chip/device_limits.h"
#include "primitive/cuda/reduce/problem.h"
#include "primitive/reduce_kinds.h"

namespace oneflow_lite {
namespace cuda {

struct ScanRun {
  ReduceProblem problem;
  bool reverse, shifted;
  const void *x, *other;
  void* y;
  int64_t* places;
  void* workspace;
};
struct ScanLaunchers {
  size_t (*workspace_bytes)(const ReduceProblem&, const DeviceLimits&) = nullptr;
  cudaError_t (*launch)(const ScanRun&, const DeviceLimits&, cudaStream_t) = nullptr;
};
ScanLaunchers FindScan(ScanKind op, DType dtype);

}  // namespace cuda
}  // namespace oneflow_lite
