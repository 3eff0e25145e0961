// SPDX-License-Identifier: Apache-2.0
//
// Making tensors of a class: Tensor(...), copies, pickles.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/output_layout.h"
#include "python/bindings/arguments.h"
#include "python/bindings/classes.h"
#include "python/bindings/creation.h"
#include "python/bindings/items.h"
#include "python/bindings/read.h"
#include "python/bindings/size.h"

namespace oneflow_lite::python {
namespace {

// Without its module.
const char* NameOf(PyTypeObject* type) {
  const char* dot = std::strrchr(type->tp_name, '.');
  return dot ? dot + 1 : type->tp_name;
}

// A new object of the class around a tensor that has none.
PyObject* NewObject(PyTypeObject* type, Tensor t, bool requires_grad) {
  if (requires_grad) {
    const Status s = autograd::SetRequiresGrad(t, true);
    if (!s.ok()) return Raise(Renamed(NameOf(type), s));
  }
  return WrapAs(type, std::move(t));
}

PyTypeObject* TensorClass(const char* function, PyObject* o) {
  if (PyType_Check(o) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(o), tensor_type)) {
    return reinterpret_cast<PyTypeObject*>(o);
  }
  PyErr_Format(PyExc_TypeError, "%s(): argument 'cls' must be a subclass of Tensor", function);
  return nullptr;
}

PyObject* MakeSubclass(PyObject*, PyObject* args, PyObject* kwargs) {
  return Protect([&]() -> PyObject* {
    static const char* keywords[] = {"cls", "data", "requires_grad", nullptr};
    PyObject *cls, *data;
    int requires_grad = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO!|p:_make_subclass",
                                     const_cast<char**>(keywords), &cls, tensor_type, &data,
                                     &requires_grad)) {
      return nullptr;
    }
    PyTypeObject* type = TensorClass("_make_subclass", cls);
    return type ? NewObject(type, Unwrap(data).Detach(), requires_grad) : nullptr;
  });
}

bool IsGradLeaf(const Tensor& t) { return autograd::RequiresGrad(t) && autograd::IsLeaf(t); }

// The attributes of `from`, copied by copy.deepcopy where memo is given.
bool CopyAttributes(PyObject* from, PyObject* to, PyObject* memo) {
  PyRef dict(PyObject_GenericGetDict(from, nullptr));
  if (!dict) return false;
  if (PyDict_GET_SIZE(dict.get()) == 0) return true;
  PyRef own(PyObject_GenericGetDict(to, nullptr));
  PyRef copied;
  if (memo) {
    PyRef copy(PyImport_ImportModule("copy"));
    if (!copy) return false;
    copied = PyRef(PyObject_CallMethod(copy.get(), "deepcopy", "OO", dict.get(), memo));
    if (!copied) return false;
  }
  return own && PyDict_Update(own.get(), copied ? copied.get() : dict.get()) == 0;
}

PyObject* Copy(PyObject* self, PyObject*) {
  return Protect([&]() -> PyObject* {
    const Tensor& t = Unwrap(self);
    PyRef result(NewObject(Py_TYPE(self), t.Detach(), IsGradLeaf(t)));
    return result && CopyAttributes(self, result.get(), nullptr) ? result.Give() : nullptr;
  });
}

// All of a storage, as bytes.
Tensor Bytes(const Ref<Storage>& storage) {
  const auto size = static_cast<int64_t>(storage->nbytes());
  return Tensor(MakeRef<TensorImpl>(storage, Shape{size}, Dims{1}, 0, DType::kUInt8));
}

// The copy of a tensor's storage, made once per memo, so that what shares memory goes on sharing
// it. The memo keeps the storage, too: its address is the key. Undefined: an exception is set.
Tensor CopyOfStorage(const Tensor& t, PyObject* memo) {
  const PyRef key(Py_BuildValue("(sN)", "oneflow_lite.storage",
                                PyLong_FromVoidPtr(const_cast<Storage*>(t.storage()->source()))));
  if (!key) return Tensor();
  if (PyDict_Check(memo)) {
    if (const PyRef known = FindKey(memo, key.get())) return Unwrap(TupleItem(known.get(), 1));
    if (PyErr_Occurred()) return Tensor();
  }
  auto copied = functional::Clone(Bytes(t.storage()));
  if (!copied.ok()) return Raise(copied.status()), Tensor();
  const PyRef pair(Py_BuildValue("(NN)", Wrap(Bytes(t.storage())), Wrap(*copied)));
  if (!pair || PyObject_SetItem(memo, key.get(), pair.get()) < 0) return Tensor();
  return *std::move(copied);
}

