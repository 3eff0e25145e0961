// SPDX-License-Identifier: Apache-2.0
//
// What the .cu files of reductions offer the host file beside them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "oneflow_lite/core/dtype.h"
#include "primitive/cuda/chip/device_limits.h"
#include "primitive/reduce_kinds.h"
#include "primitive/reduce_shape.h"

namespace oneflow_lite {
namespace cuda {

struct Reduction {
  ReduceShape shape;
  ReduceKind op;
  double parameter;  // the p of a norm, the correction of a variance
  DType out;         // of y
  const void* x;
  void* y;
  void* second;
  void* workspace;
  unsigned* counters;  // zeros, which the launch leaves as zeros; null: it has its own
  int64_t num_counters;
};
struct ReductionLaunchers {
  size_t (*workspace_bytes)(const ReduceShape&, const DeviceLimits&) = nullptr;
  cudaError_t (*launch)(const Reduction&, const DeviceLimits&, cudaStream_t) = nullptr;
};
// Sums, means and products; extremes, places and counts; variances and the rest. Null where the op
// is another family's. A norm is of the first where p is 0, 1 or 2, of the second where p is
// infinite, else of the third; all need the same workspace.
ReductionLaunchers FindReductionOfSums(ReduceKind op, DType in);
ReductionLaunchers FindReductionOfExtremes(ReduceKind op, DType in);
ReductionLaunchers FindReductionOfMoments(ReduceKind op, DType in);

}  // namespace cuda
}  // namespace oneflow_lite
