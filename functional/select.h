// SPDX-License-Identifier: Apache-2.0
//
// Elements chosen by a condition.
//
//   OFL_ASSIGN_OR_RETURN(Tensor y, functional::Where(mask, x, Scalar(0)));
#pragma once

#include <optional>

#include "oneflow_lite/framework/function.h"

namespace oneflow_lite::functional {

// a where `condition` (bool) holds, else b, broadcast and promoted as in binary.h. What is not
// chosen may be NaN, and gets no gradient.
OFL_API StatusOr<Tensor> Where(const Tensor& condition, const Operand& a, const Operand& b);
// x with `value` where `mask` (bool) holds.
OFL_API StatusOr<Tensor> MaskedFill(const Tensor& x, const Tensor& mask, Scalar value);
// x, not below `min` and not above `max`, where they are given; NaN stays. At a bound the gradient
// is 0. ValueError for neither.
OFL_API StatusOr<Tensor> Clamp(const Tensor& x, std::optional<Scalar> min = {},
                               std::optional<Scalar> max = {});

}  // namespace oneflow_lite::functional