// A copy of the elements, in memory that is shared as the original's is. Undefined: an exception is
// set.
Tensor CopyOfData(const Tensor& t, PyObject* memo) {
  if (t.impl()->global_spec) {  // its memory is elsewhere
    auto copied = functional::Clone(t.Detach());
    if (!copied.ok()) return Raise(copied.status()), Tensor();
    return *std::move(copied);
  }
  const Tensor bytes = CopyOfStorage(t, memo);
  if (!bytes.defined()) return Tensor();
  return Tensor(
      MakeRef<TensorImpl>(bytes.storage(), t.shape(), t.strides(), t.offset(), t.dtype()));
}

Status CheckLeaf(const Tensor& t) {
  if (autograd::IsLeaf(t)) return OkStatus();
  return Error(ErrorKind::kRuntime,
               "deepcopy(): only a leaf can be copied with its attributes, but ", Describe(t),
               " was made by ", autograd::GradFn(t)->name(), "; copy t.detach()");
}

PyObject* DeepCopy(PyObject* self, PyObject* memo) {
  return Protect([&]() -> PyObject* {
    PyRef key(PyLong_FromVoidPtr(self));
    if (!key) return nullptr;
    if (PyDict_Check(memo)) {
      if (PyRef known = FindKey(memo, key.get())) return known.Give();
      if (PyErr_Occurred()) return nullptr;
    }
    const Tensor& t = Unwrap(self);
    if (const Status s = CheckLeaf(t); !s.ok()) return Raise(s);
    Tensor data = CopyOfData(t, memo);
    if (!data.defined()) return nullptr;
    PyRef result(NewObject(Py_TYPE(self), std::move(data), IsGradLeaf(t)));
    if (!result || PyObject_SetItem(memo, key.get(), result.get()) < 0) return nullptr;
    if (const Tensor grad = autograd::Grad(t); grad.defined()) {
      Tensor copied = CopyOfData(grad, memo);
      if (!copied.defined()) return nullptr;
      const Status s = autograd::SetGrad(Unwrap(result.get()), std::move(copied));
      if (!s.ok()) return Raise(s);
    }
    return CopyAttributes(self, result.get(), memo) ? result.Give() : nullptr;
  });
}

// The dims as they lie in memory, the outermost first; empty where that is their own order.
Dims OrderInMemory(const Tensor& t) {
  const Dims strides = StridesLike(absl::MakeConstSpan(&t, 1), t.shape());
  Dims order(strides.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return strides[a] > strides[b]; });
  return order;
}

bool IsOrder(Dims order, int ndim) {
  std::sort(order.begin(), order.end());
  for (int d = 0; d < static_cast<int>(order.size()); ++d) {
    if (order[d] != d) return false;
  }
  return static_cast<int>(order.size()) == ndim;
}

// Strides without gaps, of dims that lie in this order.
Dims StridesInOrder(const Shape& shape, const Dims& order) {
  Dims strides(order.size(), 1);
  int64_t stride = 1;
  for (auto d = order.rbegin(); d != order.rend(); ++d) {
    strides[*d] = stride;
    stride *= shape[static_cast<int>(*d)];
  }
  return strides;
}

