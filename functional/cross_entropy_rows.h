// SPDX-License-Identifier: Apache-2.0
//
// The ops under cross entropy, for functors that compose it otherwise: logits [N, C], targets [N].
#pragma once

#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite::functional {

// One block of a GPU goes over so many rows in less time than several general ops take.
inline constexpr int64_t kRowsOfOneBlock = 1 << 16;

// The loss of each row, and what CrossEntropyBackward wants of it; backward may write the gradient
// into the memory of the logits.
struct CrossEntropyRows {
  Tensor loss, stats;
};
StatusOr<CrossEntropyRows> FusedRows(const Tensor& logits, const Tensor& target,
                                     int64_t ignore_index, double smoothing,
                                     bool inplace_backward = false);
// The losses times `scale` (or 1 where undefined), and the gradient of their sum, which is written
// into the memory of the logits where they need not move between ranks.
struct CrossEntropyGradients {
  Tensor loss, gradient;
};
StatusOr<CrossEntropyGradients> FusedRowsInPlace(const Tensor& logits, const Tensor& target,
                                                 const Tensor& scale, int64_t ignore_index,
                                                 double smoothing);
// 1 over the number of rows that count.
StatusOr<Tensor> MeanWeight(const Tensor& target, int64_t ignore_index, DType dtype);
// The losses' sum; their mean where there are targets.
StatusOr<Tensor> ReducedRows(const Tensor& loss, const Tensor& target, int64_t ignore_index,
                             DType dtype);

}  // namespace oneflow_lite::functional
