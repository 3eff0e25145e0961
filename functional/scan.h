// SPDX-License-Identifier: Apache-2.0
//
// Scans: what the elements up to each one along a dim come to.
//
//   OFL_ASSIGN_OR_RETURN(Tensor ends, functional::CumSum(lengths, 0));
#pragma once

#include <optional>

#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite::functional {

// y[i] = x[0] + ... + x[i] along dim. x is cast to `dtype` first, where absent bool and integers to
// int64.
OFL_API StatusOr<Tensor> CumSum(const Tensor& x, int64_t dim, std::optional<DType> dtype = {});
// Products instead; the gradient is right where elements are 0.
OFL_API StatusOr<Tensor> CumProd(const Tensor& x, int64_t dim, std::optional<DType> dtype = {});
// x[i] ... x[n - 1] where `reverse`. dim >= 0; not bool.
OFL_API StatusOr<Tensor> CumProdFrom(const Tensor& x, int64_t dim, bool reverse);
// The extremes up to each element and their places (int64), of equal ones the last; NaN stays.
OFL_API StatusOr<TensorList> CumMax(const Tensor& x, int64_t dim);
OFL_API StatusOr<TensorList> CumMin(const Tensor& x, int64_t dim);
// log(exp(x[0]) + ... + exp(x[i])) without overflow; floats.
OFL_API StatusOr<Tensor> LogCumSumExp(const Tensor& x, int64_t dim);

// The differences of neighbours along dim, n times, of x with the others joined to it in front and
// behind, where defined; of bool whether they differ. 16-bit floats are rounded once. ShapeError
// for less than 1 dim, ValueError for n < 0.
OFL_API StatusOr<Tensor> Diff(const Tensor& x, int64_t n = 1, int64_t dim = -1,
                              const Tensor& prepend = {}, const Tensor& append = {});

// s[i] = x[i] + factor[i] s[i - 1] along dim >= 0, from the end (i + 1) where `reverse`; with the
// factor at the element passed before, factor[i - 1], where `shifted`. Floats.
OFL_API StatusOr<Tensor> LinearScan(const Tensor& x, const Tensor& factor, int64_t dim,
                                    bool reverse, bool shifted);

}  // namespace oneflow_lite::functional
