// SPDX-License-Identifier: Apache-2.0
//
// Reductions over one, several or all dims.
//
//   OFL_ASSIGN_OR_RETURN(Tensor row_sums, functional::Sum(x, Dims{-1}));
#pragma once

#include <initializer_list>
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
// The same of what is not NaN.
OFL_API StatusOr<Tensor> NanSum(const Tensor& x, std::optional<Dims> dims = {},
                                bool keepdim = false, std::optional<DType> dtype = {});
OFL_API StatusOr<Tensor> NanMean(const Tensor& x, std::optional<Dims> dims = {},
                                 bool keepdim = false, std::optional<DType> dtype = {});
// The product, as Sum; 1 of nothing. The gradient is right where elements are 0.
OFL_API StatusOr<Tensor> Prod(const Tensor& x, std::optional<Dims> dims = {}, bool keepdim = false,
                              std::optional<DType> dtype = {});

// The largest element, the smallest, and both; NaN wins. IndexError where there is none. Elements
// that are equal share the gradient.
OFL_API StatusOr<Tensor> Amax(const Tensor& x, std::optional<Dims> dims = {}, bool keepdim = false);
OFL_API StatusOr<Tensor> Amin(const Tensor& x, std::optional<Dims> dims = {}, bool keepdim = false);
OFL_API StatusOr<TensorList> AMinMax(const Tensor& x, std::optional<int64_t> dim = {},
                                     bool keepdim = false);
// The extreme of all elements.
OFL_API StatusOr<Tensor> Max(const Tensor& x);
OFL_API StatusOr<Tensor> Min(const Tensor& x);
// The extremes along dim, and the (first) places where they are, int64.
OFL_API StatusOr<TensorList> Max(const Tensor& x, int64_t dim, bool keepdim = false);
OFL_API StatusOr<TensorList> Min(const Tensor& x, int64_t dim, bool keepdim = false);
// Of several dims, or of {}, which would be dim 0: Amax and Amin.
StatusOr<TensorList> Max(const Tensor& x, std::initializer_list<int64_t> dims,
                         bool keepdim = false) = delete;
StatusOr<TensorList> Min(const Tensor& x, std::initializer_list<int64_t> dims,
                         bool keepdim = false) = delete;
// The place of the first extreme, int64: along dim, or in the flattened tensor.
OFL_API StatusOr<Tensor> ArgMax(const Tensor& x, std::optional<int64_t> dim = {},
                                bool keepdim = false);
OFL_API StatusOr<Tensor> ArgMin(const Tensor& x, std::optional<int64_t> dim = {},
                                bool keepdim = false);

// Whether any element, or every element, is not 0: of each element alone where dims is a list of
// none; in uint8 of uint8, else in bool. How many are not 0 (int64).
OFL_API StatusOr<Tensor> Any(const Tensor& x, std::optional<Dims> dims = {}, bool keepdim = false);
OFL_API StatusOr<Tensor> All(const Tensor& x, std::optional<Dims> dims = {}, bool keepdim = false);
OFL_API StatusOr<Tensor> CountNonzero(const Tensor& x, std::optional<Dims> dims = {},
                                      bool keepdim = false);

}  // namespace oneflow_lite::functional
