// SPDX-License-Identifier: Apache-2.0
//
// Launchers of primitive/multi_tensor.h.
#pragma once

#include <cuda_runtime_api.h>

#include "oneflow_lite/core/dtype.h"
#include "primitive/multi_tensor_math.h"

namespace oneflow_lite {
namespace cuda {

using MultiTensorLauncher = cudaError_t (*)(const MultiTensorProblem&, const MultiTensors* tensors,
                                            int64_t count, cudaStream_t);
MultiTensorLauncher FindMultiTensor(MultiTensorOp op, DType dtype);

struct TensorNormsLaunchers {
  // Parts of the sums, in double, that the tensors take.
  int64_t (*parts)(const NormedTensor*, int64_t count) = nullptr;
  cudaError_t (*launch)(double p, const NormedTensor*, int64_t count, void* norms, double* parts,
                        cudaStream_t) = nullptr;
};
TensorNormsLaunchers FindTensorNorms(DType dtype);

}  // namespace cuda
}  // namespace oneflow_lite
