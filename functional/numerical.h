// SPDX-License-Identifier: Apache-2.0
//
// Integrals by trapezoids, covariances, norms bounded, products added: composed of other functors.
//
//   OFL_ASSIGN_OR_RETURN(Tensor area, functional::Trapezoid(y, x));
#pragma once

#include <optional>

#include "oneflow_lite/core/scalar.h"
#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite::functional {

// The integral of y along dim by trapezoids, of width dx or between the places x (of y's shape, or
// 1-D along dim); up to each place in the cumulative form, which has one element less.
OFL_API StatusOr<Tensor> Trapezoid(const Tensor& y, const Tensor& x = {}, double dx = 1,
                                   int64_t dim = -1);
OFL_API StatusOr<Tensor> CumulativeTrapezoid(const Tensor& y, const Tensor& x = {}, double dx = 1,
                                             int64_t dim = -1);
// The covariances of the rows of x [variables, observations], or of one variable: the sum of
// products over n - correction. fweights, integers, say how often an observation counts, aweights
// how much it weighs.
OFL_API StatusOr<Tensor> Cov(const Tensor& x, int64_t correction = 1, const Tensor& fweights = {},
                             const Tensor& aweights = {});
// The covariances over the standard deviations of both.
OFL_API StatusOr<Tensor> Corrcoef(const Tensor& x);
// The slices along dim, of which those with a p-norm above maxnorm are scaled down to it.
OFL_API StatusOr<Tensor> Renorm(const Tensor& x, double p, int64_t dim, double maxnorm);
// beta x + alpha times: a @ v; the sum of the products of two batches; the outer product of u and
// v. Where beta is 0, x is not looked at.
OFL_API StatusOr<Tensor> Addmv(const Tensor& x, const Tensor& a, const Tensor& v, Scalar beta = 1,
                               Scalar alpha = 1);
OFL_API StatusOr<Tensor> Addbmm(const Tensor& x, const Tensor& a, const Tensor& b, Scalar beta = 1,
                                Scalar alpha = 1);
OFL_API StatusOr<Tensor> Addr(const Tensor& x, const Tensor& u, const Tensor& v, Scalar beta = 1,
                              Scalar alpha = 1);
// The real numbers as complex ones: x itself, whether it is real, its angle (0, or pi below 0).
OFL_API StatusOr<Tensor> Real(const Tensor& x);
OFL_API StatusOr<Tensor> IsReal(const Tensor& x);
OFL_API StatusOr<Tensor> Angle(const Tensor& x);

}  // namespace oneflow_lite::functional
