// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/tensor_object.h"

#include <structmember.h>

#include <cstddef>
#include <new>
#include <vector>

#include "oneflow_lite/framework/autograd.h"
#include "python/bindings/collector.h"
#include "python/bindings/parked.h"

namespace oneflow_lite::python {

PyTypeObject* tensor_type = nullptr;

namespace {

// Memory of dead tensors of the plain type, ready for the next: most live for one expression.
constexpr int kMaxFree = 128;
TensorObject* free_objects[kMaxFree];
int num_free = 0;

TensorObject* Allocate(PyTypeObject* type) {
  TensorObject* self;
  if (type == tensor_type && num_free > 0) {
    self = free_objects[--num_free];
    PyObject_Init(reinterpret_cast<PyObject*>(self), type);
  } else if (type == tensor_type) {
    self = PyObject_GC_New(TensorObject, type);
    if (!self) return nullptr;
  } else {
    // tp_alloc zeroes what a subclass adds, and tracks the object too early.
    self = reinterpret_cast<TensorObject*>(type->tp_alloc(type, 0));
    if (!self) return nullptr;
    PyObject_GC_UnTrack(self);
  }
  new (&self->tensor) Tensor();
  self->dict = nullptr;
  self->weakrefs = nullptr;
  return self;
}

PyObject* Attach(TensorObject* self, Tensor&& t) {
  self->tensor = std::move(t);
  self->tensor.impl()->py_object.store(self, std::memory_order_relaxed);
  PyObject_GC_Track(self);
  return reinterpret_cast<PyObject*>(self);
}

// The object that a finalizer gave the tensor while `self` was made for it.
[[gnu::noinline]] PyObject* WrappedMeanwhile(TensorObject* self, const Tensor& t) {
  self->tensor = t.Detach();  // __del__ of a subclass sees it
  Py_DECREF(self);
  return Wrap(t);
}

// A new object of the type for a tensor whose slot is `slot`. Making one may collect garbage, and a
// finalizer may see the tensor and give it another object meanwhile: then that one. `*fresh` says
// which of the two it is.
inline PyObject* NewUnlessWrapped(PyTypeObject* type, const Tensor& t, void* slot, bool* fresh) {
  TensorObject* self = Allocate(type);
  if (!self) return nullptr;
  *fresh = t.impl()->py_object.load(std::memory_order_relaxed) == slot;
  return *fresh ? reinterpret_cast<PyObject*>(self) : WrappedMeanwhile(self, t);
}

PyObject* WrapParked(Tensor&& t, void* slot) {
  const PyRef parked = PyRef::Borrow(reinterpret_cast<PyObject*>(AsParked(slot)));
  bool fresh = false;
  PyObject* object = NewUnlessWrapped(AsParked(slot)->type, t, slot, &fresh);
  if (!fresh) return object;
  auto* self = reinterpret_cast<TensorObject*>(object);
  self->dict = Unpark(slot);
  return Attach(self, std::move(t));
}

// What C++ holds of a tensor whose object goes.
void Leave(TensorObject* self, PyTypeObject* type) {
  TensorImpl* impl = self->tensor.impl();
  // From here on the tensor has no object, so that code run below cannot meet this one.
  impl->py_object.store(nullptr, std::memory_order_relaxed);
  if (impl->use_count() == 1) return;
  const bool has_attributes = self->dict && PyDict_GET_SIZE(self->dict) > 0;
  const bool has_grad = impl->autograd && autograd::Grad(self->tensor).defined();
  if (!has_attributes && !has_grad && type == tensor_type) return;
  Park(self->tensor, type, std::exchange(self->dict, nullptr), has_grad);
}

void Dealloc(PyObject* o) {
  auto* self = reinterpret_cast<TensorObject*>(o);
  PyTypeObject* type = Py_TYPE(o);
  PyObject_GC_UnTrack(o);
  EndCollection();
  if (self->tensor.defined()) Leave(self, type);
  if (self->weakrefs) PyObject_ClearWeakRefs(o);
  Py_CLEAR(self->dict);
  self->tensor.~Tensor();
  if (type == tensor_type && num_free < kMaxFree) {
    free_objects[num_free++] = self;
  } else {
    type->tp_free(o);
  }
  Py_DECREF(type);
}

int Traverse(PyObject* o, visitproc visit, void* arg) {
  auto* self = reinterpret_cast<TensorObject*>(o);
  Py_VISIT(Py_TYPE(o));
  Py_VISIT(self->dict);
  return VisitGraph(o, self->tensor, visit, arg);
}

int Clear(PyObject* o) {
  auto* self = reinterpret_cast<TensorObject*>(o);
  EndCollection();
  Py_CLEAR(self->dict);
  // What was visited hangs on the tensor by its history, its hooks and its gradient.
  std::unique_ptr<AutogradMetaBase> gone;
  TensorImpl* impl = self->tensor.impl();
  if (impl && impl->use_count() == 1) gone = std::move(impl->autograd);
  return 0;
}

PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(TensorObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(TensorObject, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

constexpr char kDoc[] =
    "Tensor(data=None, requires_grad=False, *, dtype=None, device=None)\n--\n\n"
    "A multi-dimensional array on a device, with gradients.\n\n"
    "Made by oneflow_lite.tensor, zeros, rand, from_numpy and others. Tensor(data) shares the\n"
    "memory of a tensor and copies anything else, as float32 where no dtype is given; Tensor(2, "
    "3)\n"
    "is uninitialised memory of that shape. It is there for subclasses.";

}  // namespace

PyObject* Wrap(Tensor t) {
  if (!t.defined()) Py_RETURN_NONE;
  if (void* slot = t.impl()->py_object.load(std::memory_order_relaxed)) {
    if (IsParked(slot)) return WrapParked(std::move(t), slot);
    Py_INCREF(static_cast<PyObject*>(slot));
    return static_cast<PyObject*>(slot);
  }
  return WrapAs(tensor_type, std::move(t));
}

PyObject* WrapAs(PyTypeObject* type, Tensor&& t) {
  bool fresh = false;
  PyObject* object = NewUnlessWrapped(type, t, nullptr, &fresh);
  return fresh ? Attach(reinterpret_cast<TensorObject*>(object), std::move(t)) : object;
}

bool AddTensorType(PyObject* module, PyMethodDef* function_methods) {
  if (!AddParkedType()) return false;
  static auto* methods = new std::vector<PyMethodDef>;
  for (PyMethodDef* list : {tensor_methods, autograd_methods, numpy_methods, dlpack_methods,
                            pickle_methods, function_methods}) {
    for (; list->ml_name; ++list) methods->push_back(*list);
  }
  methods->push_back({nullptr, nullptr, 0, nullptr});
  std::vector<PyType_Slot> slots = {
      {Py_tp_doc, const_cast<char*>(kDoc)},
      {Py_tp_new, Slot(&CallWithKeywords<NewTensor, PyTypeObject>)},
      {Py_tp_dealloc, Slot(&Dealloc)},
      {Py_tp_traverse, Slot(&Traverse)},
      {Py_tp_clear, Slot(&Clear)},
      {Py_tp_hash, Slot(PyBaseObject_Type.tp_hash)},
      {Py_tp_members, members},
      {Py_tp_getset, tensor_getset},
      {Py_tp_methods, methods->data()},
  };
  for (PyType_Slot* list : {number_slots, index_slots}) {
    for (; list->slot; ++list) slots.push_back(*list);
  }
  slots.push_back({0, nullptr});
  PyType_Spec spec = {"oneflow_lite.Tensor", sizeof(TensorObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots.data()};
  tensor_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return tensor_type &&
         PyModule_AddObjectRef(module, "Tensor", reinterpret_cast<PyObject*>(tensor_type)) == 0;
}

}  // namespace oneflow_lite::python
