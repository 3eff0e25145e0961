// SPDX-License-Identifier: Apache-2.0
//
// Python objects as the arguments of registered functions, and results as Python objects.
#pragma once

#include "oneflow_lite/framework/function.h"
#include "python/bindings/dtype_device.h"
#include "python/bindings/errors.h"
#include "python/bindings/items.h"
#include "python/bindings/tensor_object.h"

namespace oneflow_lite::python {

// bool, int (beyond 64 bits too) and float, their subclasses and NumPy's.
Match AsScalar(PyObject* o, Scalar* out);
// int and whatever has __index__, but not bool. kError (an exception is set) for an integer that
// does not fit in 64 bits.
Match AsInt(PyObject* o, int64_t* out);

// Reads `o` as argument `arg` of function `name`. False: a TypeError that names both is set, or
// the exception that reading raised.
bool ReadArgument(const char* name, const ArgSchema& arg, PyObject* o, Value* out);
// A bool, or NumPy's, where a function reads its own arguments; null: not given, *out stays. False:
// a TypeError that names both is set.
bool ReadFlag(const char* name, const char* argument, PyObject* o, bool* out);
// The same, or an int, which PyTorch's backward takes for one.
bool ReadSwitch(const char* name, const char* argument, PyObject* o, bool* out);
// The elements of `items` as the dims of `arg`.
bool ReadInts(const char* name, const ArgSchema& arg, const Items& items, Value* out);
// The elements of `items` as the tensors of `arg`.
bool ReadTensors(const char* name, const ArgSchema& arg, const Items& items, Value* out);

// Tensor, tuple of tensors, None, number, ... A new reference; null on failure.
PyObject* WrapValue(Value&& v);
PyObject* WrapTensors(TensorList&& list);
// A tuple of ints.
PyObject* WrapDims(absl::Span<const int64_t> dims);

inline PyObject* WrapResult(StatusOr<Tensor> t) {
  return t.ok() ? Wrap(*std::move(t)) : Raise(t.status());
}

// Whether a call on these arguments is long enough to let other Python threads run meanwhile.
bool IsLargeWork(absl::Span<const Value> args);
// Whether a tensor among the arguments is on a GPU.
bool AnyOnGpu(absl::Span<const Value> args);
inline constexpr int64_t kLargeWork = 16384;  // elements; giving the lock away and back is 0.1 us

}  // namespace oneflow_lite::python
