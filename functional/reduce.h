// SPDX-License-Identifier: Apache-2.0
//
// Reductions over one, several or all dims.
//
//   OFL_ASSIGN_OR_RETURN(Tensor row_sums, functional::Sum(x, Dims{-1}));
#pragma once

#include <optional>

#include "oneflow_lite/core/tensor.h"
#include "oneflow_lite/framework/function.h"

namespace oneflow_lite::functional {

// Over all dims where `dims` is absent or empty. keepdim keeps the reduced dims with size 1. x is
// cast to `dtype` first where given. Sum of bool and integers is int64; Mean wants floats.
// IndexError for a dim that is out of range or, as a ValueError, named twice.
OFL_API StatusOr<Tensor> Sum(const Tensor& x, std::optional<Dims> dims = {}, bool keepdim = false,
                             std::optional<DType> dtype = {});
OFL_API StatusOr<Tensor> Mean(const Tensor& x, std::optional<Dims> dims = {}, bool keepdim = false,
                              std::optional<DType> dtype = {});
// The largest element; NaN wins. IndexError where there is none.
OFL_API StatusOr<Tensor> Amax(const Tensor& x, std::optional<Dims> dims = {}, bool keepdim = false);
// The largest elements along dim, and the (first) places where they are.
OFL_API StatusOr<TensorList> MaxAlong(const Tensor& x, int64_t dim, bool keepdim = false);
// The place of the first maximum, int64: along dim, or in the flattened tensor.
OFL_API StatusOr<Tensor> ArgMax(const Tensor& x, std::optional<int64_t> dim = {},
                                bool keepdim = false);

}  // namespace oneflow_lite::functional
