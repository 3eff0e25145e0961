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

// F(self, args, kwargs), whose keywords nobody changes meanwhile. What PyArg_Parse... gives is not
// owned; a dict that others hold too (_thread.start_new_thread passes on the caller's) is copied.
template <auto F, class Self>
PyObject* CallWithKeywords(Self* self, PyObject* args, PyObject* kwargs) {
  if (!kwargs || Py_REFCNT(kwargs) == 1) return F(self, args, kwargs);
  const PyRef own(PyDict_Copy(kwargs));
  return own ? F(self, args, own.get()) : nullptr;
}
// F as a PyMethodDef with METH_VARARGS | METH_KEYWORDS wants it.
template <auto F>
PyCFunction WithKeywords() {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&CallWithKeywords<F, PyObject>));
}

// Whether the graphs are still as the garbage collector's last walk found them (collector.cpp).
// Ends when a thread may work in them without the lock, and when what was walked goes.
inline bool collection_lasts = false;  // guarded by the interpreter's lock
inline void EndCollection() { collection_lasts = false; }

// For a thread that Python does not know, or no more: see unwinding.cpp.
void SleepIfInterpreterIsGone();

// Takes the interpreter's lock, whatever thread this is. Where the interpreter has gone, the thread
// sleeps until the process has gone too.
class GilAcquire {
 public:
  GilAcquire() : state_((SleepIfInterpreterIsGone(), PyGILState_Ensure())) {}
  ~GilAcquire() {
    EndCollection();
    PyGILState_Release(state_);
  }
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
  explicit GilRelease(bool release = true) {
    if (!release) return;
    EndCollection();
    state_ = PyEval_SaveThread();
  }
  ~GilRelease() {
    if (!state_) return;
    PyEval_RestoreThread(state_);
    if (objects_wait.load(std::memory_order_relaxed)) DropWaiting();
  }
  GilRelease(const GilRelease&) = delete;

 private:
  PyThreadState* state_ = nullptr;
};

// An object that C++ keeps: copied and dropped without the lock.
using SharedObject = std::shared_ptr<PyObject>;
inline SharedObject ShareObject(PyObject* borrowed) {
  Py_INCREF(borrowed);
  return SharedObject(borrowed, ReleaseLater);
}

}  // namespace oneflow_lite::python
