// SPDX-License-Identifier: Apache-2.0
//
// Calls with what stands for an element while flow.fuse traces a function. The class of such a
// stand-in has a static method _traced_call(name, args, kwargs), which gives the function of that
// name as one of elements, or NotImplemented: wherever in the traced function, and in what it
// calls, flow.exp(x) is written.
#pragma once

#include "python/bindings/functions.h"

namespace oneflow_lite::python {

// After the arguments could not be read, and with that exception set: what the stand-in among them
// gives. Null: an exception is set, the one that was where there is none.
PyObject* CallTraced(const BoundFunction& called, PyObject* self, PyObject* const* args,
                     Py_ssize_t nargs, PyObject* kwnames);

}  // namespace oneflow_lite::python
