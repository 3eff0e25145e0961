// SPDX-License-Identifier: Apache-2.0
//
// Keywords of a call that are no names of the function's arguments.
#pragma once

#include <string>

#include "python/bindings/functions.h"

namespace oneflow_lite::python {

// The argument that NumPy has another name for; args.size(): none.
size_t FindByOtherName(const FunctionSchema& f, PyObject* name);
// Whether the keyword changes nothing: NumPy's functions pass dtype=None and out=None on to
// methods, as np.std(x) does.
bool MeansNothing(PyObject* name, PyObject* value);
// "; did you mean 'dim'?" where an argument has nearly that name, else nothing.
std::string NearName(const BoundFunction& b, PyObject* name);

}  // namespace oneflow_lite::python
