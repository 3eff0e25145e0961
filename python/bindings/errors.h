// SPDX-License-Identifier: Apache-2.0
//
// Statuses as Python exceptions and back. Nothing thrown in C++ leaves a binding: every entry point
// runs inside Protect().
//
//   PyObject* Numel(PyObject* self, PyObject*) {
//     return Protect([&]() -> PyObject* {
//       auto n = Count(self);
//       return n.ok() ? PyLong_FromLongLong(*n) : Raise(n.status());
//     });
//   }
#pragma once

#include "oneflow_lite/core/status.h"
#include "python/bindings/reference.h"

namespace oneflow_lite::python {

// Puts DTypeError, ShapeError and OutOfMemoryError into the module. False: an exception is set.
bool AddErrors(PyObject* module);

// Sets the exception that the status' kind asks for; always null. Precondition: !s.ok().
PyObject* Raise(const Status& s);
// Sets an exception of the kind.
PyObject* Raise(ErrorKind kind, absl::string_view message);

// Lets the message of the exception that is set begin with "to()" where it begins with "from()".
void RenameRaised(absl::string_view from, absl::string_view to);

// Takes the exception that is set and gives a status of kind kPython for it; Raise() of that
// status sets the same exception object again.
Status TakeRaised();

// For catch blocks: sets an exception for the C++ exception in flight; always null. In module.cpp.
PyObject* RaiseCaught();

// f(), which gives a pointer or an int; null or -1 with an exception set where it throws.
template <class F>
auto Protect(F&& f) noexcept -> decltype(f()) {
  try {
    return f();
  } catch (...) {
    RaiseCaught();
    if constexpr (std::is_pointer_v<decltype(f())>)
      return nullptr;
    else
      return static_cast<decltype(f())>(-1);
  }
}

}  // namespace oneflow_lite::python
