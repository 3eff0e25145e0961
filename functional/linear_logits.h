// SPDX-License-Identifier: Apache-2.0
//
// The logits of a linear head, local or of the ranks that its classes are split over: for
// linear_cross_entropy.
#pragma once

#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite::functional {

// Rows x [N, in], targets [N], weight [classes, in], bias [classes] or undefined.
struct HeadOperands {
  Tensor x, weight, bias, target;
};

// Rows and targets whole on the ranks that have other classes, so that each makes the logits of its
// own; recorded by autograd. Where no weight is split by class they are left alone.
Status MeetClasses(HeadOperands* o);

// The logits of rows x [n, in]; recorded by autograd where it records. Else they may be some
// columns of a wider tensor, on each rank, and are the caller's to overwrite.
StatusOr<Tensor> LogitsOf(const Tensor& x, const HeadOperands& o);

}  // namespace oneflow_lite::functional
