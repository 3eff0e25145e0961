// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/items.h"

#include "python/bindings/classes.h"

namespace oneflow_lite::python {
namespace {

// The length that a sequence says it has; -1: an exception is set.
Py_ssize_t LengthOf(const char* function, const char* argument, PyObject* o) {
  const Py_ssize_t n = PyObject_Size(o);
  if (n >= 0 || !PyErr_ExceptionMatches(PyExc_TypeError)) return n;
  PyErr_Format(PyExc_TypeError, "%s(): argument '%s' must be a sequence that has a length, not %s",
               function, argument, Py_TYPE(o)->tp_name);
  return -1;
}

// Whether there is room for a list of that length: one without is refused before it is read. The
// list itself grows with its items, so that nobody sees it with items that are not there yet.
bool HasRoomFor(Py_ssize_t n) {
  constexpr Py_ssize_t kMost = PY_SSIZE_T_MAX / sizeof(PyObject*);
  void* room = n <= kMost ? PyMem_Malloc(static_cast<size_t>(n) * sizeof(PyObject*)) : nullptr;
  if (!room) PyErr_NoMemory();
  PyMem_Free(room);
  return room != nullptr;
}

}  // namespace

PyRef OwnList(const char* function, const char* argument, PyObject* o) {
  if (PyList_CheckExact(o) || PyTuple_CheckExact(o)) return PyRef(PySequence_List(o));
  const Py_ssize_t n = LengthOf(function, argument, o);
  if (n < 0 || !HasRoomFor(n)) return PyRef();
  PyRef list(PyList_New(0)), items(PyObject_GetIter(o));
  if (!list || !items) return PyRef();
  Py_ssize_t count = 0;
  while (const PyRef item{PyIter_Next(items.get())}) {
    if (++count > n) break;
    if (PyList_Append(list.get(), item.get()) < 0) return PyRef();
  }
  if (PyErr_Occurred()) return PyRef();
  if (count == n) return list;
  PyErr_Format(PyExc_ValueError,
               "%s(): argument '%s' is a %s whose length is %zd, but it gives %s items", function,
               argument, Py_TYPE(o)->tp_name, n, count > n ? "more" : "fewer");
  return PyRef();
}

namespace {

PyObject* OwnListFunction(PyObject*, PyObject* args) {
  const char *function, *argument;
  PyObject* sequence;
  if (!PyArg_ParseTuple(args, "ssO:_own_list", &function, &argument, &sequence)) return nullptr;
  return OwnList(function, argument, sequence).Give();
}

}  // namespace

PyMethodDef items_functions[] = {
    {"_own_list", OwnListFunction, METH_VARARGS,
     "_own_list(function, argument, sequence, /)\n--\n\n"
     "A list of the items of a sequence, of which no more are read than its length says."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace oneflow_lite::python
