// SPDX-License-Identifier: Apache-2.0
//
// Special functions: of the normal distribution, Bessel functions, derivatives of log gamma.
// Integers and bool are cast to float32 first. What CUDA has no form of float for, and on the CPU
// all 16-bit floats and float32, is computed in double and rounded once.
//
//   OFL_ASSIGN_OR_RETURN(Tensor share, functional::Ndtr(z));
#pragma once

#include "functional/binary.h"

namespace oneflow_lite::functional {

// P(N <= x) of a standard normal N, its logarithm, and where it is x.
OFL_API StatusOr<Tensor> Ndtr(const Tensor& x);
OFL_API StatusOr<Tensor> LogNdtr(const Tensor& x);
OFL_API StatusOr<Tensor> Ndtri(const Tensor& x);
// -x log(x); exp(x^2) erfc(x).
OFL_API StatusOr<Tensor> Entr(const Tensor& x);
OFL_API StatusOr<Tensor> Erfcx(const Tensor& x);
// The modified Bessel functions of the first kind: of order 0 and 1 times exp(-|x|), of order 1.
OFL_API StatusOr<Tensor> I0e(const Tensor& x);
OFL_API StatusOr<Tensor> I1e(const Tensor& x);
OFL_API StatusOr<Tensor> I1(const Tensor& x);
// The derivative of order n of digamma. ValueError for a negative n.
OFL_API StatusOr<Tensor> Polygamma(int64_t n, const Tensor& x);
// The logarithm of the gamma function of p dims. ValueError for p below 1.
OFL_API StatusOr<Tensor> Mvlgamma(const Tensor& x, int64_t p);
// The sum of (q + k)^-s over k >= 0; NaN for s below 1. No gradient by s.
OFL_API StatusOr<Tensor> Zeta(const Operand& s, const Operand& q);
// x = mantissa 2^exponent, |mantissa| from 1/2 up to 1, the exponent int32.
OFL_API StatusOr<TensorList> Frexp(const Tensor& x);

}  // namespace oneflow_lite::functional
