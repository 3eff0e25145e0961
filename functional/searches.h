// SPDX-License-Identifier: Apache-2.0
//
// Elements searched for, counted and told apart: places in a sorted sequence, membership,
// histograms, and the different elements of a tensor.
//
//   OFL_ASSIGN_OR_RETURN(Tensor bucket, functional::Bucketize(x, boundaries));
#pragma once

#include <optional>

#include "oneflow_lite/core/tensor.h"
#include "oneflow_lite/framework/function.h"

namespace oneflow_lite::functional {

// How many elements of the sequence, [n] or [..., n] with the leading dims of x, are below each
// element; where `right`, how many are not above it. int64, or int32. NaN counts as the largest.
// sorter has the places that bring the sequence into order, where it is in none.
OFL_API StatusOr<Tensor> SearchSorted(const Tensor& sorted_sequence, const Operand& x,
                                      bool right = false, bool out_int32 = false,
                                      const Tensor& sorter = {});
// The same among boundaries of 1 dim.
OFL_API StatusOr<Tensor> Bucketize(const Operand& x, const Tensor& boundaries, bool right = false,
                                   bool out_int32 = false);
// Whether each element is among the others; where `invert`, whether it is not.
OFL_API StatusOr<Tensor> IsIn(const Operand& elements, const Operand& others, bool invert = false);

// How often each number from 0 on occurs in a 1-D tensor of integers, or the sum of the weights
// there; of at least so many numbers. Waits for the device. ValueError for a number below 0.
OFL_API StatusOr<Tensor> BinCount(const Tensor& x, const Tensor& weights = {},
                                  int64_t minlength = 0);
// How many elements lie in each of `bins` parts of [min, max] of one size, in x's dtype; where both
// are equal, from the smallest to the largest element, which waits for the device.
OFL_API StatusOr<Tensor> Histc(const Tensor& x, int64_t bins = 100, double min = 0, double max = 0);

// The different elements in ascending order, or slices along dim; those that differ from the one
// before, in their order. How many there are waits for the device.
OFL_API StatusOr<Tensor> Unique(const Tensor& x, std::optional<int64_t> dim = {});
OFL_API StatusOr<Tensor> UniqueConsecutive(const Tensor& x, std::optional<int64_t> dim = {});
// The different elements, or slices along dim; the place among them of each one, in x's shape or in
// the dim; and how often each occurs. How many there are waits for the device. `consecutive`: those
// that differ from the one before, in their order; else in ascending order.
OFL_API StatusOr<TensorList> UniqueWithCounts(const Tensor& x, std::optional<int64_t> dim = {},
                                              bool consecutive = false);

}  // namespace oneflow_lite::functional
