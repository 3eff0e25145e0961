// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/traced.h"

namespace oneflow_lite::python {
namespace {

// _traced_call of the first argument whose class has it; null without an exception: none has.
PyRef FindTracedCall(PyObject* const* args, Py_ssize_t n) {
  for (Py_ssize_t i = 0; i < n; ++i) {
    auto* type = reinterpret_cast<PyObject*>(Py_TYPE(args[i]));
    PyRef found(PyObject_GetAttrString(type, "_traced_call"));
    if (found) return found;
    PyErr_Clear();
  }
  return PyRef();
}

PyObject* Traced(const BoundFunction& called, PyObject* call, PyObject* self, PyObject* const* args,
                 Py_ssize_t nargs, PyObject* kwnames) {
  const Py_ssize_t own = self ? 1 : 0, named = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  const PyRef tuple(PyTuple_New(own + nargs)), dict(PyDict_New());
  if (!tuple || !dict) return nullptr;
  if (self) PyTuple_SET_ITEM(tuple.get(), 0, PyRef::Borrow(self).Give());
  for (Py_ssize_t i = 0; i < nargs; ++i) {
    PyTuple_SET_ITEM(tuple.get(), own + i, PyRef::Borrow(args[i]).Give());
  }
  for (Py_ssize_t k = 0; k < named; ++k) {
    if (PyDict_SetItem(dict.get(), TupleItem(kwnames, k), args[nargs + k]) < 0) {
      return nullptr;
    }
  }
  const FunctionSchema& f = *called.schema;
  const std::string& name = f.alias_of.empty() ? f.name : f.alias_of;
  return PyObject_CallFunction(call, "sOO", name.c_str(), tuple.get(), dict.get());
}

}  // namespace

PyObject* CallTraced(const BoundFunction& called, PyObject* self, PyObject* const* args,
                     Py_ssize_t nargs, PyObject* kwnames) {
  if (!PyErr_ExceptionMatches(PyExc_TypeError)) return nullptr;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  const Py_ssize_t named = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  const PyRef call = FindTracedCall(args, nargs + named);
  PyRef result;
  if (call) result = PyRef(Traced(called, call.get(), self, args, nargs, kwnames));
  const bool answers = call && result.get() != Py_NotImplemented;
  if (!answers) {
    PyErr_Restore(type, value, trace);
    return nullptr;
  }
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  return result.Give();
}

}  // namespace oneflow_lite::python
