// SPDX-License-Identifier: Apache-2.0
//
// Elements in order. NaN counts as the largest; equal elements keep their order.
//
//   OFL_ASSIGN_OR_RETURN(TensorList best, functional::TopK(logits, 5));   // values, places
#pragma once

#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite::functional {

// Values and the places (int64) they came from along dim.
OFL_API StatusOr<TensorList> Sort(const Tensor& x, int64_t dim = -1, bool descending = false);
OFL_API StatusOr<Tensor> ArgSort(const Tensor& x, int64_t dim = -1, bool descending = false);
// Values along the first dim.
OFL_API StatusOr<Tensor> MSort(const Tensor& x);
// The k largest (or smallest) and their places, in order. IndexError where there are fewer.
OFL_API StatusOr<TensorList> TopK(const Tensor& x, int64_t k, int64_t dim = -1,
                                  bool largest = true);

}  // namespace oneflow_lite::functional
