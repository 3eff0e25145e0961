// SPDX-License-Identifier: Apache-2.0
//
// The bytes of a tensor as elements of another dtype.
//
//   OFL_ASSIGN_OR_RETURN(Tensor bits, functional::View(x, DType::kInt32));
#pragma once

#include <initializer_list>

#include "functional/view.h"
#include "oneflow_lite/core/status.h"
#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite::functional {

// The same bytes as elements of another dtype, without history. Where its size is another one,
// those of the last dim, whose stride is 1, are divided or joined; ShapeError where they cannot be.
OFL_API StatusOr<Tensor> View(const Tensor& x, DType dtype);
// Another shape, as in view.h: beside the function above, {} would be a dtype.
inline StatusOr<Tensor> View(const Tensor& x, std::initializer_list<int64_t> shape) {
  return View(x, absl::MakeConstSpan(shape.begin(), shape.size()));
}

}  // namespace oneflow_lite::functional
