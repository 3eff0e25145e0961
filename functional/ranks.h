// SPDX-License-Identifier: Apache-2.0
//
// Elements by their rank: the k-th smallest, medians, quantiles, and the most frequent one. NaN
// counts as the largest unless a function says otherwise.
//
//   OFL_ASSIGN_OR_RETURN(Tensor bounds, functional::Quantile(x, shares, 1));
#pragma once

#include <optional>

#include "oneflow_lite/core/tensor.h"
#include "oneflow_lite/framework/function.h"

namespace oneflow_lite::functional {

// The k-th smallest element along dim, counted from 1, and its place (int64). ValueError where
// there is no k-th one.
OFL_API StatusOr<TensorList> KthValue(const Tensor& x, int64_t k, int64_t dim = -1,
                                      bool keepdim = false);
// The middle element, of two the lower; NaN where there is one. IndexError along a dim of size 0.
OFL_API StatusOr<TensorList> Median(const Tensor& x, int64_t dim, bool keepdim = false);
// Of all elements: NaN of none, which an integer cannot be (IndexError).
OFL_API StatusOr<Tensor> Median(const Tensor& x);
// The same of what is not NaN.
OFL_API StatusOr<TensorList> NanMedian(const Tensor& x, int64_t dim, bool keepdim = false);
OFL_API StatusOr<Tensor> NanMedian(const Tensor& x);
// What occurs most often along dim, of several the smallest, and its last place. IndexError along a
// dim of size 0.
OFL_API StatusOr<TensorList> Mode(const Tensor& x, int64_t dim = -1, bool keepdim = false);

// What shares of the elements are below, of all or along dim; q is a number or a tensor of at most
// one dim, which comes first in the result. interpolation: "linear", "lower", "higher", "midpoint"
// or "nearest". NaN where an element is.
OFL_API StatusOr<Tensor> Quantile(const Tensor& x, const Operand& q,
                                  std::optional<int64_t> dim = {}, bool keepdim = false,
                                  absl::string_view interpolation = "linear");
// Of what is not NaN; NaN of nothing.
OFL_API StatusOr<Tensor> NanQuantile(const Tensor& x, const Operand& q,
                                     std::optional<int64_t> dim = {}, bool keepdim = false,
                                     absl::string_view interpolation = "linear");

}  // namespace oneflow_lite::functional
