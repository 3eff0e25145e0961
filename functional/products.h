// SPDX-License-Identifier: Apache-2.0
//
// Products of matrices and vectors beside matmul's, each of which takes tensors of certain dims.
//
//   OFL_ASSIGN_OR_RETURN(Tensor y, functional::Addmm(bias, x, weight));
#pragma once

#include "functional/binary.h"

namespace oneflow_lite::functional {

// Whether a and b, factors of a chain of products, are cast to float32 first, so that the result is
// rounded once; what autocast lowers is not widened.
bool IsWidened(const Tensor& a, const Tensor& b);

// Two matrices; two batches of matrices; two vectors; a matrix and a vector. ShapeError for others.
OFL_API StatusOr<Tensor> Mm(const Tensor& a, const Tensor& b);
OFL_API StatusOr<Tensor> Bmm(const Tensor& a, const Tensor& b);
OFL_API StatusOr<Tensor> Dot(const Tensor& a, const Tensor& b);
OFL_API StatusOr<Tensor> Vdot(const Tensor& a, const Tensor& b);
OFL_API StatusOr<Tensor> Mv(const Tensor& a, const Tensor& vec);
// beta x + alpha a b; where beta is 0, x gives its shape alone. For integers beta and alpha must be
// integers: ValueError.
OFL_API StatusOr<Tensor> Addmm(const Tensor& x, const Tensor& a, const Tensor& b, Scalar beta = 1,
                               Scalar alpha = 1);
OFL_API StatusOr<Tensor> Baddbmm(const Tensor& x, const Tensor& a, const Tensor& b, Scalar beta = 1,
                                 Scalar alpha = 1);
// Each element of one vector times each of another.
OFL_API StatusOr<Tensor> Outer(const Tensor& a, const Tensor& b);
// The sum of products over the last dims of both.
OFL_API StatusOr<Tensor> Inner(const Tensor& a, const Tensor& b);
// b times each element of a, in its place.
OFL_API StatusOr<Tensor> Kron(const Tensor& a, const Tensor& b);
// The sum of products over dims of both, in pairs: the other dims of a, then those of b. Of a pair,
// a dim of size 1 is repeated to the other's size. With a count: the last dims of a and the first
// ones of b. ShapeError where they do not go together.
OFL_API StatusOr<Tensor> Tensordot(const Tensor& a, const Tensor& b,
                                   absl::Span<const int64_t> a_dims,
                                   absl::Span<const int64_t> b_dims);
OFL_API StatusOr<Tensor> Tensordot(const Tensor& a, const Tensor& b, int64_t dims = 2);
// The sum of the diagonal of a matrix.
OFL_API StatusOr<Tensor> Trace(const Tensor& x);

}  // namespace oneflow_lite::functional
