// SPDX-License-Identifier: Apache-2.0
//
// Reductions that are composed of those in reduce.h; dims and keepdim mean what they mean there.
#pragma once

#include <optional>

#include "oneflow_lite/core/tensor.h"
#include "oneflow_lite/framework/function.h"

namespace oneflow_lite::functional {

// The smallest element, the smallest along dim with their first places, and the first place.
OFL_API StatusOr<Tensor> Amin(const Tensor& x, std::optional<Dims> dims = {}, bool keepdim = false);
OFL_API StatusOr<TensorList> MinAlong(const Tensor& x, int64_t dim, bool keepdim = false);
OFL_API StatusOr<Tensor> ArgMin(const Tensor& x, std::optional<int64_t> dim = {},
                                bool keepdim = false);

// Whether any element, or every element, is not 0.
OFL_API StatusOr<Tensor> Any(const Tensor& x, std::optional<Dims> dims = {}, bool keepdim = false);
OFL_API StatusOr<Tensor> All(const Tensor& x, std::optional<Dims> dims = {}, bool keepdim = false);

// sum((x - mean)^2) / (n - correction) and its root, in two passes, right where the mean is large
// beside the spread too; x floating. `correction` is 1 where unbiased, else 0, unless given.
OFL_API StatusOr<Tensor> Var(const Tensor& x, std::optional<Dims> dims = {}, bool unbiased = true,
                             bool keepdim = false, std::optional<double> correction = {});
OFL_API StatusOr<Tensor> Std(const Tensor& x, std::optional<Dims> dims = {}, bool unbiased = true,
                             bool keepdim = false, std::optional<double> correction = {});

// log sum exp(x), exact where exp(x) overflows.
OFL_API StatusOr<Tensor> LogSumExp(const Tensor& x, std::optional<Dims> dims = {},
                                   bool keepdim = false);

}  // namespace oneflow_lite::functional
