// SPDX-License-Identifier: Apache-2.0
//
// NumPy: arrays and tensors over the same memory.
#include <pybind11/numpy.h>

#include "functional/copy.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "python/bindings/arguments.h"
#include "python/bindings/creation.h"

namespace oneflow_lite::python {
namespace {

namespace py = pybind11;

constexpr char kArrayDTypes[] =
    "bool, uint8, int8, int16, int32, int64, float16, float32 and float64";

// "f4" and the like; null for bfloat16, which NumPy has not.
const char* ArrayDType(DType t) {
  switch (t) {
    case DType::kBool:
      return "?";
    case DType::kUInt8:
      return "u1";
    case DType::kInt8:
      return "i1";
    case DType::kInt16:
      return "i2";
    case DType::kInt32:
      return "i4";
    case DType::kInt64:
      return "i8";
    case DType::kFloat16:
      return "f2";
    case DType::kBFloat16:
      return nullptr;
    case DType::kFloat32:
      return "f4";
    case DType::kFloat64:
      return "f8";
  }
  return nullptr;
}

std::optional<DType> DTypeOfArray(const py::dtype& d) {
  if (d.byteorder() == '>') return {};
  for (int i = 0; i < kNumDTypes; ++i) {
    const DType t = static_cast<DType>(i);
    const char* code = ArrayDType(t);
    if (!code || d.itemsize() != static_cast<py::ssize_t>(SizeOf(t))) continue;
    if (d.kind() == (t == DType::kBool ? 'b' : code[0])) return t;
  }
  return {};
}

// dtype objects of NumPy, made once: parsing the text costs more than the array.
py::dtype MakeArrayDType(DType t) {
  static PyObject* cached[kNumDTypes];
  PyObject*& slot = cached[static_cast<int>(t)];
  if (!slot) slot = py::dtype(ArrayDType(t)).release().ptr();
  return py::reinterpret_borrow<py::dtype>(slot);
}

Status CheckForNumpy(const Tensor& t, const char* function) {
  if (autograd::RequiresGrad(t)) {
    return Error(ErrorKind::kRuntime, function, "(): ", Describe(t),
                 " requires grad; call .detach().numpy()");
  }
  if (t.device().type == DeviceType::kMeta) {
    return Error(ErrorKind::kRuntime, function, "(): ", Describe(t), " has no data");
  }
  if (t.device().type != DeviceType::kCPU) {
    return Error(ErrorKind::kRuntime, function, "(): ", Describe(t),
                 " is not in host memory; call .cpu().numpy()");
  }
  if (!ArrayDType(t.dtype())) {
    return UnsupportedDType(function, "the tensor", t.dtype(),
                            "one that NumPy has; call .to(oneflow_lite.float32).numpy()");
  }
  return OkStatus();
}

// A global tensor becomes a local one in host memory, with all its elements: a collective.
Status Gather(const char* function, bool force, Tensor* t) {
  if (!GlobalOf(*t)) return OkStatus();
  if (autograd::RequiresGrad(*t) && !force) return CheckForNumpy(*t, function);
  const GilRelease unlocked;
  GradGuard no_grad(false);
  OFL_ASSIGN_OR_RETURN(Tensor whole, Whole(function, *t));
  const bool shard = whole.storage() == GlobalOf(*t)->local.storage();  // others have it, too
  if (shard) {
    OFL_ASSIGN_OR_RETURN(whole, functional::Clone(whole));
  }
  OFL_ASSIGN_OR_RETURN(*t, functional::To(whole, Device{}, {}));
  return OkStatus();
}

// The array holds the storage and not the tensor: x.data = y gives the tensor another one.
py::array MakeArray(const Tensor& t) {
  auto* storage = new Ref<Storage>(t.storage());
  py::capsule owner(storage, [](void* p) { delete static_cast<Ref<Storage>*>(p); });
  const auto itemsize = static_cast<py::ssize_t>(SizeOf(t.dtype()));
  std::vector<py::ssize_t> shape(t.shape().begin(), t.shape().end());
  std::vector<py::ssize_t> strides;
  for (int64_t s : t.strides()) strides.push_back(s * itemsize);
  return py::array(MakeArrayDType(t.dtype()), std::move(shape), std::move(strides), t.data(),
                   owner);
}

PyObject* NumpyMethod(PyObject* self, PyObject* args, PyObject* kwargs) {
  return Protect([&]() -> PyObject* {
    static const char* keywords[] = {"force", nullptr};
    PyObject* given = nullptr;
    bool force = false;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:numpy", const_cast<char**>(keywords),
                                     &given) ||
        !ReadFlag("numpy", "force", given, &force)) {
      return nullptr;
    }
    Tensor t = Unwrap(self);
    if (const Status s = Gather("numpy", force, &t); !s.ok()) return Raise(s);
    if (force && t.device().type != DeviceType::kMeta) {
      auto host = functional::To(t.Detach(), Device{}, {});
      if (!host.ok()) return Raise(host.status());
      t = *std::move(host);
    }
    if (const Status s = CheckForNumpy(t, "numpy"); !s.ok()) return Raise(s);
    return MakeArray(t).release().ptr();
  });
}

