// SPDX-License-Identifier: Apache-2.0
//
// Functions of matrices made of linalg.h's: norms, conditions, powers, products of several.
//
//   OFL_ASSIGN_OR_RETURN(Tensor n, functional::MatrixNorm(a, "nuc"));
#pragma once

#include <optional>

#include "oneflow_lite/core/scalar.h"
#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite::functional {

// Of the matrices in two dims: "fro", the root of the sum of squares, or "nuc", the sum of the
// singular values; 2 or -2, the largest or the least singular value; 1, -1, inf or -inf, the
// largest or least sum of sizes of a column or a row. ValueError for others.
OFL_API StatusOr<Tensor> MatrixNorm(const Tensor& a, absl::string_view ord = "fro",
                                    absl::Span<const int64_t> dims = {-2, -1}, bool keepdim = false,
                                    std::optional<DType> dtype = {});
OFL_API StatusOr<Tensor> MatrixNorm(const Tensor& a, double ord,
                                    absl::Span<const int64_t> dims = {-2, -1}, bool keepdim = false,
                                    std::optional<DType> dtype = {});
// Without ord the root of the sum of squares over the dims, or all; with one, the norm of vectors,
// of one dim or, without dims, of a 1-D tensor, or of matrices.
OFL_API StatusOr<Tensor> LinalgNorm(const Tensor& x, std::optional<Scalar> ord = {},
                                    std::optional<Dims> dims = {}, bool keepdim = false,
                                    std::optional<DType> dtype = {});
// How much A's inverse may enlarge an error: the norm of A times that of its inverse, infinite for
// a singular A; p is a norm of matrices, without one 2.
OFL_API StatusOr<Tensor> Cond(const Tensor& a, std::optional<Scalar> p = {});
OFL_API StatusOr<Tensor> Cond(const Tensor& a, absl::string_view p);

// A times itself n times; of a negative n the inverse.
OFL_API StatusOr<Tensor> MatrixPower(const Tensor& a, int64_t n);
// The sum of A^k / k!, by Pade's approximation of A / 2^s, squared s times: Higham, "The scaling
// and squaring method for the matrix exponential revisited" (2005). s, which is that of the largest
// matrix of a batch, is waited for.
OFL_API StatusOr<Tensor> MatrixExp(const Tensor& a);
// The product of two or more matrices, in the order of the fewest multiplications; the first and
// the last may be vectors.
OFL_API StatusOr<Tensor> MultiDot(absl::Span<const Tensor> tensors);
// Of vectors of 3 elements along dim, broadcast against each other.
OFL_API StatusOr<Tensor> Cross(const Tensor& a, const Tensor& b, int64_t dim = -1);
// The sum of products along dim.
OFL_API StatusOr<Tensor> VecDot(const Tensor& a, const Tensor& b, int64_t dim = -1);
// The powers 0 to n - 1 of each element, n being the last size where it is absent.
OFL_API StatusOr<Tensor> Vander(const Tensor& x, std::optional<int64_t> n = {});
// The inverse of tensordot with a, whose first `ind` dims are the rows; X with tensordot(a, X) = b,
// where `dims` of a come last.
OFL_API StatusOr<Tensor> TensorInv(const Tensor& a, int64_t ind = 2);
OFL_API StatusOr<Tensor> TensorSolve(const Tensor& a, const Tensor& b,
                                     std::optional<Dims> dims = {});

}  // namespace oneflow_lite::functional
