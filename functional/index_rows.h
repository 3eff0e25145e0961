// SPDX-License-Identifier: Apache-2.0
//
// Whole slices added, copied and filled by places along a dim; index.h has index_select. A negative
// place counts from the end. One outside the dim is an IndexError on the CPU; on CUDA, which cannot
// stop, it takes nothing.
//
//   OFL_ASSIGN_OR_RETURN(Tensor sums, functional::IndexAdd(zeros, 0, segment, rows));
#pragma once

#include <optional>

#include "oneflow_lite/framework/function.h"

namespace oneflow_lite::functional {

// x with alpha times the slices of src, one for each place of a 1-D index, added; a place named
// twice gets both, in their order. ShapeError and DTypeError where src does not fit.
OFL_API StatusOr<Tensor> IndexAdd(const Tensor& x, int64_t dim, const Tensor& index,
                                  const Tensor& src, const Scalar& alpha = Scalar(1));
OFL_API StatusOr<Tensor> IndexAddInto(const Tensor& self, int64_t dim, const Tensor& index,
                                      const Tensor& src, const Scalar& alpha = Scalar(1));
// x with the slices of src instead: of several that go to one place the last one stays.
OFL_API StatusOr<Tensor> IndexCopy(const Tensor& x, int64_t dim, const Tensor& index,
                                   const Tensor& src);
OFL_API StatusOr<Tensor> IndexCopyInto(const Tensor& self, int64_t dim, const Tensor& index,
                                       const Tensor& src);
// x with a number, or a tensor of 0 dims, in the slices at the places.
OFL_API StatusOr<Tensor> IndexFill(const Tensor& x, int64_t dim, const Tensor& index,
                                   const Operand& value);
OFL_API StatusOr<Tensor> IndexFillInto(const Tensor& self, int64_t dim, const Tensor& index,
                                       const Operand& value);

// The sums of the slices of x that go to each of `size` places (int64, negative ones from the end
// if `from_end`) along dim, in x's dtype, rounded once; those with the place `skipped` go nowhere.
OFL_API StatusOr<Tensor> IndexSum(const Tensor& x, int64_t dim, const Tensor& index, int64_t size,
                                  int64_t skipped = -1, bool from_end = false);
// IndexSelect by a 1-D index of int64, negative places from the end if `from_end`.
OFL_API StatusOr<Tensor> SelectPlaces(const Tensor& x, int64_t dim, const Tensor& index,
                                      bool from_end);
// x[index] for places (integers) of dim 0, of any shape, negative ones from the end.
OFL_API StatusOr<Tensor> IndexFirst(const Tensor& x, const Tensor& index);
// The same for dim `dim`, 0 <= dim < x.ndim(), which errors call `source_dim`: the dims of the
// index take its place. The second writes `value`, as ValueFor gives it, there: of several slices
// that go to one place the last one stays, or all are added if `accumulate`.
OFL_API StatusOr<Tensor> IndexDim(const Tensor& x, int64_t dim, const Tensor& index,
                                  int64_t source_dim);
OFL_API StatusOr<Tensor> IndexDimInto(const Tensor& x, int64_t dim, const Tensor& index,
                                      const Tensor& value, int64_t source_dim, bool accumulate);
// What x[...] = value writes where the index picks this shape: on x's device, of its dtype, without
// leading dims of size 1 too many, expanded.
OFL_API StatusOr<Tensor> ValueFor(const Tensor& value, const Tensor& x, const Dims& shape);

// Gather where the other dims are broadcast and negative places count from the end; without a dim,
// of the flat tensors.
OFL_API StatusOr<Tensor> TakeAlongDim(const Tensor& x, const Tensor& indices,
                                      std::optional<int64_t> dim = {});
// The elements of the flat tensor at the places, in the shape of the index.
OFL_API StatusOr<Tensor> Take(const Tensor& x, const Tensor& index);

}  // namespace oneflow_lite::functional
