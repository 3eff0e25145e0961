// SPDX-License-Identifier: Apache-2.0
//
// Elementwise functions of one tensor. The result has the input's shape.
#pragma once

#include <optional>

#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite::functional {

// -x; any dtype but bool.
OFL_API StatusOr<Tensor> Neg(const Tensor& x);
// e^x and the natural logarithm; integers and bool are cast to float32 first.
OFL_API StatusOr<Tensor> Exp(const Tensor& x);
OFL_API StatusOr<Tensor> Log(const Tensor& x);
// max(x, 0), NaN where x is NaN; any dtype but bool. With `inplace` it is activation.h's ReluInto.
OFL_API StatusOr<Tensor> Relu(const Tensor& x, bool inplace = false);
// |x|; any dtype but bool. Its gradient is 0 where x is.
OFL_API StatusOr<Tensor> Abs(const Tensor& x);
// As Exp in their dtypes: the root, 1 / root, tanh, 1 / (1 + e^-x).
OFL_API StatusOr<Tensor> Sqrt(const Tensor& x);
OFL_API StatusOr<Tensor> Rsqrt(const Tensor& x);
// Sqrt and Rsqrt that keep x for backward, as other powers do.
OFL_API StatusOr<Tensor> PowHalf(const Tensor& x);
OFL_API StatusOr<Tensor> PowMinusHalf(const Tensor& x);
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

// As Floor: up, towards 0, and to the nearest integer, of two the even one; with decimals, to so
// many digits after the point (before it, where negative).
OFL_API StatusOr<Tensor> Ceil(const Tensor& x);
OFL_API StatusOr<Tensor> Trunc(const Tensor& x);
OFL_API StatusOr<Tensor> Round(const Tensor& x, int64_t decimals = 0);
// x less Trunc(x), with x's sign; 0 of integers.
OFL_API StatusOr<Tensor> Frac(const Tensor& x);
// 1, 0 (with its sign) or -1; NaN where x is; bool as it is.
OFL_API StatusOr<Tensor> Sign(const Tensor& x);
// x^2; of bool as int64.
OFL_API StatusOr<Tensor> Square(const Tensor& x);
// x itself; any dtype but bool.
OFL_API StatusOr<Tensor> Positive(const Tensor& x);
// NaN, inf and -inf replaced by numbers; of the infinities, by default the dtype's largest.
OFL_API StatusOr<Tensor> NanToNum(const Tensor& x, double nan = 0,
                                  std::optional<double> posinf = {},
                                  std::optional<double> neginf = {});

// Of the following, integers and bool are cast to float32 first.
OFL_API StatusOr<Tensor> Reciprocal(const Tensor& x);
OFL_API StatusOr<Tensor> Deg2rad(const Tensor& x);
OFL_API StatusOr<Tensor> Rad2deg(const Tensor& x);
OFL_API StatusOr<Tensor> Exp2(const Tensor& x);
OFL_API StatusOr<Tensor> Expm1(const Tensor& x);
OFL_API StatusOr<Tensor> Log1p(const Tensor& x);
OFL_API StatusOr<Tensor> Log2(const Tensor& x);
OFL_API StatusOr<Tensor> Log10(const Tensor& x);
// log(x / (1 - x)); with eps, of x moved into [eps, 1 - eps].
OFL_API StatusOr<Tensor> Logit(const Tensor& x, std::optional<double> eps = {});
OFL_API StatusOr<Tensor> Tan(const Tensor& x);
OFL_API StatusOr<Tensor> Sinh(const Tensor& x);
OFL_API StatusOr<Tensor> Cosh(const Tensor& x);
OFL_API StatusOr<Tensor> Asin(const Tensor& x);
OFL_API StatusOr<Tensor> Acos(const Tensor& x);
OFL_API StatusOr<Tensor> Atan(const Tensor& x);
OFL_API StatusOr<Tensor> Asinh(const Tensor& x);
OFL_API StatusOr<Tensor> Acosh(const Tensor& x);
OFL_API StatusOr<Tensor> Atanh(const Tensor& x);
// sin(pi x) / (pi x); 1 at 0.
OFL_API StatusOr<Tensor> Sinc(const Tensor& x);
// 1 - Erf(x) with all its digits; the inverse of Erf, NaN outside [-1, 1].
OFL_API StatusOr<Tensor> Erfc(const Tensor& x);
OFL_API StatusOr<Tensor> Erfinv(const Tensor& x);
// log |gamma(x)| and its derivative.
OFL_API StatusOr<Tensor> Lgamma(const Tensor& x);
OFL_API StatusOr<Tensor> Digamma(const Tensor& x);
// The modified Bessel function of the first kind and order 0.
OFL_API StatusOr<Tensor> I0(const Tensor& x);

// Of bool, whatever x's dtype; integers are neither NaN nor infinite.
OFL_API StatusOr<Tensor> IsNan(const Tensor& x);
OFL_API StatusOr<Tensor> IsInf(const Tensor& x);
OFL_API StatusOr<Tensor> IsFinite(const Tensor& x);
OFL_API StatusOr<Tensor> IsPosInf(const Tensor& x);
OFL_API StatusOr<Tensor> IsNegInf(const Tensor& x);
OFL_API StatusOr<Tensor> Signbit(const Tensor& x);
OFL_API StatusOr<Tensor> LogicalNot(const Tensor& x);
// All bits the other way; of integers and bool.
OFL_API StatusOr<Tensor> BitwiseNot(const Tensor& x);

}  // namespace oneflow_lite::functional
