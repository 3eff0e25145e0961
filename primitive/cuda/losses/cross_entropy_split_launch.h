// SPDX-License-Identifier: Apache-2.0
//
// The launchers of cross_entropy_split.cu. What void points to has the compute type, but for x and
// dx.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "oneflow_lite/core/dtype.h"
#include "primitive/cross_entropy_split_shape.h"

namespace oneflow_lite {
namespace cuda {

struct CrossEntropySplitLaunchers {
  cudaError_t (*part)(const ClassPartShape&, const void* x, const int64_t* target, void* part,
                      cudaStream_t) = nullptr;
  cudaError_t (*merge)(const ClassMergeShape&, const int64_t* target, const void* parts, void* loss,
                       void* stats, cudaStream_t) = nullptr;
  cudaError_t (*gradient)(const ClassPartShape&, const void* x, const int64_t* target,
                          const void* stats, const void* dloss, int64_t dloss_stride, void* dx,
                          int64_t dx_stride, cudaStream_t) = nullptr;
};
// Null ones where there is no code for the dtype.
CrossEntropySplitLaunchers FindCrossEntropySplit(DType dtype);

}  // namespace cuda
}  // namespace oneflow_lite
