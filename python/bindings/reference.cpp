// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/reference.h"

#include <unistd.h>

#include <mutex>
#include <vector>

namespace oneflow_lite::python {
namespace {

struct Waiting {
  std::mutex mutex;
  std::vector<PyObject*> objects;
  bool scheduled = false;
};
Waiting& GetWaiting() {
  static auto* waiting = new Waiting;
  return *waiting;
}

// Runs in the interpreter's main thread between two of its instructions. That thread may wait for
// others and run none, so whoever takes the lock back from C++ drops what waits, too.
int DropPending(void*) {
  {
    Waiting& w = GetWaiting();
    std::lock_guard lock(w.mutex);
    w.scheduled = false;
  }
  DropWaiting();
  return 0;
}

bool InterpreterIsGone() {
#if PY_VERSION_HEX >= 0x030D0000
  return !Py_IsInitialized() || Py_IsFinalizing();
#else
  return !Py_IsInitialized() || _Py_IsFinalizing();
#endif
}

}  // namespace

std::atomic<bool> objects_wait{false};

void DropWaiting() {
  Waiting& w = GetWaiting();
  std::vector<PyObject*> objects;
  {
    std::lock_guard lock(w.mutex);
    objects.swap(w.objects);
    objects_wait.store(false, std::memory_order_relaxed);
  }
  for (PyObject* p : objects) Py_DECREF(p);
}

void SleepIfInterpreterIsGone() {
  // The thread that finalizes, and one that Python is about to end itself, have a state.
  while (!Py_IsInitialized() && !PyGILState_GetThisThreadState()) pause();
}

void ReleaseLater(PyObject* p) {
  if (!Py_IsInitialized()) return;
  if (PyGILState_Check()) {
    Py_DECREF(p);
    return;
  }
  if (InterpreterIsGone()) return;
  Waiting& w = GetWaiting();
  std::lock_guard lock(w.mutex);
  w.objects.push_back(p);
  objects_wait.store(true, std::memory_order_relaxed);
  // A full queue of pending calls is tried again with the next object.
  if (!w.scheduled) w.scheduled = Py_AddPendingCall(&DropPending, nullptr) == 0;
}

}  // namespace oneflow_lite::python
