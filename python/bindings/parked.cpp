// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/parked.h"

#include <mutex>
#include <utility>

#include "oneflow_lite/framework/autograd.h"
#include "python/bindings/collector.h"
#include "python/bindings/tensor_object.h"

namespace oneflow_lite::python {
namespace {

PyTypeObject* parked_type = nullptr;

// Guards ParkedObject::tensor: a thread without the interpreter's lock may free a tensor while the
// collector looks at what is parked for it. Nobody waits for anything else but the lock of the
// .grad slots (history.cpp) under it.
std::mutex parked_mutex;

void Forget(ParkedObject* p) {
  std::lock_guard lock(parked_mutex);
  p->tensor = nullptr;
}

// A tensor went: TensorImpl::release_py_object.
void ReleaseParked(void* slot) {
  if (!IsParked(slot)) return;
  Forget(AsParked(slot));
  CountInGraph(-1);
  ReleaseLater(reinterpret_cast<PyObject*>(AsParked(slot)));
}

int TraverseParked(PyObject* o, visitproc visit, void* arg) {
  auto* p = reinterpret_cast<ParkedObject*>(o);
  Py_VISIT(Py_TYPE(o));
  Py_VISIT(p->type);
  Py_VISIT(p->dict);
  return p->has_grad ? VisitParkedGrad(p, visit, arg) : 0;
}

// Garbage is the tensor, too: its owners are of the same collection.
int ClearParked(PyObject* o) {
  auto* p = reinterpret_cast<ParkedObject*>(o);
  EndCollection();
  Py_CLEAR(p->dict);
  Tensor t;
  {
    std::lock_guard lock(parked_mutex);
    if (p->has_grad && p->tensor && p->tensor->TryAddRef()) {
      t = Tensor(Ref<TensorImpl>::Adopt(p->tensor));
    }
  }
  if (t.defined()) static_cast<void>(autograd::SetGrad(t, Tensor()));
  return 0;
}

void DeallocParked(PyObject* o) {
  auto* p = reinterpret_cast<ParkedObject*>(o);
  PyTypeObject* type = Py_TYPE(o);
  PyObject_GC_UnTrack(o);
  EndCollection();
  Py_CLEAR(p->dict);
  Py_CLEAR(p->type);
  PyObject_GC_Del(o);
  Py_DECREF(type);
}

}  // namespace

void Park(const Tensor& t, PyTypeObject* type, PyObject* dict, bool has_grad) {
  auto* p = PyObject_GC_New(ParkedObject, parked_type);
  if (!p) {  // the attributes are lost
    PyErr_WriteUnraisable(nullptr);
    Py_XDECREF(dict);
    return;
  }
  Py_INCREF(type);
  p->tensor = nullptr, p->type = type, p->dict = dict, p->has_grad = has_grad;
  p->reported = p->counted = 0, p->grad = nullptr;
  void* empty = nullptr;
  void* slot = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(p) | kParkedTag);
  if (!t.impl()->py_object.compare_exchange_strong(empty, slot, std::memory_order_relaxed)) {
    Py_DECREF(p);
    return;
  }
  p->tensor = t.impl();
  CountInGraph(1);
  PyObject_GC_Track(p);
}

PyObject* Unpark(void* slot) {
  ParkedObject* p = AsParked(slot);
  Forget(p);
  CountInGraph(-1);
  PyObject* dict = std::exchange(p->dict, nullptr);
  Py_DECREF(p);
  return dict;
}

ParkedObject* ParkedGradOf(ParkedObject* p) {
  std::lock_guard lock(parked_mutex);
  void* slot = p->tensor ? autograd::SlotOfOwnedGrad(*p->tensor) : nullptr;
  return IsParked(slot) ? AsParked(slot) : nullptr;
}

bool AddParkedType() {
  TensorImpl::release_py_object = &ReleaseParked;
  static PyType_Slot slots[] = {
      {Py_tp_dealloc, Slot(&DeallocParked)},
      {Py_tp_traverse, Slot(&TraverseParked)},
      {Py_tp_clear, Slot(&ClearParked)},
      {0, nullptr},
  };
  static PyType_Spec spec = {
      "oneflow_lite._Parked", sizeof(ParkedObject), 0,
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  parked_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return parked_type != nullptr;
}

}  // namespace oneflow_lite::python
