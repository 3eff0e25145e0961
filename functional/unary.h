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
// |x|; any dtype but bool. Its gradient is 0 where x is.
OFL_API StatusOr<Tensor> Abs(const Tensor& x);
// As Exp in their dtypes: the root, 1 / root, tanh, 1 / (1 + e^-x).
OFL_API StatusOr<Tensor> Sqrt(const Tensor& x);
OFL_API StatusOr<Tensor> Rsqrt(const Tensor& x);
OFL_API StatusOr<Tensor> Tanh(const Tensor& x);
OFL_API StatusOr<Tensor> Sigmoid(const Tensor& x);
OFL_API StatusOr<Tensor> Sin(const Tensor& x);
OFL_API StatusOr<Tensor> Cos(const Tensor& x);
OFL_API StatusOr<Tensor> Erf(const Tensor& x);
// x P(N <= x), N standard normal; with approximate = "tanh" its usual approximation (Hendrycks and
// Gimpel, "Gaussian Error Linear Units", 2016) instead of "none". ValueError for another text.
OFL_API StatusOr<Tensor> Gelu(const Tensor& x, absl::string_view approximate = "none");
// The largest integer not above; integers as they are.
OFL_API StatusOr<Tensor> Floor(const Tensor& x);

// Of bool, whatever x's dtype; integers are neither NaN nor infinite.
OFL_API StatusOr<Tensor> IsNan(const Tensor& x);
OFL_API StatusOr<Tensor> IsInf(const Tensor& x);
OFL_API StatusOr<Tensor> IsFinite(const Tensor& x);
OFL_API StatusOr<Tensor> LogicalNot(const Tensor& x);

}  // namespace oneflow_lite::functional
