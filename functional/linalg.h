// SPDX-License-Identifier: Apache-2.0
//
// Linear algebra on batches of matrices, in float32 and float64: the last two dims are a matrix,
// those in front a batch of any rank. A matrix without the inverse or the factorization that is
// asked for is an error of the kind kLinAlgError (core/linalg_error.h) that names the first one; to
// find it out waits for the device. The functions ...Ex give LAPACK's `info`, an int32 for each
// matrix, instead, and wait only where check_errors is set.
//
//   OFL_ASSIGN_OR_RETURN(Tensor x, functional::Solve(a, b));   // a x = b
#pragma once

#include <optional>
#include <string>

#include "oneflow_lite/core/linalg_error.h"
#include "oneflow_lite/core/scalar.h"
#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite::functional {

// X with A X = B, or X A = B where not left; B is a vector per matrix where it has one dim, or A's
// shape less the last dim. {X, info}; {X, LU, pivots, info}, of a left matrix B, for gradients.
OFL_API StatusOr<Tensor> Solve(const Tensor& a, const Tensor& b, bool left = true);
OFL_API StatusOr<TensorList> SolveEx(const Tensor& a, const Tensor& b, bool left = true,
                                     bool check_errors = false);
OFL_API StatusOr<TensorList> SolveFactored(const Tensor& a, const Tensor& b);
// The same for a triangular A, of which nothing but the triangle is read; the other one's gradient
// is 0. unitriangular: the diagonal counts as 1.
OFL_API StatusOr<Tensor> SolveTriangular(const Tensor& a, const Tensor& b, bool upper,
                                         bool left = true, bool unitriangular = false);
// The inverse; with info.
OFL_API StatusOr<Tensor> Inv(const Tensor& a);
OFL_API StatusOr<TensorList> InvEx(const Tensor& a, bool check_errors = false);
// The determinant; {its sign, the logarithm of its size}; its logarithm, NaN where it is negative.
// Those of a singular matrix are 0, {0, -inf} and -inf.
OFL_API StatusOr<Tensor> Det(const Tensor& a);
OFL_API StatusOr<TensorList> SlogDet(const Tensor& a);
OFL_API StatusOr<Tensor> LogDet(const Tensor& a);

// L with L L^T = A, or U with U^T U = A where upper, for a symmetric positive-definite A, of which
// one triangle is read. Its gradient is symmetric. With info.
OFL_API StatusOr<Tensor> Cholesky(const Tensor& a, bool upper = false);
OFL_API StatusOr<TensorList> CholeskyEx(const Tensor& a, bool upper = false,
                                        bool check_errors = false);
// X with A X = B, and the inverse of A, where l is A's factor.
OFL_API StatusOr<Tensor> CholeskySolve(const Tensor& b, const Tensor& l, bool upper = false);
OFL_API StatusOr<Tensor> CholeskyInverse(const Tensor& l, bool upper = false);

// {LU, pivots}: L below the diagonal and U in one matrix, and the row, counted from 1, that each
// row changed places with. With info. {P, L, U} with A = P L U.
OFL_API StatusOr<TensorList> LuFactor(const Tensor& a);
OFL_API StatusOr<TensorList> LuFactorEx(const Tensor& a, bool check_errors = false);
OFL_API StatusOr<TensorList> LuUnpack(const Tensor& lu, const Tensor& pivots);
OFL_API StatusOr<TensorList> Lu(const Tensor& a);
// P^T of the pivots of matrices of so many rows, in this dtype.
OFL_API StatusOr<Tensor> LuPermutation(const Tensor& pivots, int64_t rows, DType dtype);
// X with A X = B; of the transposed A where adjoint; X A = B where not left.
OFL_API StatusOr<Tensor> LuSolve(const Tensor& lu, const Tensor& pivots, const Tensor& b,
                                 bool left = true, bool adjoint = false);

// {Q, R}: Q has orthonormal columns, R is upper triangular. mode "reduced": Q [m, r] and R [r, n]
// with r = min(m, n); "complete": Q [m, m] and R [m, n]; "r": R [r, n] alone, Q is empty. Has no
// gradient where the columns of Q or of A say too little: mode "r", and "complete" with m > n.
OFL_API StatusOr<TensorList> Qr(const Tensor& a, absl::string_view mode = "reduced");
// {eigenvalues, ascending, and eigenvectors in columns} of a symmetric matrix, of which the
// triangle "L" or "U" is read; the eigenvalues alone. Gradients of equal eigenvalues' vectors are
// not finite.
OFL_API StatusOr<TensorList> Eigh(const Tensor& a, absl::string_view uplo = "L");
OFL_API StatusOr<Tensor> Eigvalsh(const Tensor& a, absl::string_view uplo = "L");
// {U, S, V^T} with A = U diag(S) V^T, S descending, U [m, m] and V^T [n, n] where full_matrices,
// else of r columns and rows; S alone. Gradients of equal singular values' vectors are not finite.
OFL_API StatusOr<TensorList> Svd(const Tensor& a, bool full_matrices = true);
OFL_API StatusOr<Tensor> Svdvals(const Tensor& a);

// X of the least |A X - B|, and among those the least |X|: {X, the sums of squares that are left,
// ranks, singular values}, each empty where it is not known. rcond: singular values below it times
// the largest count as 0 (the dtype's epsilon times max(m, n)). driver: "gelsy" (of the CPU),
// "gels" (of CUDA; for matrices of full rank), "gelsd", "gelss".
OFL_API StatusOr<TensorList> Lstsq(const Tensor& a, const Tensor& b,
                                   std::optional<double> rcond = {},
                                   const std::optional<std::string>& driver = {});
// The Moore-Penrose inverse. Singular values up to max(atol, rtol times the largest) count as 0;
// rtol is the dtype's epsilon times max(m, n) unless atol is given, which makes it 0. Both are
// numbers or tensors that broadcast with the batch. hermitian: A is symmetric.
OFL_API StatusOr<Tensor> Pinv(const Tensor& a, const Tensor& atol = {}, const Tensor& rtol = {},
                              bool hermitian = false);
// How many singular values do not count as 0, int64.
OFL_API StatusOr<Tensor> MatrixRank(const Tensor& a, const Tensor& atol = {},
                                    const Tensor& rtol = {}, bool hermitian = false);

}  // namespace oneflow_lite::functional
