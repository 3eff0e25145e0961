// SPDX-License-Identifier: Apache-2.0
//
// The arguments of a call, read by the function's signature: by place, by keyword, under NumPy's
// names, in an older order, for an overload.
//
//   ValueList values;
//   const BoundFunction* taken = ReadAny(function, {self, args, nargs, kwnames}, &values, nullptr);
//   if (!taken) return nullptr;  // an exception is set
#pragma once

#include "oneflow_lite/framework/function.h"
#include "python/bindings/functions.h"

namespace oneflow_lite::python {

// Values and names as in METH_FASTCALL | METH_KEYWORDS; self is null where there is none.
struct CallArguments {
  PyObject* self;
  PyObject* const* args;
  Py_ssize_t nargs;
  PyObject* kwnames;
};

// Reads the arguments for the function or for the first of its overloads that takes them, which it
// gives. Null: none does, and what the function itself said of them is set. `target` gets the value
// of out=, which is no argument of the function itself; null: it is not taken.
const BoundFunction* ReadAny(const BoundFunction& b, const CallArguments& g, ValueList* values,
                             PyObject** target);

}  // namespace oneflow_lite::python