PyObject* ArrayMethod(PyObject* self, PyObject* args, PyObject* kwargs) {
  return Protect([&]() -> PyObject* {
    static const char* keywords[] = {"dtype", "copy", nullptr};
    PyObject *dtype = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:__array__", const_cast<char**>(keywords),
                                     &dtype, &copy)) {
      return nullptr;
    }
    Tensor t = Unwrap(self);
    if (const Status s = Gather("__array__", false, &t); !s.ok()) return Raise(s);
    if (const Status s = CheckForNumpy(t, "__array__"); !s.ok()) return Raise(s);
    py::array array = MakeArray(t);
    const py::object given = py::reinterpret_borrow<py::object>(dtype);
    const bool same = given.is_none() || array.dtype().equal(py::dtype::from_args(given));
    if (copy == Py_False && !same) {
      PyErr_SetString(PyExc_ValueError, "__array__(): another dtype needs a copy");
      return nullptr;
    }
    if (same && copy != Py_True) return array.release().ptr();
    const py::object wanted = same ? py::object(array.dtype()) : given;
    return array.attr("astype")(wanted).release().ptr();
  });
}

Status CheckArray(const char* function, const py::array& a) {
  if (!DTypeOfArray(a.dtype())) {
    const std::string name = py::str(a.dtype().attr("str"));
    return Error(ErrorKind::kDType, function, "(): arrays of dtype ", name,
                 " are not supported; supported are ", kArrayDTypes, " in native byte order");
  }
  if (!a.writeable()) {
    return Error(ErrorKind::kValue, function,
                 "(): the array is not writable, but the tensor would be; pass array.copy()");
  }
  const auto itemsize = static_cast<py::ssize_t>(a.itemsize());
  for (py::ssize_t i = 0; i < a.ndim(); ++i) {
    if (a.shape(i) <= 1) continue;
    if (a.strides(i) < 0 || a.strides(i) % itemsize != 0) {
      return Error(ErrorKind::kValue, function, "(): dim ", i, " of the array has a stride of ",
                   a.strides(i), " bytes, but strides must be multiples of ", itemsize,
                   " and not negative; pass array.copy()");
    }
  }
  if (reinterpret_cast<uintptr_t>(a.data()) % itemsize != 0) {
    return Error(ErrorKind::kValue, function, "(): the array is not aligned; pass array.copy()");
  }
  return OkStatus();
}

PyObject* FromNumpy(PyObject*, PyObject* array) {
  return Protect([&]() -> PyObject* {
    Tensor t = TensorFromNumpy("from_numpy", array);
    return t.defined() ? Wrap(std::move(t)) : nullptr;
  });
}

}  // namespace

bool IsArray(PyObject* o) { return py::isinstance<py::array>(o); }

std::optional<DType> DTypeOfNumpy(PyObject* o) {
  static PyObject* number;  // no initialiser: an import may give the lock away
  if (!number) number = py::object(py::module_::import("numpy").attr("generic")).release().ptr();
  if (!IsArray(o) && !PyType_IsSubtype(Py_TYPE(o), reinterpret_cast<PyTypeObject*>(number))) {
    return {};
  }
  return DTypeOfArray(py::reinterpret_borrow<py::object>(o).attr("dtype"));
}

