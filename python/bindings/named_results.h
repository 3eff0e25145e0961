// SPDX-License-Identifier: Apache-2.0
//
// Named tuples of results: flow.max(x, 1).values.
#pragma once

#include <string>
#include <vector>

#include "python/bindings/reference.h"

namespace oneflow_lite::python {

// The type of a function's results, which lives for ever; pickle finds it in _C once it was added.
// Null: an exception is set.
PyTypeObject* MakeResultsType(const std::string& function, const std::vector<std::string>& fields);
// "_max_results", its name in _C.
std::string ResultsTypeName(const std::string& function);
// A tuple of this type with an object for each field. Null: an exception is set.
PyObject* WrapNamed(PyTypeObject* type, const std::vector<PyRef>& items);

}  // namespace oneflow_lite::python
