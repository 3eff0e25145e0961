// SPDX-License-Identifier: Apache-2.0
//
// Tensors joined along a dim, and one taken apart.
//
//   OFL_ASSIGN_OR_RETURN(TensorList qkv, functional::Chunk(x, 3, -1));   // views
#pragma once

#include "oneflow_lite/framework/function.h"

namespace oneflow_lite::functional {

// After each other along dim; dtypes are promoted. A 1-D tensor without elements counts nothing.
// ShapeError where the other dims differ or there is no tensor.
OFL_API StatusOr<Tensor> Cat(absl::Span<const Tensor> tensors, int64_t dim = 0);
// Tensors of one shape along a new dim.
OFL_API StatusOr<Tensor> Stack(absl::Span<const Tensor> tensors, int64_t dim = 0);

// Views of one size along dim; the last has what is left. ValueError where it is not positive.
OFL_API StatusOr<TensorList> Split(const Tensor& x, int64_t each, int64_t dim = 0);
// Views of the given sizes along dim, which must add up to it. ValueError for other sizes.
OFL_API StatusOr<TensorList> SplitWithSizes(const Tensor& x, absl::Span<const int64_t> sizes,
                                            int64_t dim = 0);
// At most `chunks` views of one size but for the last.
OFL_API StatusOr<TensorList> Chunk(const Tensor& x, int64_t chunks, int64_t dim = 0);
// The views select(dim, i) for every i.
OFL_API StatusOr<TensorList> Unbind(const Tensor& x, int64_t dim = 0);

}  // namespace oneflow_lite::functional
