// SPDX-License-Identifier: Apache-2.0
//
// A tensor that changes its own dims: afterwards it is what the functor without "Into" (view.h)
// gives, of the same elements. RuntimeError for a global tensor, for a leaf that requires a
// gradient and for a view with a history, which keep their dims. They return self.
//
//   OFL_RETURN_IF_ERROR(functional::UnsqueezeInto(x, 0).status());
#pragma once

#include <optional>

#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite::functional {

OFL_API StatusOr<Tensor> TransposeInto(const Tensor& self, int64_t dim0, int64_t dim1);
OFL_API StatusOr<Tensor> TInto(const Tensor& self);
OFL_API StatusOr<Tensor> SqueezeInto(const Tensor& self, std::optional<Dims> dims = {});
OFL_API StatusOr<Tensor> UnsqueezeInto(const Tensor& self, int64_t dim);

}  // namespace oneflow_lite::functional
