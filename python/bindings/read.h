// SPDX-License-Identifier: Apache-2.0
//
// Elements of a tensor as Python numbers.
#pragma once

#include "oneflow_lite/core/tensor.h"
#include "python/bindings/reference.h"

namespace oneflow_lite::python {

// The tensor in host memory, contiguous: itself where it is, else a copy. RuntimeError for meta.
StatusOr<Tensor> OnHost(const Tensor& t, absl::string_view function);
// The value at p; a new reference.
PyObject* ElementAt(DType dtype, const void* p);
// The only element; a RuntimeError where there are none or several.
PyObject* Item(const Tensor& t, absl::string_view function);

}  // namespace oneflow_lite::python
