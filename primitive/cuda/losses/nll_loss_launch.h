// SPDX-License-Identifier: Apache-2.0
//
// The launchers of nll_loss.cu. Null ones where there is no code for the dtype.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "oneflow_lite/core/dtype.h"

namespace oneflow_lite {
namespace cuda {

struct NllProblem {
  int64_t outer, classes, inner, ignore_index;
};
struct NllLaunchers {
  cudaError_t (*forward)(const NllProblem&, const void* logp, const int64_t* target,
                         const void* class_weight, void* loss, void* row_weight,
                         cudaStream_t) = nullptr;
  cudaError_t (*backward)(const NllProblem&, const void* dloss, const int64_t* target,
                          const void* row_weight, void* dlogp, cudaStream_t) = nullptr;
};
NllLaunchers FindNll(DType dtype);

}  // namespace cuda
}  // namespace oneflow_lite