Tensor TensorFromNumpy(const char* function, PyObject* o) {
  if (!IsArray(o)) {
    PyErr_Format(PyExc_TypeError, "%s(): argument 'array' must be numpy.ndarray, not %s", function,
                 Py_TYPE(o)->tp_name);
    return Tensor();
  }
  const auto array = py::reinterpret_borrow<py::array>(o);
  if (const Status s = CheckArray(function, array); !s.ok()) {
    Raise(s);
    return Tensor();
  }
  const DType dtype = *DTypeOfArray(array.dtype());
  const auto itemsize = static_cast<int64_t>(SizeOf(dtype));
  Dims shape, strides;
  for (py::ssize_t i = 0; i < array.ndim(); ++i) {
    shape.push_back(array.shape(i));
    strides.push_back(array.strides(i) / itemsize);
  }
  // A dim that is not stepped along may have any stride in NumPy; ours must be within the memory.
  const Dims dense = ContiguousStrides(shape);
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] <= 1 || array.size() == 0) strides[i] = dense[i];
  }
  const int64_t nbytes = SpannedElements(shape, strides) * itemsize;
  Py_INCREF(o);
  Ref<Storage> storage = Storage::FromExternal(
      const_cast<void*>(array.data()), static_cast<size_t>(nbytes), Device{},
      [](void* p) { ReleaseLater(static_cast<PyObject*>(p)); }, o);
  return Tensor(MakeRef<TensorImpl>(std::move(storage), Shape(shape), strides, 0, dtype));
}

Tensor TensorOfArray(const char* function, PyObject* o) {
  const auto array = py::reinterpret_borrow<py::array>(o);
  if (CheckArray(function, array).ok()) return TensorFromNumpy(function, o);
  return TensorFromData(o, {}, {});
}

Status CheckBesideArray(const char* function, const Tensor& t) {
  if (autograd::RequiresGrad(t)) {
    return Error(
        ErrorKind::kRuntime, function, "(): ", Describe(t),
        " requires grad, which arrays cannot keep; call .detach(), or make a tensor of the "
        "array with from_numpy()");
  }
  if (t.device().type != DeviceType::kCPU) {
    return Error(ErrorKind::kRuntime, function, "(): ", Describe(t),
                 " is not in host memory, where arrays are; call .cpu(), or make a tensor of the "
                 "array with from_numpy() and to()");
  }
  return OkStatus();
}

namespace {

// check_beside_array(name, tensor), for __array_ufunc__.
PyObject* CheckBeside(PyObject*, PyObject* args) {
  return Protect([&]() -> PyObject* {
    const char* name;
    PyObject* tensor;
    if (!PyArg_ParseTuple(args, "sO:check_beside_array", &name, &tensor)) return nullptr;
    if (!IsTensor(tensor)) {
      return PyErr_Format(PyExc_TypeError, "check_beside_array(): %s is no Tensor",
                          Py_TYPE(tensor)->tp_name);
    }
    const Status s = CheckBesideArray(name, Unwrap(tensor));
    if (!s.ok()) return Raise(s);
    Py_RETURN_NONE;
  });
}

}  // namespace

PyMethodDef numpy_methods[] = {
    {"numpy", WithKeywords<NumpyMethod>(), METH_VARARGS | METH_KEYWORDS,
     "numpy($self, force=False)\n--\n\n"
     "An array over the same memory. RuntimeError where the tensor requires grad or is on another\n"
     "device; with force=True it is detached and copied to the host first."},
    {"__array__", WithKeywords<ArrayMethod>(), METH_VARARGS | METH_KEYWORDS,
     "__array__($self, dtype=None, copy=None)\n--\n\nFor numpy.asarray."},
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef numpy_functions[] = {
    {"check_beside_array", CheckBeside, METH_VARARGS,
     "check_beside_array(name, tensor, /)\n--\n\n"
     "RuntimeError for a tensor that cannot stand beside an array: on a GPU, requires grad."},
    {"from_numpy", FromNumpy, METH_O,
     "from_numpy(array, /)\n--\n\nA tensor over the memory of an array, which it keeps alive."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace oneflow_lite::python
