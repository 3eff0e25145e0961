// SPDX-License-Identifier: Apache-2.0
//
// Elements where a mask holds: their places, taken out, put back. How many there are waits for the
// device.
//
//   OFL_ASSIGN_OR_RETURN(Tensor positive, functional::MaskedSelect(x, *functional::Gt(x, 0)));
#pragma once

#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite::functional {

// The coordinates of the elements that are not 0: int64 [count, ndim], row by row.
OFL_API StatusOr<Tensor> Argwhere(const Tensor& x);
// The elements where the mask (bool) holds, 1-D; x and mask are broadcast.
OFL_API StatusOr<Tensor> MaskedSelect(const Tensor& x, const Tensor& mask);
// Where the mask holds the elements of source, in their order, else those of x; x and mask are
// broadcast. ShapeError where source has too few elements, DTypeError for another dtype.
OFL_API StatusOr<Tensor> MaskedScatter(const Tensor& x, const Tensor& mask, const Tensor& source);

// The first `count` elements of x where the mask, of x's shape, holds; 0 where there are no more.
OFL_API StatusOr<Tensor> MaskedTake(const Tensor& x, const Tensor& mask, int64_t count);
// MaskedScatter of a mask of x's shape and a 1-D source that has an element for each place.
OFL_API StatusOr<Tensor> MaskedPut(const Tensor& x, const Tensor& mask, const Tensor& source);

}  // namespace oneflow_lite::functional
