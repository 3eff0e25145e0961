// SPDX-License-Identifier: Apache-2.0
//
// Losses that compare distances or scores with a margin, composed of other functors. reduction is
// "mean", "sum" or "none" in all of them, else a ValueError.
//
//   OFL_ASSIGN_OR_RETURN(Tensor loss, functional::TripletMarginLoss(anchor, positive, negative));
#pragma once

#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite::functional {

// 1 - cosine of x1 and x2 where target is 1, max(0, cosine - margin) where it is -1; along the last
// dim, of [n, m] or [m].
OFL_API StatusOr<Tensor> CosineEmbeddingLoss(const Tensor& x1, const Tensor& x2,
                                             const Tensor& target, double margin = 0,
                                             absl::string_view reduction = "mean");
// max(0, |anchor - positive| - |anchor - negative| + margin), the p-norms along the last dim; with
// swap the nearer of anchor and positive counts.
OFL_API StatusOr<Tensor> TripletMarginLoss(const Tensor& anchor, const Tensor& positive,
                                           const Tensor& negative, double margin = 1, double p = 2,
                                           double eps = 1e-6, bool swap = false,
                                           absl::string_view reduction = "mean");
// The sum over the classes j but the target of max(0, margin - x[target] + x[j])^p over their
// number, p = 1 or 2, each times weight[target]; x is [n, classes] or [classes].
OFL_API StatusOr<Tensor> MultiMarginLoss(const Tensor& x, const Tensor& target, int64_t p = 1,
                                         double margin = 1, const Tensor& weight = {},
                                         absl::string_view reduction = "mean");
// The sum over the targets t of a row, up to the first -1, and all other classes j, of
// max(0, 1 - x[t] + x[j]) over the number of classes.
OFL_API StatusOr<Tensor> MultilabelMarginLoss(const Tensor& x, const Tensor& target,
                                              absl::string_view reduction = "mean");
// binary_cross_entropy_with_logits, weighted, averaged over the last dim.
OFL_API StatusOr<Tensor> MultilabelSoftMarginLoss(const Tensor& x, const Tensor& target,
                                                  const Tensor& weight = {},
                                                  absl::string_view reduction = "mean");

}  // namespace oneflow_lite::functional