PyObject* Reduce(PyObject* self, PyObject*) {
  return Protect([&]() -> PyObject* {
    const Tensor& t = Unwrap(self);
    const Dims order = OrderInMemory(t);
    const auto dense = order.empty() ? StatusOr<Tensor>(t) : functional::Permute(t.Detach(), order);
    if (!dense.ok()) return Raise(dense.status());
    const auto host = OnHost(*dense, "pickle");
    if (!host.ok()) return Raise(host.status());
    PyRef bytes(PyBytes_FromStringAndSize(static_cast<const char*>(host->data()),
                                          static_cast<Py_ssize_t>(host->nbytes())));
    PyRef dtype(WrapDType(t.dtype())), shape(WrapDims(t.shape()));
    PyRef attributes(PyObject_GenericGetDict(self, nullptr));
    PyRef module(PyImport_ImportModule("oneflow_lite._oneflow_lite"));
    PyRef rebuild(module ? PyObject_GetAttrString(module.get(), "_rebuild_tensor") : nullptr);
    if (!bytes || !dtype || !shape || !attributes || !rebuild) return nullptr;
    const std::string device = t.device().ToString();
    PyObject* const state = PyDict_GET_SIZE(attributes.get()) ? attributes.get() : Py_None;
    const PyRef in_memory(WrapDims(order));
    if (!in_memory) return nullptr;
    return order.empty()
               ? Py_BuildValue("O(OOOOsi)O", rebuild.get(), Py_TYPE(self), bytes.get(), dtype.get(),
                               shape.get(), device.c_str(), IsGradLeaf(t) ? 1 : 0, state)
               : Py_BuildValue("O(OOOOsiO)O", rebuild.get(), Py_TYPE(self), bytes.get(),
                               dtype.get(), shape.get(), device.c_str(), IsGradLeaf(t) ? 1 : 0,
                               in_memory.get(), state);
  });
}

// What a pickle calls: _rebuild_tensor(cls, bytes, dtype, shape, device, requires_grad, order), the
// last for dims that do not lie in memory in their own order.
PyObject* Rebuild(PyObject*, PyObject* args) {
  return Protect([&]() -> PyObject* {
    PyObject *cls, *bytes, *dtype, *shape, *order_given = nullptr;
    const char* device_text;
    int requires_grad;
    if (!PyArg_ParseTuple(args, "OSOO!si|O!:_rebuild_tensor", &cls, &bytes, &dtype, &PyTuple_Type,
                          &shape, &device_text, &requires_grad, &PyTuple_Type, &order_given)) {
      return nullptr;
    }
    PyTypeObject* type = TensorClass("_rebuild_tensor", cls);
    static const ArgSchema shape_arg{.name = "shape", .type = ArgType::kInts};
    static const ArgSchema order_arg{.name = "order", .type = ArgType::kInts};
    Value dims, order(std::in_place_type<Dims>);
    DType t;
    if (!type || !ReadInts("_rebuild_tensor", shape_arg, Items(shape), &dims) ||
        (order_given && !ReadInts("_rebuild_tensor", order_arg, Items(order_given), &order))) {
      return nullptr;
    }
    if (!AsDType(dtype, &t)) return PyErr_Format(PyExc_TypeError, "_rebuild_tensor(): no dtype");
    auto made = [&]() -> StatusOr<Tensor> {
      const Shape shape_given(std::get<Dims>(dims));
      // The bytes are there and the shape is a claim: memory is allocated when they agree.
      const Device meta{DeviceType::kMeta, 0};
      OFL_ASSIGN_OR_RETURN(const Tensor claimed, Tensor::Empty(shape_given, t, meta));
      if (claimed.nbytes() != static_cast<size_t>(PyBytes_GET_SIZE(bytes))) {
        return Error(ErrorKind::kValue, "_rebuild_tensor(): ", PyBytes_GET_SIZE(bytes),
                     " bytes for ", Describe(claimed));
      }
      const char* const begin = PyBytes_AS_STRING(bytes);
      if (t == DType::kBool && std::any_of(begin, begin + PyBytes_GET_SIZE(bytes),
                                           [](char c) { return c != 0 && c != 1; })) {
        return Error(ErrorKind::kValue, "_rebuild_tensor(): bytes other than 0 and 1 for ",
                     Describe(claimed));
      }
      OFL_ASSIGN_OR_RETURN(Tensor host, Tensor::Empty(shape_given, t, Device{}));
      if (host.nbytes() > 0) std::memcpy(host.data(), begin, host.nbytes());
      OFL_ASSIGN_OR_RETURN(const Device device, Device::Parse(device_text));
      OFL_ASSIGN_OR_RETURN(const Tensor there, functional::To(host, device, {}));
      const Dims& dims_order = std::get<Dims>(order);
      if (!order_given) return there;
      if (!IsOrder(dims_order, shape_given.ndim())) {
        return BadValue("_rebuild_tensor", "order", ToString(dims_order), "an order of the dims");
      }
      return there.WithGeometry(shape_given, StridesInOrder(shape_given, dims_order), 0);
    }();
    return made.ok() ? NewObject(type, *std::move(made), requires_grad) : Raise(made.status());
  });
}

