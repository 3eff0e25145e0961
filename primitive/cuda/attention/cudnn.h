// SPDX-License-Identifier: Apache-2.0
//
// cuDNN's fused attention: plans for shapes, kept, and their launches. cuDNN is opened when it is
// first needed; where it is absent, too old, or has no kernel for a shape, that is a
// NotImplementedError with the reason.
//
//   OFL_ASSIGN_OR_RETURN(const auto plan, FindCudnnPlan(stream, problem));
//   OFL_RETURN_IF_ERROR(RunCudnnPlan(stream, *plan, pointers, workspace));
#pragma once

#include <memory>
#include <string>

#include "primitive/attention.h"

namespace oneflow_lite::cuda {

// What a plan is made for: all of it takes part in the comparison.
struct CudnnProblem {
  DType dtype = DType::kFloat16;
  bool backward = false;
  bool padded =
      false;  // lengths are those of the tensors' memory, the true ones come with a launch
  AttentionShape shape;
  int64_t bias_stride = 0;  // of the bias's rows, where shape.masked
};

// Device memory of a launch; what the problem has none of is not looked at.
struct CudnnPointers {
  const void *q = nullptr, *k = nullptr, *v = nullptr, *bias = nullptr;
  const void *seed = nullptr, *offset = nullptr;   // of 64 bits
  const void *queries = nullptr, *keys = nullptr;  // lengths of 32 bits, for each batch
  const void* dout = nullptr;
  void *out = nullptr, *lse = nullptr;  // outputs of the forward pass, inputs of the backward pass
  void *dq = nullptr, *dk = nullptr, *dv = nullptr;
};

class CudnnPlan;

// The plan of a problem on the stream's device, built at its first use; the least recently used
// one goes where there are more than kMostPlans, but none that a graph has captured.
inline constexpr size_t kMostPlans = 64;
// RuntimeError where it is not there and the stream captures; NotImplementedError where cuDNN
// cannot serve it.
StatusOr<std::shared_ptr<CudnnPlan>> FindCudnnPlan(const Stream& stream,
                                                   const CudnnProblem& problem);
// Whether the problem has been looked at before: there is a plan, or it is known why there is none.
bool KnowsCudnnProblem(const Stream& stream, const CudnnProblem& problem);
int64_t WorkspaceBytesOf(const CudnnPlan& plan);
Status RunCudnnPlan(const Stream& stream, CudnnPlan& plan, const CudnnPointers& pointers,
                    void* workspace);

}  // namespace oneflow_lite::cuda
