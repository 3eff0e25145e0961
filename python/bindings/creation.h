// SPDX-License-Identifier: Apache-2.0
//
// Tensors from Python data.
#pragma once

#include <optional>

#include "oneflow_lite/core/tensor.h"
#include "python/bindings/reference.h"

namespace oneflow_lite::python {

// A tensor of its own from a number, nested sequences, a NumPy array or a tensor. Without a dtype:
// that of the array (also of a number of NumPy's) or tensor, else bool, int64 or float32 by the
// elements. Undefined: an exception is set, a ValueError that names the place for ragged sequences.
Tensor TensorFromData(PyObject* data, std::optional<DType> dtype, std::optional<Device> device);
// Reads what `name` was given as dtype and device; None is absent. False: an exception is set.
bool ReadOptions(const char* name, PyObject* dtype, PyObject* device,
                 std::optional<DType>* dtype_out, std::optional<Device>* device_out);

// Shares the array's memory and keeps it alive. TypeError where `array` is none or has an
// unsupported dtype, ValueError where it cannot be written or has negative strides. Undefined: an
// exception is set.
Tensor TensorFromNumpy(const char* function, PyObject* array);
// The same where it can be shared, else of a copy: arrays that are read-only or turned round.
Tensor TensorOfArray(const char* function, PyObject* array);
// RuntimeError for a tensor that cannot stand beside an array: not in host memory, requires grad.
Status CheckBesideArray(const char* function, const Tensor& t);
// Whether o has what from_dlpack() takes; a copy of it (undefined: an exception is set).
bool HasDlpack(PyObject* o);
Tensor TensorFromDlpack(PyObject* o);
// The dtype of an array or a number of NumPy's; absent for anything else, and where no tensor has
// it.
std::optional<DType> DTypeOfNumpy(PyObject* o);
// Whether o is an array, without importing NumPy for it.
bool IsArray(PyObject* o);

}  // namespace oneflow_lite::python
