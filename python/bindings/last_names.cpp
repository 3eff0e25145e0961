// SPDX-License-Identifier: Apache-2.0
//
// Names of Tensor that dir() does not show: absent ones, whose attributes say what to use instead.
#include "python/bindings/classes.h"
#include "python/bindings/reference.h"
#include "python/bindings/tensor_object.h"

namespace oneflow_lite::python {
namespace {

// Attributes of a tensor, and of Tensor, are looked up in `last` where nothing else has them. A
// class is asked in the order of its __mro__, while dir() goes by __bases__: `last` ends the one
// and is not among the other. A metaclass with a __getattr__ and a __dir__ would do as much and
// make isinstance(x, Tensor) slower, a __getattr__ of Tensor each attribute of each tensor.
PyObject* LookLast(PyObject*, PyObject* last) {
  if (!PyType_Check(last)) {
    return PyErr_Format(PyExc_TypeError, "_look_last(): last must be a class, not %s",
                        Py_TYPE(last)->tp_name);
  }
  const PyRef end(PyTuple_Pack(1, last));
  if (!end) return nullptr;
  PyObject* order = PySequence_Concat(tensor_type->tp_mro, end.get());
  if (!order) return nullptr;
  Py_SETREF(tensor_type->tp_mro, order);
  PyType_Modified(tensor_type);
  Py_RETURN_NONE;
}

}  // namespace

PyMethodDef last_name_functions[] = {
    {"_look_last", &LookLast, METH_O,
     "_look_last(last, /)\n--\n\nLets Tensor have the attributes of a class without showing them."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace oneflow_lite::python
