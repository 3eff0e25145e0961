// SPDX-License-Identifier: Apache-2.0
//
// The methods of Tensor about geometry and values that are no registered functions.
#include "functional/copy.h"
#include "oneflow_lite/core/device_backend.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/global.h"
#include "python/bindings/arguments.h"
#include "python/bindings/read.h"
#include "python/bindings/size.h"

namespace oneflow_lite::python {

StatusOr<Tensor> OnHost(const Tensor& t, absl::string_view function) {
  if (t.device().type == DeviceType::kMeta) {
    return Error(ErrorKind::kRuntime, function, "(): ", Describe(t), " has no data");
  }
  GradGuard no_grad(false);
  OFL_ASSIGN_OR_RETURN(const Tensor whole, Whole(function, t));
  OFL_ASSIGN_OR_RETURN(Tensor host, functional::To(whole.Detach(), Device{}, {}));
  return functional::Contiguous(host);
}

PyObject* ElementAt(DType dtype, const void* p) {
  switch (dtype) {
    case DType::kBool:
      return PyBool_FromLong(*static_cast<const uint8_t*>(p));
    case DType::kFloat16:
      return PyFloat_FromDouble(static_cast<float>(*static_cast<const float16*>(p)));
    case DType::kBFloat16:
      return PyFloat_FromDouble(static_cast<float>(*static_cast<const bfloat16*>(p)));
    case DType::kFloat32:
      return PyFloat_FromDouble(*static_cast<const float*>(p));
    case DType::kFloat64:
      return PyFloat_FromDouble(*static_cast<const double*>(p));
    case DType::kUInt8:
      return PyLong_FromLong(*static_cast<const uint8_t*>(p));
    case DType::kInt8:
      return PyLong_FromLong(*static_cast<const int8_t*>(p));
    case DType::kInt16:
      return PyLong_FromLong(*static_cast<const int16_t*>(p));
    case DType::kInt32:
      return PyLong_FromLong(*static_cast<const int32_t*>(p));
    case DType::kInt64:
      return PyLong_FromLongLong(*static_cast<const int64_t*>(p));
  }
  return nullptr;
}

PyObject* Item(const Tensor& t, absl::string_view function) {
  if (t.numel() != 1) {
    return Raise(ErrorKind::kShape,
                 absl::StrCat(function,
                              "(): only a tensor with one element has a value, but this "
                              "is ",
                              Describe(t)));
  }
  if (GlobalOf(t)) {
    StatusOr<Tensor> whole = Tensor();
    {
      const Tensor counted = t;
      GilRelease unlocked;
      whole = Whole(function, counted);
    }
    return whole.ok() ? Item(*whole, function) : Raise(whole.status());
  }
  if (t.device().type == DeviceType::kCPU) return ElementAt(t.dtype(), t.data());
  if (t.device().type == DeviceType::kMeta) {
    return Raise(ErrorKind::kRuntime, absl::StrCat(function, "(): ", Describe(t), " has no data"));
  }
  alignas(8) char value[8];
  Status s;
  const Ref<Storage> storage = t.storage();  // another thread may give the tensor other data
  const void* data = t.data();
  const DType dtype = t.dtype();
  {
    const Tensor counted = t;
    GilRelease unlocked;
    s = [&]() -> Status {
      OFL_ASSIGN_OR_RETURN(DeviceBackend * backend, GetBackend(t.device()));
      OFL_ASSIGN_OR_RETURN(Stream * stream, CurrentStream(t.device()));
      return backend->CopyToHost(value, data, SizeOf(dtype), *stream);
    }();
  }
  return s.ok() ? ElementAt(dtype, value) : Raise(s);
}

namespace {

PyObject* Numel(PyObject* self, PyObject*) { return PyLong_FromLongLong(Unwrap(self).numel()); }
PyObject* Dim(PyObject* self, PyObject*) { return PyLong_FromLong(Unwrap(self).ndim()); }
PyObject* ElementSize(PyObject* self, PyObject*) {
  return PyLong_FromSize_t(SizeOf(Unwrap(self).dtype()));
}
PyObject* StorageOffset(PyObject* self, PyObject*) {
  return PyLong_FromLongLong(Unwrap(self).offset());
}
PyObject* DataPtr(PyObject* self, PyObject*) {
  const Tensor& t = Unwrap(self);
  if (t.device().type == DeviceType::kMeta) {  // a kernel would be launched on a null pointer
    return Raise(ErrorKind::kRuntime, absl::StrCat("data_ptr(): ", Describe(t), " has no data"));
  }
  if (GlobalOf(t)) {
    return Raise(ErrorKind::kRuntime, absl::StrCat("data_ptr(): ", Describe(t),
                                                   " is global; to_local() has the memory"));
  }
  return PyLong_FromVoidPtr(t.data());
}
PyObject* IsContiguousMethod(PyObject* self, PyObject*) {
  return PyBool_FromLong(Unwrap(self).is_contiguous());
}
PyObject* IsFloatingPoint(PyObject* self, PyObject*) {
  return PyBool_FromLong(IsFloating(Unwrap(self).dtype()));
}

// The argument dim, by place or by name (see OtherNames()); null, with an exception set, where
// there is another one.
PyObject* DimArgument(const char* name, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  const Py_ssize_t named = keywords ? PyTuple_GET_SIZE(keywords) : 0;
  if (n + named > 1) {
    return PyErr_Format(PyExc_TypeError, "%s() takes at most 1 argument (%zd given)", name,
                        n + named);
  }
  if (named == 1) {
    PyObject* key = TupleItem(keywords, 0);
    if (PyUnicode_CompareWithASCIIString(key, "dim") != 0 &&
        PyUnicode_CompareWithASCIIString(key, "axis") != 0) {
      return PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", name,
                          key);
    }
  }
  return n + named == 1 ? args[0] : Py_None;
}

// All of of(tensor), as kWrap gives it, or the entry of the dim that is given.
template <PyObject* (*kWrap)(absl::Span<const int64_t>), class F>
PyObject* WholeOrOne(const char* name, PyObject* self, PyObject* dim, F&& of) {
  if (!dim) return nullptr;
  return Protect([&]() -> PyObject* {
    if (dim == Py_None) return kWrap(of(Unwrap(self)));
    int64_t d;
    const Match m = AsInt(dim, &d);
    if (m == Match::kNo) {
      PyErr_Format(PyExc_TypeError, "%s(): argument 'dim' must be int or None, not %s", name,
                   Py_TYPE(dim)->tp_name);
    }
    if (m == Match::kError && PyErr_ExceptionMatches(PyExc_OverflowError)) {
      PyErr_Format(PyExc_OverflowError, "%s(): argument 'dim' is a number too large for 64 bits",
                   name);
    }
    if (m != Match::kYes) return nullptr;
    const Tensor& t = Unwrap(self);  // not before __index__ of dim, which may give it another shape
    const auto wrapped = WrapDim(name, d, t);
    if (!wrapped.ok()) return Raise(wrapped.status());
    if (t.ndim() == 0) return Raise(DimOutOfRange(name, d, t));
    return PyLong_FromLongLong(of(t)[*wrapped]);
  });
}
PyObject* Size(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  return WholeOrOne<WrapSize>("size", self, DimArgument("size", args, n, keywords),
                              [](const Tensor& t) -> const Dims& { return t.shape().dims(); });
}
PyObject* Stride(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  return WholeOrOne<WrapDims>("stride", self, DimArgument("stride", args, n, keywords),
                              [](const Tensor& t) -> const Dims& { return t.strides(); });
}

PyObject* ItemMethod(PyObject* self, PyObject*) {
  return Protect([&] { return Item(Unwrap(self), "item"); });
}

PyObject* NestedList(const Tensor& t, int dim, const char*& p) {
  if (dim == t.ndim()) {
    PyObject* element = ElementAt(t.dtype(), p);
    p += SizeOf(t.dtype());
    return element;
  }
  const int64_t n = t.shape()[dim];
  PyRef list(PyList_New(n));
  if (!list) return nullptr;
  for (int64_t i = 0; i < n; ++i) {
    PyObject* item = NestedList(t, dim + 1, p);
    if (!item) return nullptr;
    PyList_SET_ITEM(list.get(), i, item);
  }
  return list.Give();
}
PyObject* ToList(PyObject* self, PyObject*) {
  return Protect([&]() -> PyObject* {
    const auto host = OnHost(Unwrap(self), "tolist");
    if (!host.ok()) return Raise(host.status());
    const char* p = static_cast<const char*>(host->data());
    return NestedList(*host, 0, p);
  });
}

}  // namespace

