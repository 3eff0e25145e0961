// SPDX-License-Identifier: Apache-2.0
//
// What lies on, above or below a diagonal.
//
//   OFL_ASSIGN_OR_RETURN(Tensor seen, functional::Tril(ones));
#pragma once

#include <optional>

#include "oneflow_lite/core/scalar.h"
#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite::functional {

// Of the last two dims, what lies on the diagonal and below (above), else 0. A diagonal starts so
// many columns to the right, or if negative rows further down. ShapeError for less than 2 dims.
OFL_API StatusOr<Tensor> Tril(const Tensor& x, int64_t diagonal = 0);
OFL_API StatusOr<Tensor> Triu(const Tensor& x, int64_t diagonal = 0);
// The same in place.
OFL_API StatusOr<Tensor> TrilInto(const Tensor& self, int64_t diagonal = 0);
OFL_API StatusOr<Tensor> TriuInto(const Tensor& self, int64_t diagonal = 0);
// The places that they keep of [rows, cols]: [2, count], row by row.
OFL_API StatusOr<Tensor> TrilIndices(int64_t rows, int64_t cols, int64_t offset = 0,
                                     std::optional<DType> dtype = {},
                                     std::optional<Device> device = {});
OFL_API StatusOr<Tensor> TriuIndices(int64_t rows, int64_t cols, int64_t offset = 0,
                                     std::optional<DType> dtype = {},
                                     std::optional<Device> device = {});
// Ones on the diagonal of [n, m] (m is n where absent), zeros elsewhere.
OFL_API StatusOr<Tensor> Eye(int64_t n, std::optional<int64_t> m = {},
                             std::optional<DType> dtype = {}, std::optional<Device> device = {},
                             bool requires_grad = false);

// Matrices, zeros elsewhere, with the last dim's elements on their diagonals; rows and columns are
// the dims dim1 and dim2 of the result.
OFL_API StatusOr<Tensor> DiagEmbed(const Tensor& x, int64_t offset = 0, int64_t dim1 = -2,
                                   int64_t dim2 = -1);
// Of a vector the square matrix with it on a diagonal, of a matrix its diagonal.
OFL_API StatusOr<Tensor> Diag(const Tensor& x, int64_t diagonal = 0);
OFL_API StatusOr<Tensor> Diagflat(const Tensor& x, int64_t offset = 0);
// A number where all indices are the same, in place. ShapeError for less than 2 dims, or for more
// of several sizes. wrap: in a matrix with more rows than columns the diagonal starts again, a row
// below each square.
OFL_API StatusOr<Tensor> FillDiagonalInto(const Tensor& self, Scalar value, bool wrap = false);

}  // namespace oneflow_lite::functional
