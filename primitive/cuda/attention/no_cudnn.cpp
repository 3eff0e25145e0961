// SPDX-License-Identifier: Apache-2.0
//
// In place of cudnn.cpp where this library is built without the headers of cuDNN and its
// frontend.
#include "primitive/cuda/attention/cudnn.h"

namespace oneflow_lite::cuda {
namespace {

Status WithoutHeaders() {
  return Error(ErrorKind::kNotImplemented,
               "this library was built without the headers of cuDNN and of its frontend "
               "(`pip install nvidia-cudnn-frontend nvidia-cudnn-jit-cu13` before building)");
}

}  // namespace

class CudnnPlan {};

bool KnowsCudnnProblem(const Stream&, const CudnnProblem&) { return true; }
StatusOr<std::shared_ptr<CudnnPlan>> FindCudnnPlan(const Stream&, const CudnnProblem&) {
  return WithoutHeaders();
}
int64_t WorkspaceBytesOf(const CudnnPlan&) { return 0; }
Status RunCudnnPlan(const Stream&, CudnnPlan&, const CudnnPointers&, void*) {
  return WithoutHeaders();
}

}  // namespace oneflow_lite::cuda
