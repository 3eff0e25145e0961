// SPDX-License-Identifier: Apache-2.0
//
// Running sums.
//
//   OFL_ASSIGN_OR_RETURN(Tensor ends, functional::CumSum(lengths, 0));
#pragma once

#include <optional>

#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite::functional {

// y[i] = x[0] + ... + x[i] along dim. x is cast to `dtype` first, where absent bool and integers to
// int64.
OFL_API StatusOr<Tensor> CumSum(const Tensor& x, int64_t dim, std::optional<DType> dtype = {});

}  // namespace oneflow_lite::functional
