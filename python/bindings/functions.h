// SPDX-License-Identifier: Apache-2.0
//
// Registered functions as Python builtins and as methods of Tensor.
#pragma once

#include "oneflow_lite/framework/function.h"
#include "python/bindings/reference.h"

namespace oneflow_lite::python {

// The methods that go into the Tensor type, ended by an empty entry. Null: an exception is set.
PyMethodDef* FunctionMethods();
// The submodule _C: every function that is not only a method. False: an exception is set.
bool AddFunctions(PyObject* module);
// Parses Python's arguments, calls, wraps the result. `args` as in METH_FASTCALL | METH_KEYWORDS.
PyObject* CallBound(size_t function, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                    PyObject* kwnames);

}  // namespace oneflow_lite::python
