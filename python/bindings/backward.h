// SPDX-License-Identifier: Apache-2.0
//
// Autograd for the bindings: running the engine, hooks that are Python callables.
#pragma once

#include "oneflow_lite/framework/autograd.h"
#include "python/bindings/reference.h"

namespace oneflow_lite::python {

struct BackwardArgs {
  TensorList outputs;
  TensorList grads;  // empty: ones
  bool retain_graph = false;
  bool create_graph = false;
  bool has_inputs = false;
  TensorList inputs;  // where given, only these get gradients
};
// Call without the interpreter's lock.
Status RunBackward(BackwardArgs args);

// Gradients given for outputs of another floating dtype, cast to that; shapes are left to autograd.
Status CastGradients(const TensorList& outputs, TensorList* grads);

// None, a Tensor, or a sequence of Tensors and (as undefined ones) None. False: a TypeError that
// names function and argument is set.
bool ReadTensorList(const char* function, const char* argument, PyObject* o, TensorList* out);

// The object of a hook's handle, with remove().
PyObject* WrapHookHandle(HookHandle handle);

}  // namespace oneflow_lite::python
