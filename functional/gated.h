// SPDX-License-Identifier: Apache-2.0
//
// Activations of two operands.
//
//   OFL_ASSIGN_OR_RETURN(Tensor y, functional::Glu(x));   // [n, 2 m] -> [n, m]
#pragma once

#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite::functional {

// The first half along dim times the sigmoid of the second.
OFL_API StatusOr<Tensor> Glu(const Tensor& x, int64_t dim = -1);
// silu of the first half along dim, times the second (Shazeer, 2020).
OFL_API StatusOr<Tensor> Swiglu(const Tensor& x, int64_t dim = -1);
// What flows back to x from dy, which has half of x's dim (counted from 0).
StatusOr<Tensor> GatedUnitBackward(bool swiglu, const Tensor& dy, const Tensor& x, int64_t dim);
// x where it is positive, else weight times it: one number, or one per channel, dim 1.
OFL_API StatusOr<Tensor> Prelu(const Tensor& x, const Tensor& weight);

}  // namespace oneflow_lite::functional
