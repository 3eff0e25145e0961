// SPDX-License-Identifier: Apache-2.0
//
// Launchers of primitive/multi_margin.h. Null where there is no code for the dtype.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "oneflow_lite/core/dtype.h"

namespace oneflow_lite {
namespace cuda {

struct MultiMarginProblem {
  int64_t rows, classes;
  double margin;
  bool squared;
  const void* x;
  const int64_t* target;
  const void* dloss;  // of the gradient
  void* y;            // the losses, or the gradient
};
struct MultiMarginLaunchers {
  cudaError_t (*forward)(const MultiMarginProblem&, cudaStream_t) = nullptr;
  cudaError_t (*backward)(const MultiMarginProblem&, cudaStream_t) = nullptr;
};
MultiMarginLaunchers FindMultiMargin(DType dtype);

}  // namespace cuda
}  // namespace oneflow_lite
