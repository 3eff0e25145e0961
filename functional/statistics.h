// SPDX-License-Identifier: Apache-2.0
//
// Reductions with a formula: variances, norms, logarithms of sums; dims and keepdim mean what they
// mean in reduce.h.
#pragma once

#include <optional>

#include "oneflow_lite/core/tensor.h"
#include "oneflow_lite/framework/function.h"

namespace oneflow_lite::functional {

// sum((x - mean)^2) / (n - correction) and its root, in one pass, right where the mean is large
// beside the spread too; x floating. `correction` is 1 where unbiased, else 0, unless given. NaN or
// infinite where n <= correction.
OFL_API StatusOr<Tensor> Var(const Tensor& x, std::optional<Dims> dims = {}, bool unbiased = true,
                             bool keepdim = false, std::optional<double> correction = {});
OFL_API StatusOr<Tensor> Std(const Tensor& x, std::optional<Dims> dims = {}, bool unbiased = true,
                             bool keepdim = false, std::optional<double> correction = {});
// The same and the mean, of one pass.
OFL_API StatusOr<TensorList> VarMean(const Tensor& x, std::optional<Dims> dims = {},
                                     bool unbiased = true, bool keepdim = false,
                                     std::optional<double> correction = {});
OFL_API StatusOr<TensorList> StdMean(const Tensor& x, std::optional<Dims> dims = {},
                                     bool unbiased = true, bool keepdim = false,
                                     std::optional<double> correction = {});

// (sum |x|^p)^(1 / p); for p infinite the largest |x|, or the smallest for -infinity, and for p = 0
// how many are not 0. The gradient at a norm of 0 is 0.
OFL_API StatusOr<Tensor> VectorNorm(const Tensor& x, double p = 2, std::optional<Dims> dims = {},
                                    bool keepdim = false, std::optional<DType> dtype = {});

// log sum exp(x), exact where exp(x) overflows. Integers are cast to float32 first.
OFL_API StatusOr<Tensor> LogSumExp(const Tensor& x, std::optional<Dims> dims = {},
                                   bool keepdim = false);
// The result in another floating dtype.
OFL_API StatusOr<Tensor> LogSumExpAs(const Tensor& x, const Dims& dims, bool keepdim, DType dtype);

}  // namespace oneflow_lite::functional
