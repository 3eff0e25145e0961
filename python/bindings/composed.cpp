// SPDX-License-Identifier: Apache-2.0
//
// What a call of a function composed in Python looks at before the function runs.
#include <algorithm>

#include "python/bindings/classes.h"
#include "python/bindings/errors.h"
#include "python/bindings/global.h"
#include "python/bindings/items.h"
#include "python/bindings/tensor_object.h"

namespace oneflow_lite::python {
namespace {

// What stands for an element while flow.fuse traces a function (traced.h).
bool IsTraced(PyObject* o) {
  return PyObject_HasAttrString(reinterpret_cast<PyObject*>(Py_TYPE(o)), "_traced_call") == 1;
}

// Whether an argument may be passed for a parameter. `kind` is None, or what tells whether the
// parameter must be a Tensor: True, or False where it may be None.
bool IsRight(PyObject* kind, PyObject* o) {
  return kind == Py_None || IsTensor(o) || (kind == Py_False && o == Py_None) || IsTraced(o);
}

bool Refuse() {
  PyErr_SetString(PyExc_TypeError, "an argument is no Tensor");
  return false;
}

// False: the TypeError for what must be a tensor and is none is set.
bool CheckTensors(PyObject* kinds, PyObject* by_name, PyObject* args, PyObject* kwargs) {
  const Py_ssize_t n = std::min(PyTuple_GET_SIZE(args), PyTuple_GET_SIZE(kinds));
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (!IsRight(TupleItem(kinds, i), TupleItem(args, i))) return Refuse();
  }
  return EachItem(kwargs, [&](PyObject* name, PyObject* value) {
    const PyRef kind = FindKey(by_name, name);
    if (!kind) return !PyErr_Occurred();
    return IsRight(kind.get(), value) || Refuse();
  });
}

// The placement of a tensor that is global; null: it is none.
PyObject* PlacementOf(PyObject* o) {
  const GlobalSpec* g = IsTensor(o) ? GlobalOf(Unwrap(o)) : nullptr;
  return g ? WrapPlacement(g->placement) : nullptr;
}

PyObject* FirstPlacement(PyObject* args, PyObject* kwargs) {
  if (!any_global.load(std::memory_order_relaxed)) Py_RETURN_NONE;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
    if (PyObject* found = PlacementOf(TupleItem(args, i))) return found;
  }
  PyObject* found = nullptr;
  if (kwargs)
    EachItem(kwargs, [&](PyObject*, PyObject* value) {
      found = PlacementOf(value);
      return found == nullptr;
    });
  if (found) return found;
  Py_RETURN_NONE;
}

PyObject* PlacementOfArguments(PyObject*, PyObject* args) {
  return Protect([&] { return FirstPlacement(args, nullptr); });
}

// _check_tensors(kinds, by_name, args, kwargs)
PyObject* CheckTensorsFunction(PyObject*, PyObject* const* given, Py_ssize_t n) {
  return Protect([&]() -> PyObject* {
    if (n != 4 || !PyTuple_Check(given[0]) || !PyDict_Check(given[1]) || !PyTuple_Check(given[2]) ||
        !PyDict_Check(given[3])) {
      PyErr_SetString(PyExc_TypeError, "_check_tensors() takes a tuple and a dict, twice");
      return nullptr;
    }
    if (!CheckTensors(given[0], given[1], given[2], given[3])) return nullptr;
    return FirstPlacement(given[2], given[3]);
  });
}

}  // namespace

PyMethodDef composed_functions[] = {
    {"_placement_of", PlacementOfArguments, METH_VARARGS,
     "_placement_of(*args)\n--\n\n"
     "That of the first global tensor among the arguments, or None."},
    {"_check_tensors", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(CheckTensorsFunction)),
     METH_FASTCALL,
     "_check_tensors(kinds, by_name, args, kwargs, /)\n--\n\n"
     "_placement_of of the arguments; a TypeError where one must be a Tensor and is none. kinds "
     "has\n"
     "for each place, and by_name for names, True for a Tensor, False for a Tensor or None, else\n"
     "None."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace oneflow_lite::python
