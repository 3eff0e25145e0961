// SPDX-License-Identifier: Apache-2.0
//
// Cross entropy of logits whose classes are split over ranks: no rank sees the logits of another.
#pragma once

#include "functional/global.h"

namespace oneflow_lite::functional {

// Whether logits [N, C] are split by class along one dim of their grid, and along the other by rows
// at most.
bool HasSplitClasses(const Tensor& logits);
// The losses [N] of int64 targets [N], 0 where they are ignore_index. Each rank takes its classes'
// maximum, sum of exponentials and the target's logit; 8 and twice 4 bytes a row (float32) go over
// the ranks, and 4 more with label smoothing. Precondition: HasSplitClasses(logits).
StatusOr<Tensor> SplitClassLosses(const Tensor& logits, const Tensor& target, int64_t ignore_index,
                                  double smoothing);
// log_softmax over the classes, split as the logits are. Precondition: HasSplitClasses(logits).
StatusOr<Tensor> SplitClassLogSoftmax(const Tensor& logits);

}  // namespace oneflow_lite::functional
