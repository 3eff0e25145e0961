// SPDX-License-Identifier: Apache-2.0
//
// What a list, a tuple or a call holds, while Python code may run.
//
// Whoever reads an item may run Python code: __index__ of one item may empty the list that is being
// read, and with it free this item and the next. So an item is owned while it is read. This file
// alone asks CPython for items that it does not own; tests/python/test_architecture.py sees to it.
//
//   const Items items(list);
//   for (Py_ssize_t i = 0; i < items.size(); ++i) {
//     const PyRef item = items[i];
//     if (!item) return RaiseChanged("reshape", "shape");
//     ...  // whatever runs here, the item stays
//   }
#pragma once

#include "python/bindings/reference.h"

namespace oneflow_lite::python {

class Items {
 public:
  // Precondition: AreIn(o). The caller keeps `o`.
  explicit Items(PyObject* o) : owner_(o), size_(PySequence_Fast_GET_SIZE(o)) {}
  // Of an array whose items the caller keeps: the arguments of METH_FASTCALL.
  Items(PyObject* const* array, Py_ssize_t n) : array_(array), size_(n) {}

  static bool AreIn(PyObject* o) { return PyList_Check(o) || PyTuple_Check(o); }

  // Of the first look; a list that has another length since gives no item.
  Py_ssize_t size() const { return size_; }
  // Precondition: 0 <= i < size(). Null, without an exception, where the list was changed.
  PyRef operator[](Py_ssize_t i) const {
    if (array_) return PyRef::Borrow(array_[i]);
    if (PySequence_Fast_GET_SIZE(owner_) != size_) return PyRef();
    return PyRef::Borrow(PySequence_Fast_GET_ITEM(owner_, i));
  }
  // The value of an item that is exactly an int of 64 bits, which is read without running Python
  // code. False: it is something else, or is no more.
  bool ReadInt(Py_ssize_t i, int64_t* out) const {
    if (!array_ && PySequence_Fast_GET_SIZE(owner_) != size_) return false;
    PyObject* item = array_ ? array_[i] : PySequence_Fast_GET_ITEM(owner_, i);
    if (!item || !PyLong_CheckExact(item)) return false;
    int overflow = 0;
    *out = PyLong_AsLongLongAndOverflow(item, &overflow);
    return overflow == 0;
  }

 private:
  PyObject* owner_ = nullptr;
  PyObject* const* array_ = nullptr;
  Py_ssize_t size_;
};

// An item of a tuple, which never changes: it stays while the caller keeps the tuple.
inline PyObject* TupleItem(PyObject* tuple, Py_ssize_t i) { return PyTuple_GET_ITEM(tuple, i); }

// The value under a key of a dict; null where there is none, or, with an exception set, where
// comparing keys raised.
inline PyRef FindKey(PyObject* dict, PyObject* key) {
  return PyRef::Borrow(PyDict_GetItemWithError(dict, key));
}

// Calls f(key, value) for the items of a dict until it gives false, which is the result then. Both
// are owned meanwhile.
template <class F>
bool EachItem(PyObject* dict, F&& f) {
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &key, &value);) {
    const PyRef own_key = PyRef::Borrow(key), own_value = PyRef::Borrow(value);
    if (!f(own_key.get(), own_value.get())) return false;
  }
  return true;
}

// A new list of the items of a sequence. It reads as many as the sequence's length says: one that
// has no length, or gives more items than that, may give them without an end. Null: an exception is
// set.
PyRef OwnList(const char* function, const char* argument, PyObject* o);

// Sets the ValueError for a list that gave no item; always false.
inline bool RaiseChanged(const char* function, const char* argument) {
  PyErr_Format(PyExc_ValueError,
               "%s(): argument '%s' is a list that changed its length while it was read", function,
               argument);
  return false;
}

}  // namespace oneflow_lite::python
