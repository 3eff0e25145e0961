// SPDX-License-Identifier: Apache-2.0
//
// Registered functions as Python builtins and as methods of Tensor.
#pragma once

#include <string>
#include <vector>

#include "oneflow_lite/framework/function.h"
#include "python/bindings/reference.h"

namespace oneflow_lite::python {

// The methods that go into the Tensor type, ended by an empty entry. Null: an exception is set.
PyMethodDef* FunctionMethods();
// The submodule _C: every function that is not only a method. False: an exception is set.
bool AddFunctions(PyObject* module);

// A function with what parsing its arguments needs.
struct BoundFunction {
  const FunctionSchema* schema;
  std::vector<PyObject*> names;  // interned, one per argument
  size_t num_positional;
  // An int[], or Tensor..., that may be spread over the positional arguments from here on; -1:
  // none.
  int spread;
  std::string doc;
  PyTypeObject* results = nullptr;  // the named tuple of the results, where they have names
  // "-> Tensor...": one tensor that is not in a list gives a tensor, not a tuple of one.
  bool as_given = false;
  // It may wait for the GPU that its tensors are on, to read a value of theirs.
  bool waits = false;
  // The function of the same name for arguments of other types ("split.sizes" for "split"), which
  // is tried where this one does not take the arguments; null: none.
  const BoundFunction* overload = nullptr;
};
// False: an exception is set.
bool Bind(const FunctionSchema& f, BoundFunction* b);
// Parses Python's arguments, calls, wraps the result. `args` as in METH_FASTCALL | METH_KEYWORDS.
// In call.cpp.
PyObject* CallBound(const BoundFunction& b, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                    PyObject* kwnames);

}  // namespace oneflow_lite::python
