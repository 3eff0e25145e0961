// SPDX-License-Identifier: Apache-2.0
//
// Elements by place: a tensor of int64 (or int32) says where along a dim they are. A place outside
// the dim is an IndexError on the CPU; on CUDA, which cannot stop, it gives NaN (0 where the dtype
// has none) and takes nothing.
//
//   OFL_ASSIGN_OR_RETURN(Tensor rows, functional::IndexSelect(table, 0, places));
#pragma once

#include <optional>

#include "oneflow_lite/framework/function.h"

namespace oneflow_lite::functional {

// y[i][j][k] = x[i][index[i][j][k]][k] for dim 1. index has as many dims as x, and in the others at
// most x's sizes; ShapeError otherwise, DTypeError where it is neither.
OFL_API StatusOr<Tensor> Gather(const Tensor& x, int64_t dim, const Tensor& index);
// The slices of x at the places of a 1-D (or 0-dim) index: a row of a table for each.
OFL_API StatusOr<Tensor> IndexSelect(const Tensor& x, int64_t dim, const Tensor& index);
// IndexSelect of rows of weight [n, d] by an index of any shape: [*index, d]. The row padding_idx
// gets no gradient.
OFL_API StatusOr<Tensor> Embedding(const Tensor& index, const Tensor& weight,
                                   std::optional<int64_t> padding_idx = {});

// Gather the other way round: x with src (or a number), cut to the index's shape, at those places.
// Of several that go to one place the last one stays, and is alone to be seen in the result, but
// each gets a gradient.
OFL_API StatusOr<Tensor> Scatter(const Tensor& x, int64_t dim, const Tensor& index,
                                 const Operand& src);
// The same with src added, in the order of the index.
OFL_API StatusOr<Tensor> ScatterAdd(const Tensor& x, int64_t dim, const Tensor& index,
                                    const Tensor& src);
// In place. Returns self.
OFL_API StatusOr<Tensor> ScatterInto(const Tensor& self, int64_t dim, const Tensor& index,
                                     const Operand& src);
OFL_API StatusOr<Tensor> ScatterAddInto(const Tensor& self, int64_t dim, const Tensor& index,
                                        const Tensor& src);
// In place, without a gradient: self's elements times ("prod") those of src that go there, or the
// largest ("amax") or smallest ("amin") of all. NaN stays NaN. Each step is rounded.
OFL_API StatusOr<Tensor> ScatterJoinInto(const Tensor& self, int64_t dim, const Tensor& index,
                                         const Tensor& src, absl::string_view join);

// The three where a negative place counts from the end, if `from_end`; the last two in place.
OFL_API StatusOr<Tensor> GatherPlaces(const Tensor& x, int64_t dim, const Tensor& index,
                                      bool from_end);
OFL_API StatusOr<Tensor> ScatterPlaces(const Tensor& self, int64_t dim, const Tensor& index,
                                       const Operand& src, bool from_end);
OFL_API StatusOr<Tensor> ScatterAddPlaces(const Tensor& self, int64_t dim, const Tensor& index,
                                          const Tensor& src, bool from_end);

// t, or a copy of it where it shares memory with self: what is written may not be read again.
StatusOr<Tensor> ApartFrom(const Tensor& self, const Tensor& t);

// sum with src, of its dtype or of a 16-bit float that it sums in float32, added in place.
StatusOr<Tensor> AddPlacesWide(const Tensor& sum, int64_t dim, const Tensor& index,
                               const Tensor& src, bool from_end);

}  // namespace oneflow_lite::functional