PyMethodDef tensor_methods[] = {
    {"numel", Numel, METH_NOARGS, "numel($self, /)\n--\n\nThe number of elements."},
    {"nelement", Numel, METH_NOARGS, "nelement($self, /)\n--\n\nThe number of elements."},
    {"dim", Dim, METH_NOARGS, "dim($self, /)\n--\n\nThe number of dims."},
    {"ndimension", Dim, METH_NOARGS, "ndimension($self, /)\n--\n\nThe number of dims."},
    {"size", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&Size)),
     METH_FASTCALL | METH_KEYWORDS,
     "size($self, dim=None)\n--\n\nThe shape, or the size of one dim."},
    {"stride", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&Stride)),
     METH_FASTCALL | METH_KEYWORDS,
     "stride($self, dim=None)\n--\n\nElements from one index of a dim to the next."},
    {"element_size", ElementSize, METH_NOARGS,
     "element_size($self, /)\n--\n\nBytes of one element."},
    {"storage_offset", StorageOffset, METH_NOARGS,
     "storage_offset($self, /)\n--\n\nThe place of the first element in the storage."},
    {"data_ptr", DataPtr, METH_NOARGS,
     "data_ptr($self, /)\n--\n\nThe address of the first element; RuntimeError on meta."},
    {"is_contiguous", IsContiguousMethod, METH_NOARGS,
     "is_contiguous($self, /)\n--\n\nWhether the elements lie row by row without gaps."},
    {"is_floating_point", IsFloatingPoint, METH_NOARGS,
     "is_floating_point($self, /)\n--\n\nWhether the dtype is a float."},
    {"item", ItemMethod, METH_NOARGS,
     "item($self, /)\n--\n\nThe only element as a Python number. Waits for the device."},
    {"tolist", ToList, METH_NOARGS,
     "tolist($self, /)\n--\n\nThe elements as nested lists. Waits for the device."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace oneflow_lite::python
