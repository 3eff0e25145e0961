// SPDX-License-Identifier: Apache-2.0
//
// A part written into a copy, and elements rearranged between dims.
//
//   OFL_ASSIGN_OR_RETURN(Tensor y, functional::SelectScatter(x, row, 0, 2));   // x with row 2
#pragma once

#include <optional>

#include "oneflow_lite/core/scalar.h"
#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite::functional {

// x with src where Select, Slice and Diagonal (view.h, shapes.h) would look; src has that shape.
OFL_API StatusOr<Tensor> SelectScatter(const Tensor& x, const Tensor& src, int64_t dim,
                                       int64_t index);
OFL_API StatusOr<Tensor> SliceScatter(const Tensor& x, const Tensor& src, int64_t dim = 0,
                                      std::optional<int64_t> start = {},
                                      std::optional<int64_t> end = {}, int64_t step = 1);
OFL_API StatusOr<Tensor> DiagonalScatter(const Tensor& x, const Tensor& src, int64_t offset = 0,
                                         int64_t dim1 = 0, int64_t dim2 = 1);
// x with the elements of source at the places of its flat form; accumulate adds them.
OFL_API StatusOr<Tensor> Put(const Tensor& x, const Tensor& index, const Tensor& source,
                             bool accumulate = false);
OFL_API StatusOr<Tensor> PutInto(const Tensor& self, const Tensor& index, const Tensor& source,
                                 bool accumulate = false);
// Pad (remap.h) with a number.
OFL_API StatusOr<Tensor> ConstantPadNd(const Tensor& x, absl::Span<const int64_t> pad,
                                       Scalar value = 0);
// x summed to a shape that broadcasts to its own.
OFL_API StatusOr<Tensor> SumToSize(const Tensor& x, absl::Span<const int64_t> size);
// Blocks of r x r channels as pixels, [..., c r^2, h, w] -> [..., c, h r, w r], and back.
OFL_API StatusOr<Tensor> PixelShuffle(const Tensor& x, int64_t r);
OFL_API StatusOr<Tensor> PixelUnshuffle(const Tensor& x, int64_t r);
// Channels (dim 1) dealt out to so many groups.
OFL_API StatusOr<Tensor> ChannelShuffle(const Tensor& x, int64_t groups);
// All ways to take r of the elements of a 1-D tensor, in order: [ways, r].
OFL_API StatusOr<Tensor> Combinations(const Tensor& x, int64_t r = 2,
                                      bool with_replacement = false);
// The coordinates of flat places in a tensor of that shape, one tensor per dim.
OFL_API StatusOr<TensorList> UnravelIndex(const Tensor& indices, absl::Span<const int64_t> shape);
// The first `size` rows of Argwhere, followed by rows of fill_value: waits for no count.
OFL_API StatusOr<Tensor> NonzeroStatic(const Tensor& x, int64_t size, int64_t fill_value = -1);

}  // namespace oneflow_lite::functional
