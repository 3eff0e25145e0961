// SPDX-License-Identifier: Apache-2.0
//
// Views under other shapes beside those of view.h. All are followed by autograd.
//
//   OFL_ASSIGN_OR_RETURN(Tensor last, functional::Movedim(x, {0}, {-1}));
#pragma once

#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite::functional {

// Dims counted from the front. IndexError for one that is out of range, ValueError for one that
// occurs twice.
OFL_API StatusOr<Dims> WrapDims(absl::string_view op, const Tensor& x,
                                absl::Span<const int64_t> dims);
// What shapes broadcast to. ShapeError where they do not.
OFL_API StatusOr<Shape> CommonShape(absl::string_view op, absl::Span<const Shape> shapes);
OFL_API StatusOr<Shape> CommonShape(absl::string_view op, absl::Span<const Tensor> tensors);

// Dims at other places; the others keep their order. ValueError where the lists differ in length.
OFL_API StatusOr<Tensor> Movedim(const Tensor& x, absl::Span<const int64_t> source,
                                 absl::Span<const int64_t> destination);
// One dim as several, of which one may be -1.
OFL_API StatusOr<Tensor> Unflatten(const Tensor& x, int64_t dim, absl::Span<const int64_t> sizes);
// The elements along one dim, copied where strides cannot express it.
OFL_API StatusOr<Tensor> Ravel(const Tensor& x);

// View, Reshape and Expand to the shape of another tensor.
OFL_API StatusOr<Tensor> ViewAs(const Tensor& x, const Tensor& other);
OFL_API StatusOr<Tensor> ReshapeAs(const Tensor& x, const Tensor& other);
OFL_API StatusOr<Tensor> ExpandAs(const Tensor& x, const Tensor& other);
OFL_API StatusOr<Tensor> BroadcastTo(const Tensor& x, absl::Span<const int64_t> size);
// All repeated to one shape, without a copy.
OFL_API StatusOr<TensorList> BroadcastTensors(absl::Span<const Tensor> tensors);
// The coordinates of all points of a grid of 1-D (or 0-dim) tensors, the first varying along dim 0;
// "xy" has the first two dims the other way round. ValueError for another indexing.
OFL_API StatusOr<TensorList> Meshgrid(absl::Span<const Tensor> tensors,
                                      absl::string_view indexing = "ij");

// Dims of size 1 in front; of three, [1, n, 1] and [m, n, 1].
OFL_API StatusOr<Tensor> Atleast1d(const Tensor& x);
OFL_API StatusOr<Tensor> Atleast2d(const Tensor& x);
OFL_API StatusOr<Tensor> Atleast3d(const Tensor& x);

// The diagonal of two dims, which go, as the last dim: a view. With an offset it starts so many
// columns to the right, or if negative rows further down. ShapeError for less than 2 dims.
OFL_API StatusOr<Tensor> Diagonal(const Tensor& x, int64_t offset = 0, int64_t dim1 = 0,
                                  int64_t dim2 = 1);
// The diagonal of a matrix for a function that reads it at once: where nothing is recorded, no view
// that knows its base, which costs more than reading a short diagonal.
StatusOr<Tensor> DiagonalToRead(const Tensor& matrix);
// All windows of a size along a dim, each a step on; the last dim is the window's. A view.
OFL_API StatusOr<Tensor> Unfold(const Tensor& x, int64_t dimension, int64_t size, int64_t step);

}  // namespace oneflow_lite::functional
