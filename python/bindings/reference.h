// SPDX-License-Identifier: Apache-2.0
//
// References to Python objects, and the lock of the interpreter.
//
//   PyRef list(PyList_New(0));            // owns the new reference
//   if (!list) return nullptr;            // an exception is set
//   return list.Give();
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <atomic>
#include <memory>
#include <utility>

namespace oneflow_lite::python {

// Owns one reference to an object, or is null. Needs the interpreter's lock.
class PyRef {
 public:
  PyRef() = default;
  explicit PyRef(PyObject* owned) : p_(owned) {}
  PyRef(PyRef&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  PyRef& operator=(PyRef&& o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~PyRef() { Py_XDECREF(p_); }

  static PyRef Borrow(PyObject* p) {
    Py_XINCREF(p);
    return PyRef(p);
  }
  PyObject* get() const { return p_; }
  explicit operator bool() const { return p_ != nullptr; }
  // The caller now owns the reference.
  PyObject* Give() { return std::exchange(p_, nullptr); }

 private:
  PyObject* p_ = nullptr;
};

// A function pointer as a PyMethodDef with METH_VARARGS | METH_KEYWORDS wants it.
inline PyCFunction WithKeywords(PyCFunctionWithKeywords f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f));
}

// Takes the interpreter's lock, whatever thread this is.
class GilAcquire {
 public:
  GilAcquire() : state_(PyGILState_Ensure()) {}
  ~GilAcquire() { PyGILState_Release(state_); }
  GilAcquire(const GilAcquire&) = delete;

 private:
  PyGILState_STATE state_;
};

// Drops a reference from any thread, with or without the lock: never waits for the lock, because
// the caller may hold a mutex that the lock's owner waits for.
void ReleaseLater(PyObject* p);
// Drops what was left without the lock. Needs the lock.
void DropWaiting();
extern std::atomic<bool> objects_wait;

// Gives the lock away while C++ works; a no-op where `release` is false. The tensors that C++ works
// on must be counted meanwhile, not borrowed from their objects (oneflow_lite/framework/owned.h).
class GilRelease {
 public:
  explicit GilRelease(bool release = true) : state_(release ? PyEval_SaveThread() : nullptr) {}
  ~GilRelease() {
    if (!state_) return;
    PyEval_RestoreThread(state_);
    if (objects_wait.load(std::memory_order_relaxed)) DropWaiting();
  }
  GilRelease(const GilRelease&) = delete;

 private:
  PyThreadState* state_;
};

// An object that C++ keeps: copied and dropped without the lock.
using SharedObject = std::shared_ptr<PyObject>;
inline SharedObject ShareObject(PyObject* borrowed) {
  Py_INCREF(borrowed);
  return SharedObject(borrowed, ReleaseLater);
}

}  // namespace oneflow_lite::python
