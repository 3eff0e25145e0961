// SPDX-License-Identifier: Apache-2.0
//
// The launcher of grad.cu.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "oneflow_lite/core/dtype.h"
#include "primitive/cuda/reduce/problem.h"
#include "primitive/reduce_kinds.h"

namespace oneflow_lite {
namespace cuda {

struct ReduceGradRun {
  ReduceProblem problem;
  double parameter;
  const void *dy, *x, *y, *extra;
  const int64_t* zeros;
  void* dx;
};
using ReduceGradLauncher = cudaError_t (*)(const ReduceGradRun&, cudaStream_t);
ReduceGradLauncher FindReduceGrad(ReduceGradKind op, DType dtype);

}  // namespace cuda
}  // namespace oneflow_lite
