// SPDX-License-Identifier: Apache-2.0
//
// Size, what Tensor.shape is: a tuple of ints that knows how many elements a tensor of them has.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "python/bindings/reference.h"

namespace oneflow_lite::python {

// A new Size; null: an exception is set.
PyObject* WrapSize(absl::Span<const int64_t> dims);
bool IsSize(PyObject* o);
// Adds the class to the module. False: an exception is set.
bool AddSizeType(PyObject* module);

}  // namespace oneflow_lite::python
