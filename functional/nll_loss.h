// SPDX-License-Identifier: Apache-2.0
//
// Negative log likelihood and cross entropy.
//
//   OFL_ASSIGN_OR_RETURN(Tensor loss, functional::CrossEntropy(logits, labels));
#pragma once

#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite::functional {

// Loss of log-probabilities [N, C, ...] (or [C]) at int64 targets [N, ...] (or 0-dim): -w[t]
// logp[t]. weight [C] or absent; rows whose target is ignore_index count as 0. reduction: "none"
// gives the losses, "sum" their sum, "mean" their sum over the sum of the weights. A target outside
// [0, C) is an IndexError on the CPU and gives NaN on CUDA. weight gets no gradient.
OFL_API StatusOr<Tensor> NllLoss(const Tensor& logp, const Tensor& target,
                                 const Tensor& weight = {}, int64_t ignore_index = -100,
                                 absl::string_view reduction = "mean");

// NllLoss of log_softmax over dim 1 (dim 0 for 1-D logits). A floating target of the logits' shape
// gives the probability of each class. label_smoothing in [0, 1] mixes the target with the uniform
// distribution (Szegedy et al., 2016).
OFL_API StatusOr<Tensor> CrossEntropy(const Tensor& logits, const Tensor& target,
                                      const Tensor& weight = {}, int64_t ignore_index = -100,
                                      absl::string_view reduction = "mean",
                                      double label_smoothing = 0.0);

}  // namespace oneflow_lite::functional
