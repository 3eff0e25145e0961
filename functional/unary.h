// SPDX-License-Identifier: Apache-2.0
//
// Elementwise functions of one tensor. The result has the input's shape.
#pragma once

#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite::functional {

// -x; any dtype but bool.
OFL_API StatusOr<Tensor> Neg(const Tensor& x);
// e^x and the natural logarithm; integers and bool are cast to float32 first.
OFL_API StatusOr<Tensor> Exp(const Tensor& x);
OFL_API StatusOr<Tensor> Log(const Tensor& x);
// max(x, 0), NaN where x is NaN; any dtype but bool.
OFL_API StatusOr<Tensor> Relu(const Tensor& x);

}  // namespace oneflow_lite::functional