// Of Python or NumPy, not a bool.
bool IsInt(PyObject* o) {
  return PyIndex_Check(o) && !PyBool_Check(o) && !IsTensor(o) && !IsArray(o);
}

// Uninitialised, of the sizes in a tuple; without one, of no elements.
Tensor EmptyOf(PyObject* sizes, DType dtype, std::optional<Device> device) {
  Value dims(std::in_place_type<Dims>, 1, 0);
  if (sizes) {
    static const ArgSchema arg{.name = "data", .type = ArgType::kInts};
    if (!ReadInts("Tensor", arg, Items(sizes), &dims)) {
      return Tensor();
    }
  }
  auto made = functional::Empty(std::get<Dims>(dims), dtype, device);
  if (!made.ok()) return Raise(made.status()), Tensor();
  return *std::move(made);
}

}  // namespace

PyObject* NewTensor(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return Protect([&]() -> PyObject* {
    static const char* keywords[] = {"data", "requires_grad", "dtype", "device", nullptr};
    PyObject *data = nullptr, *dtype_given = Py_None, *device_given = Py_None, *given = nullptr;
    bool requires_grad = false;
    const Items positional(args);
    const bool sizes = positional.size() > 0 && IsInt(positional[0].get());
    PyRef one(sizes ? PyTuple_Pack(1, args) : nullptr);  // Tensor(2, 3): the sizes are the data
    if (!PyArg_ParseTupleAndKeywords(sizes ? one.get() : args, kwargs, "|OO$OO:Tensor",
                                     const_cast<char**>(keywords), &data, &given, &dtype_given,
                                     &device_given)) {
      return nullptr;
    }
    if (given && type->tp_init != tensor_type->tp_init) {  // maybe an argument of its __init__
      const int truth = PyObject_IsTrue(given);
      if (truth < 0) return nullptr;
      requires_grad = truth == 1;
    } else if (!ReadFlag(NameOf(type), "requires_grad", given, &requires_grad)) {
      return nullptr;
    }
    std::optional<DType> dtype;
    std::optional<Device> device;
    if (!ReadOptions("Tensor", dtype_given, device_given, &dtype, &device)) return nullptr;
    const bool shares = data && IsTensor(data);
    if (!shares && !dtype) dtype = DType::kFloat32;
    Tensor t;
    if (shares) {
      auto moved = functional::To(Unwrap(data).Detach(), device, dtype);
      if (!moved.ok()) return Raise(moved.status());
      t = *std::move(moved);
    } else if (data && data != Py_None && !sizes && !IsSize(data)) {
      t = TensorFromData(data, dtype, device);
    } else {
      const bool size = data && IsSize(data);  // Tensor(x.size())
      t = EmptyOf(sizes ? args : size ? data : nullptr, *dtype, device);
    }
    return t.defined() ? NewObject(type, std::move(t), requires_grad) : nullptr;
  });
}

PyMethodDef pickle_methods[] = {
    {"_make_subclass", WithKeywords<MakeSubclass>(), METH_VARARGS | METH_KEYWORDS | METH_STATIC,
     "_make_subclass(cls, data, requires_grad=False)\n--\n\n"
     "An object of a subclass that shares the memory of data, without calling __init__."},
    {"__copy__", Copy, METH_NOARGS, "Another tensor over the same memory."},
    {"__deepcopy__", DeepCopy, METH_O,
     "A copy of a leaf, its gradient and attributes; tensors that share memory are copied into "
     "memory that the copies share."},
    {"__reduce_ex__", Reduce, METH_O, "For pickle: the values as bytes."},
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef pickle_functions[] = {
    {"_rebuild_tensor", Rebuild, METH_VARARGS, "What the pickle of a tensor calls."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace oneflow_lite::python
