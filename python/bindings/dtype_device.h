// SPDX-License-Identifier: Apache-2.0
//
// dtype objects (one per dtype, compared by identity) and device objects.
#pragma once

#include "oneflow_lite/core/device.h"
#include "oneflow_lite/core/dtype.h"
#include "oneflow_lite/core/generator.h"
#include "python/bindings/reference.h"

namespace oneflow_lite::python {

// The one object of the dtype; a new reference.
PyObject* WrapDType(DType t);
// True for a dtype object and for the Python types bool, int (int64) and float (float64).
bool AsDType(PyObject* o, DType* out);

// A new reference; null on failure.
PyObject* WrapDevice(Device d);
enum class Match { kYes, kNo, kError };
// A device object, text such as "cuda:1" (kError with a ValueError set where it is no device), or
// the index of a CUDA device.
Match AsDevice(PyObject* o, Device* out);

// A Generator object.
bool AsGenerator(PyObject* o, Ref<Generator>* out);

}  // namespace oneflow_lite::python
