// SPDX-License-Identifier: Apache-2.0
//
// Statuses inside pybind11 functions, where errors are C++ exceptions.
#pragma once

#include <pybind11/pybind11.h>

#include "oneflow_lite/core/ref.h"
#include "python/bindings/errors.h"

namespace oneflow_lite::python {

namespace py = pybind11;

inline void ThrowIfError(const Status& s) {
  if (s.ok()) return;
  Raise(s);
  throw py::error_already_set();
}
template <class T>
T ValueOrThrow(StatusOr<T> v) {
  ThrowIfError(v.status());
  return *std::move(v);
}
// An owned object from code that sets exceptions.
inline py::object OwnedOrThrow(PyObject* p) {
  if (!p) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(p);
}

}  // namespace oneflow_lite::python

PYBIND11_DECLARE_HOLDER_TYPE(T, ::oneflow_lite::Ref<T>, true)
