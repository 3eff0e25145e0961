// SPDX-License-Identifier: Apache-2.0
//
// Cross entropy of logits.
//
//   OFL_ASSIGN_OR_RETURN(Tensor loss, functional::CrossEntropy(logits, labels));
#pragma once

#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite::functional {

// Cross entropy of logits [N, C, ...] (or [C]) with integer targets [N, ...] (or 0-dim), or with
// the probability of each class, floating and of the logits' shape. weight [C] or absent; rows
// whose target is ignore_index count as 0. reduction: "none" gives the losses, "sum" their sum,
// "mean" their sum over that of the weights (over the number of rows for probabilities).
// label_smoothing in [0, 1] mixes the target with the uniform distribution (Szegedy et al., 2016).
// A target outside [0, C) is an IndexError on the CPU and gives NaN on CUDA.
//
// Class targets without weights over [N, C] run in one kernel that reads the logits once, keeps two
// numbers per row for backward and computes in float32 for the 16-bit floats; the rest is composed
// of log_softmax and nll_loss.
//
// inplace_backward allows the call to write the gradient into the logits' memory while it is at it:
// less memory and fewer bytes moved, but the values of `logits` are lost where it requires a
// gradient, there is no second derivative, and backward runs once.
OFL_API StatusOr<Tensor> CrossEntropy(const Tensor& logits, const Tensor& target,
                                      const Tensor& weight = {}, int64_t ignore_index = -100,
                                      absl::string_view reduction = "mean",
                                      double label_smoothing = 0.0, bool inplace_backward = false);

// The gradient of the losses of logits [N, C] at targets [N], times dloss [N]; stats [N, 2] is the
// forward's second output.
OFL_API StatusOr<Tensor> CrossEntropyBackward(const Tensor& logits, const Tensor& target,
                                              const Tensor& stats, const Tensor& dloss,
                                              int64_t ignore_index, double label_smoothing);
// The same in the memory of the logits, whose values are lost.
StatusOr<Tensor> CrossEntropyBackwardInto(const Tensor& logits, const Tensor& target,
                                          const Tensor& stats, const Tensor& dloss,
                                          int64_t ignore_index, double label_smoothing);

// x [N, C] times factor [N] (of x's compute type), row by row and in place. Rows whose factor is 1
// are not touched. Returns x.
OFL_API StatusOr<Tensor> ScaleRowsInto(const Tensor& x, const Tensor& factor);

}  // namespace oneflow_lite::functional
