// SPDX-License-Identifier: Apache-2.0
//
// All parts of a tensor along a dim, as views of one call: their gradients come back together and
// are joined, instead of each being put into zeros of the whole.
//
//   OFL_ASSIGN_OR_RETURN(TensorList qkv, CutInParts(x, 2, {512, 128, 128}));
#pragma once

#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite::functional {

// Views of x along a dim >= 0, one after another. Precondition: the sizes add up to that of the
// dim.
StatusOr<TensorList> CutInParts(const Tensor& x, int64_t dim, absl::Span<const int64_t> sizes);
// The views of one element along a dim >= 0, which goes.
StatusOr<TensorList> SelectEach(const Tensor& x, int64_t dim);

}  // namespace oneflow_lite::functional
