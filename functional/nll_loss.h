// SPDX-License-Identifier: Apache-2.0
//
// Negative log likelihood.
//
//   OFL_ASSIGN_OR_RETURN(Tensor loss, functional::NllLoss(logp, labels));
#pragma once

#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite::functional {

// Loss of log-probabilities [N, C, ...] (or [C]) at integer targets [N, ...] (or 0-dim): -w[t]
// logp[t]. weight [C] or absent; rows whose target is ignore_index count as 0. reduction: "none"
// gives the losses, "sum" their sum, "mean" their sum over the sum of the weights. A target outside
// [0, C) is an IndexError on the CPU and gives NaN on CUDA.
OFL_API StatusOr<Tensor> NllLoss(const Tensor& logp, const Tensor& target,
                                 const Tensor& weight = {}, int64_t ignore_index = -100,
                                 absl::string_view reduction = "mean");

// The loss of each row before reduction, the weight with which it counts, and its target as int64.
struct NllRows {
  Tensor loss, weight, target;
};
OFL_API StatusOr<NllRows> NllLossRows(const Tensor& logp, const Tensor& target,
                                      const Tensor& weight = {}, int64_t ignore_index = -100);

// What the losses share. ValueError for a reduction that is none of the three.
Status CheckReduction(const char* op, absl::string_view reduction);
StatusOr<Tensor> ReducedLoss(const Tensor& loss, const Tensor& weight, absl::string_view reduction);

}  // namespace oneflow_lite::functional
