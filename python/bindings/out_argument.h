// SPDX-License-Identifier: Apache-2.0
//
// The argument out= that every function takes: y = flow.softmax(x, -1, out=y).
#pragma once

#include "oneflow_lite/framework/function.h"
#include "python/bindings/reference.h"

namespace oneflow_lite::python {

// Writes the results of a function into `out`: a Tensor, or a tuple or list of as many Tensors as
// there are results. A target of 0 elements takes the result's memory over, any other must have its
// shape and device, and a dtype no less general. Gives `out`, or, where the results have names, the
// tensors of it in a tuple of the type `named`; null with an exception set: where a result has
// history, for there would be no way back through the copy.
PyObject* StoreResults(const char* function, const Value& result, PyObject* out,
                       PyTypeObject* named);

// The tensor that a call with these arguments may write its result into at once; undefined where
// there is none: `out` is no tensor, has history or not the layout for it, or shares memory with an
// argument.
Tensor WrittenAtOnce(absl::Span<const Value> values, PyObject* out);

// Lets a tensor have the storage and geometry of another; history and object stay.
void TakeOver(const Tensor& t, const Tensor& from);

}  // namespace oneflow_lite::python
