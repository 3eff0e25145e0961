// SPDX-License-Identifier: Apache-2.0
//
// Views: the same memory under another shape, followed by autograd. An in-place change of a view
// changes its base, and the other way round.
//
//   OFL_ASSIGN_OR_RETURN(Tensor first_row, functional::Select(x, 0, 0));
#pragma once

#include <optional>

#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite::functional {

// One dim may be -1. View gives a ShapeError where strides cannot express the shape; Reshape copies
// there.
OFL_API StatusOr<Tensor> View(const Tensor& x, absl::Span<const int64_t> shape);
OFL_API StatusOr<Tensor> Reshape(const Tensor& x, absl::Span<const int64_t> shape);
// Dims may be negative in all of these.
OFL_API StatusOr<Tensor> Permute(const Tensor& x, absl::Span<const int64_t> dims);
OFL_API StatusOr<Tensor> Transpose(const Tensor& x, int64_t dim0, int64_t dim1);
// At most 2 dims: its transpose.
OFL_API StatusOr<Tensor> T(const Tensor& x);
// Elements start, start + step, ... before end along dim; bounds clamp as in Python, step > 0.
OFL_API StatusOr<Tensor> Slice(const Tensor& x, int64_t dim, std::optional<int64_t> start,
                               std::optional<int64_t> end, int64_t step = 1);
// start .. start + length; IndexError where that is not within the dim.
OFL_API StatusOr<Tensor> Narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length);
// Element `index` along dim, which goes.
OFL_API StatusOr<Tensor> Select(const Tensor& x, int64_t dim, int64_t index);
// Dims of size 1 repeat to the given size (-1 keeps a dim), new dims come in front.
OFL_API StatusOr<Tensor> Expand(const Tensor& x, absl::Span<const int64_t> shape);
// Without the given (or all) dims of size 1; a given dim of another size stays.
OFL_API StatusOr<Tensor> Squeeze(const Tensor& x, std::optional<Dims> dims = {});
OFL_API StatusOr<Tensor> Unsqueeze(const Tensor& x, int64_t dim);
OFL_API StatusOr<Tensor> Flatten(const Tensor& x, int64_t start_dim = 0, int64_t end_dim = -1);
// Any geometry within x's storage; offset counts from the storage's start (absent: x's own).
OFL_API StatusOr<Tensor> AsStrided(const Tensor& x, absl::Span<const int64_t> shape,
                                   absl::Span<const int64_t> strides,
                                   std::optional<int64_t> offset = {});

}  // namespace oneflow_lite::functional
