// SPDX-License-Identifier: Apache-2.0
//
// Elements and slices by a tensor of indices for each of several dims, as x[i, j] of Python.
//
//   OFL_ASSIGN_OR_RETURN(Tensor picked, functional::IndexLeading(x, {rows, columns}));
#pragma once

#include "oneflow_lite/framework/function.h"

namespace oneflow_lite::functional {

// Integer indices of dims of these sizes, broadcast, as int64 places of those dims flattened;
// negative ones count from the end. One outside its dim is an IndexError on the CPU, which names
// the dim by `dims`; on CUDA, which cannot stop, it gives a place that no dim has. ShapeError where
// they do not broadcast, DTypeError where one is no integer.
OFL_API StatusOr<Tensor> RavelMultiIndex(absl::Span<const Tensor> indices, const Dims& sizes,
                                         const Dims& dims);
// x[i, j ...]: an index for each leading dim of x, at least one. The result has the shape that they
// are broadcast to, then the other dims of x.
OFL_API StatusOr<Tensor> IndexLeading(const Tensor& x, absl::Span<const Tensor> indices);
// x[:, i, :, j ...]: an index for each of some dims, which rise. The dims that the indices are
// broadcast to take the place of those, or come first where they are no neighbours. `source_dims`:
// the dims in messages.
OFL_API StatusOr<Tensor> IndexDims(const Tensor& x, const Dims& dims,
                                   absl::Span<const Tensor> indices, const Dims& source_dims);

// x[i, j ...] = value, or += if `accumulate`; value broadcasts to what IndexLeading picks, in x's
// dtype. Of several that go to one place the last one stays, or all are added. x is contiguous.
// Returns x.
OFL_API StatusOr<Tensor> IndexLeadingInto(const Tensor& x, absl::Span<const Tensor> indices,
                                          const Tensor& value, bool accumulate);

}  // namespace oneflow_lite::functional
