// SPDX-License-Identifier: Apache-2.0
//
// What stays of a tensor's Python object that has gone while C++ holds the tensor: its class and
// attributes, which are put on again when Python sees the tensor next. It is an object of its own,
// which the tensor owns by its `py_object`, so that the garbage collector sees cycles of tensors
// whose .grad are each other.
//
//   Park(t, Py_TYPE(self), std::exchange(self->dict, nullptr), has_grad);
//   if (IsParked(slot)) type = AsParked(slot)->type;  // slot: the tensor's py_object
//   self->dict = Unpark(slot);
#pragma once

#include <cstdint>

#include "oneflow_lite/core/tensor.h"
#include "python/bindings/reference.h"

namespace oneflow_lite::python {

struct ParkedObject {
  PyObject_HEAD;
  TensorImpl* tensor;  // not counted; null when it has gone or has an object again
  PyTypeObject* type;
  PyObject* dict;  // null where there is none
  bool has_grad;   // the tensor had a .grad when its object went

  // For the collector (collector.cpp): the count that has reported this object, and what the
  // tensor's .grad led to in the count `counted`.
  uint64_t reported, counted;
  ParkedObject* grad;
};

// A pointer to it in py_object is tagged.
inline constexpr uintptr_t kParkedTag = 1;
inline bool IsParked(void* slot) { return reinterpret_cast<uintptr_t>(slot) & kParkedTag; }
inline ParkedObject* AsParked(void* slot) {
  return reinterpret_cast<ParkedObject*>(reinterpret_cast<uintptr_t>(slot) & ~kParkedTag);
}

// Leaves an object in the tensor's empty slot. Takes over `dict`. Making it may collect garbage; if
// a finalizer gives the tensor an object meanwhile, that one stays without the attributes.
void Park(const Tensor& t, PyTypeObject* type, PyObject* dict, bool has_grad);
// Gives the attributes; the slot is then the caller's to fill.
PyObject* Unpark(void* slot);

// What is parked for the tensor's .grad, if nothing else holds that tensor; else null. Safe while
// other threads use or free the tensor.
ParkedObject* ParkedGradOf(ParkedObject* p);

// Creates the type. False: an exception is set.
bool AddParkedType();

}  // namespace oneflow_lite::python
