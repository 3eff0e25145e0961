// SPDX-License-Identifier: Apache-2.0
//
// The Python type Tensor. An object holds one counted handle; the tensor points back to its object,
// so that the same tensor is the same object. Where C++ holds a tensor longer than Python does (as
// the base of a view, as saved for backward), the object goes, but its class and attributes stay
// with the tensor (parked.h) and are put on again when Python sees it next; weak references and the
// id do not last that long.
#pragma once

#include "oneflow_lite/core/tensor.h"
#include "python/bindings/reference.h"

namespace oneflow_lite::python {

struct TensorObject {
  PyObject_HEAD;
  Tensor tensor;
  PyObject* dict;
  PyObject* weakrefs;
};

extern PyTypeObject* tensor_type;

inline bool IsTensor(PyObject* o) { return PyObject_TypeCheck(o, tensor_type); }
// Precondition: IsTensor(o).
inline const Tensor& Unwrap(PyObject* o) { return reinterpret_cast<TensorObject*>(o)->tensor; }

// The tensor's object, made at need; None where it is undefined. A new reference, null on failure.
PyObject* Wrap(Tensor t);
// A new object of a subclass. Precondition: no object of this tensor exists.
PyObject* WrapAs(PyTypeObject* type, Tensor&& t);

// Creates the type with these methods besides its own. False: an exception is set.
bool AddTensorType(PyObject* module, PyMethodDef* function_methods);

// A function as a slot of a type wants it.
template <class F>
void* Slot(F* f) {
  return reinterpret_cast<void*>(f);
}

// What the files of the type contribute.
extern PyGetSetDef tensor_getset[];
extern PyMethodDef tensor_methods[];
extern PyMethodDef autograd_methods[];
extern PyMethodDef numpy_methods[];
extern PyMethodDef dlpack_methods[];
extern PyMethodDef pickle_methods[];
extern PyType_Slot number_slots[];
extern PyType_Slot index_slots[];
// Tensor(data=None, requires_grad=False), for subclasses too.
PyObject* NewTensor(PyTypeObject* type, PyObject* args, PyObject* kwargs);

}  // namespace oneflow_lite::python
