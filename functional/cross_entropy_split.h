// SPDX-License-Identifier: Apache-2.0
//
// Cross entropy of logits whose classes are split over ranks: no rank sees the logits of another.
#pragma once

#include "functional/cross_entropy_rows.h"
#include "functional/global.h"

namespace oneflow_lite::functional {

// Whether logits [N, C] are split by class along one dim of their grid, and along the other by rows
// at most.
bool HasSplitClasses(const Tensor& logits);
// A tensor of the logits' rows where each rank wants it: with its rows, whole where they have other
// classes. Precondition: HasSplitClasses(logits), on the same placement.
StatusOr<Tensor> BesideClasses(const Tensor& rows, const Tensor& logits);

// One number as a number of each row of x, which lie as the rows do: an expand may split them where
// they are then wanted whole. Unrecorded by autograd where x is global.
StatusOr<Tensor> OfEachRow(const Tensor& number, const Tensor& x);

// What FusedRows gives. Each rank reads its logits once and gives four numbers of each row, 16
// bytes (float32), to the others. Precondition: HasSplitClasses(logits).
StatusOr<CrossEntropyRows> SplitClassRows(const Tensor& logits, const Tensor& target,
                                          int64_t ignore_index, double smoothing);
// What FusedRowsInPlace gives, unrecorded: each rank's logits, in their memory, are read twice and
// written once. Same precondition.
StatusOr<CrossEntropyGradients> SplitClassRowsInPlace(const Tensor& logits, const Tensor& target,
                                                      const Tensor& scale, int64_t ignore_index,
                                                      double smoothing);
// log_softmax over the classes, split as the logits are. Same precondition, and this rank is one of
// the placement.
StatusOr<Tensor> SplitClassLogSoftmax(const Tensor& logits);

}  // namespace oneflow_lite::functional
