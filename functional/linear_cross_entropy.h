// SPDX-License-Identifier: Apache-2.0
//
// Cross entropy of the logits of a linear layer, which are never there as a whole.
//
//   OFL_ASSIGN_OR_RETURN(Tensor loss, functional::LinearCrossEntropy(x, weight, labels, 8));
#pragma once

#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite::functional {

// CrossEntropy(Linear(x, weight, bias), target) of x [..., in], weight [classes, in], integer
// targets [...] and bias [classes], if any. The rows go in `chunks` parts, one after another, so
// that memory is that of one part's logits. With reduction "none" the losses have target's shape.
//
// Where gradients are wanted and the reduction is not "none", they are computed with the loss, part
// by part; backward only multiplies them by what arrives. In float16, where a gradient that is
// scaled later may be lost, for "none", and in a second pass of backward, the logits are computed
// anew. There is a derivative of any order; one of the second order takes all logits at once.
OFL_API StatusOr<Tensor> LinearCrossEntropy(const Tensor& x, const Tensor& weight,
                                            const Tensor& target, int64_t chunks = 1,
                                            const Tensor& bias = {}, int64_t ignore_index = -100,
                                            absl::string_view reduction = "mean",
                                            double label_smoothing = 0.0);

}  // namespace oneflow_lite::functional
