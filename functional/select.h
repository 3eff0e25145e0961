// SPDX-License-Identifier: Apache-2.0
//
// Elements chosen by a condition.
//
//   OFL_ASSIGN_OR_RETURN(Tensor y, functional::Where(mask, x, Scalar(0)));
#pragma once

#include "oneflow_lite/framework/function.h"

namespace oneflow_lite::functional {

// a where `condition` (bool) holds, else b, broadcast and promoted as in binary.h. What is not
// chosen may be NaN, and gets no gradient.
OFL_API StatusOr<Tensor> Where(const Tensor& condition, const Operand& a, const Operand& b);
// x with `value`, a number or a tensor of 0 dims, where `mask` (bool) holds. ShapeError for
// another.
OFL_API StatusOr<Tensor> MaskedFill(const Tensor& x, const Tensor& mask, const Operand& value);

}  // namespace oneflow_lite::functional
