// SPDX-License-Identifier: Apache-2.0
//
// Tensors put beside, under and behind each other, and taken apart again, as NumPy names it.
//
//   OFL_ASSIGN_OR_RETURN(Tensor table, functional::ColumnStack({x, y}));
#pragma once

#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite::functional {

// Along dim 1 (dim 0 of 1-D tensors); along dim 0, 1-D tensors as rows; along dim 2, as
// [1, n, 1] or [m, n, 1]; along dim 1, 1-D tensors as columns. Errors as in Cat.
OFL_API StatusOr<Tensor> Hstack(absl::Span<const Tensor> tensors);
OFL_API StatusOr<Tensor> Vstack(absl::Span<const Tensor> tensors);
OFL_API StatusOr<Tensor> Dstack(absl::Span<const Tensor> tensors);
OFL_API StatusOr<Tensor> ColumnStack(absl::Span<const Tensor> tensors);
// The matrices along the diagonal of one; a tensor of fewer dims is a row. [1, 0] of none.
OFL_API StatusOr<Tensor> BlockDiag(absl::Span<const Tensor> tensors);
// All combinations of one element of each 1-D tensor: a row each; of one tensor, itself.
OFL_API StatusOr<Tensor> CartesianProd(absl::Span<const Tensor> tensors);

// Views along a dim: so many, the first ones longer by 1 where needed; or cut at places, which may
// be negative or too large, as in a slice of Python.
OFL_API StatusOr<TensorList> TensorSplit(const Tensor& x, int64_t sections, int64_t dim = 0);
OFL_API StatusOr<TensorList> TensorSplitAt(const Tensor& x, absl::Span<const int64_t> places,
                                           int64_t dim = 0);
// By a tensor of integers, read on the host: how many where it has 0 dims, places where it has 1.
OFL_API StatusOr<TensorList> TensorSplit(const Tensor& x, const Tensor& cuts, int64_t dim = 0);
// The same along dim 1 (dim 0 of a 1-D tensor), 0 and 2. ValueError where the sections cannot be of
// one size.
OFL_API StatusOr<TensorList> Hsplit(const Tensor& x, int64_t sections);
OFL_API StatusOr<TensorList> Vsplit(const Tensor& x, int64_t sections);
OFL_API StatusOr<TensorList> Dsplit(const Tensor& x, int64_t sections);
OFL_API StatusOr<TensorList> HsplitAt(const Tensor& x, absl::Span<const int64_t> places);
OFL_API StatusOr<TensorList> VsplitAt(const Tensor& x, absl::Span<const int64_t> places);
OFL_API StatusOr<TensorList> DsplitAt(const Tensor& x, absl::Span<const int64_t> places);

}  // namespace oneflow_lite::functional
