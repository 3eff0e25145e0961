// SPDX-License-Identifier: Apache-2.0
//
// from_dlpack: tensors over the memory of other libraries.
#include <limits>
#include <optional>

#include "functional/copy.h"
#include "oneflow_lite/core/device_backend.h"
#include "python/bindings/arguments.h"
#include "python/bindings/classes.h"
#include "python/bindings/creation.h"
#include "python/bindings/dlpack.h"

namespace oneflow_lite::python {
namespace {

using dlpack::ManagedTensor;
using dlpack::VersionedTensor;

StatusOr<DType> DTypeFrom(dlpack::DataType d) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const dlpack::DataType own = DlpackTypeOf(static_cast<DType>(i));
    if (own.code == d.code && own.bits == d.bits && d.lanes == 1) return static_cast<DType>(i);
  }
  return Error(ErrorKind::kDType, "from_dlpack(): elements of type code ", int{d.code}, " with ",
               int{d.bits}, " bits and ", d.lanes, " lanes are not supported");
}

StatusOr<Device> DeviceFrom(dlpack::DeviceId d) {
  if (d.type == dlpack::kCPU || d.type == dlpack::kCUDAHost) return Device{};
  if (d.type == dlpack::kCUDA || d.type == dlpack::kCUDAManaged) {
    if (d.id < 0 || d.id > std::numeric_limits<int16_t>::max()) {
      return Error(ErrorKind::kRuntime, "from_dlpack(): there is no CUDA device ", d.id);
    }
    return Device{DeviceType::kCUDA, static_cast<int16_t>(d.id)};
  }
  return Error(ErrorKind::kRuntime, "from_dlpack(): DLPack device type ", d.type,
               " is not supported; supported are CPU and CUDA");
}

// A capsule may come from anywhere: what can be seen to be wrong in its numbers is refused before
// anything is read through them.
constexpr int kMostDims = 64;
Status CheckArray(const dlpack::Array& a) {
  if (a.ndim < 0 || a.ndim > kMostDims) {
    return Error(ErrorKind::kValue, "from_dlpack(): the data has ", a.ndim,
                 " dims; allowed are 0 to ", kMostDims);
  }
  if (a.ndim > 0 && !a.shape) {
    return Error(ErrorKind::kValue, "from_dlpack(): the data has ", a.ndim, " dims but no shape");
  }
  bool empty = false;
  for (int i = 0; i < a.ndim; ++i) {
    if (a.shape[i] < 0) {
      return Error(ErrorKind::kValue, "from_dlpack(): dim ", i, " has size ", a.shape[i]);
    }
    empty = empty || a.shape[i] == 0;
  }
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 16;  // of bytes, in any dtype
  int64_t dense = 1, last = 0;  // elements, and the place of the last one
  for (int i = a.ndim - 1; i >= 0 && !empty; --i) {
    const int64_t stride = a.strides ? a.strides[i] : dense;
    int64_t reach = 0;
    if ((a.shape[i] > 1 && __builtin_mul_overflow(a.shape[i] - 1, stride, &reach)) ||
        __builtin_add_overflow(last, reach < 0 ? 0 : reach, &last) ||
        __builtin_mul_overflow(dense, a.shape[i], &dense) || last > kMost || dense > kMost) {
      return Error(ErrorKind::kValue, "from_dlpack(): the data's shape and strides reach further ",
                   "than memory does (dim ", i, ")");
    }
  }
  if (!a.data && !empty) {
    return Error(ErrorKind::kValue, "from_dlpack(): the data has elements but no address");
  }
  if (a.byte_offset > static_cast<uint64_t>(kMost)) {
    return Error(ErrorKind::kValue, "from_dlpack(): the data begins ", a.byte_offset,
                 " bytes behind its address");
  }
  return OkStatus();
}

// The tensor over managed memory, which is freed with its last view.
template <class M>
StatusOr<Tensor> ImportManaged(M* managed) {
  const dlpack::Array& a = managed->array;
  OFL_RETURN_IF_ERROR(CheckArray(a));
  OFL_ASSIGN_OR_RETURN(const Device device, DeviceFrom(a.device));
  if (device.type != DeviceType::kCPU) OFL_RETURN_IF_ERROR(GetBackend(device).status());
  OFL_ASSIGN_OR_RETURN(const DType dtype, DTypeFrom(a.dtype));
  const Shape shape(absl::MakeConstSpan(a.shape, static_cast<size_t>(a.ndim)));
  Dims strides = ContiguousStrides(shape);
  for (int i = 0; a.strides && i < a.ndim; ++i) {
    if (shape[i] <= 1) continue;
    if (a.strides[i] < 0) {
      return Error(ErrorKind::kValue, "from_dlpack(): dim ", i, " has a negative stride");
    }
    strides[i] = a.strides[i];
  }
  char* data = static_cast<char*>(a.data) + a.byte_offset;
  if (reinterpret_cast<uintptr_t>(data) % SizeOf(dtype) != 0) {
    return Error(ErrorKind::kValue, "from_dlpack(): the memory is not aligned for ", Name(dtype));
  }
  const auto nbytes = static_cast<size_t>(SpannedElements(shape, strides)) * SizeOf(dtype);
  const auto release = [](void* p) {
    auto* m = static_cast<M*>(p);
    if (m->deleter) m->deleter(m);
  };
  Ref<Storage> storage =
      Storage::FromExternal(a.data ? data : nullptr, nbytes, device, release, managed);
  return Tensor(MakeRef<TensorImpl>(std::move(storage), shape, std::move(strides), 0, dtype));
}

// What the caller of from_dlpack() wants.
struct Wanted {
  std::optional<Device> device;
  std::optional<bool> copy;  // absent: where it is needed
};

Status CheckVersion(const ManagedTensor&, const Wanted&) { return OkStatus(); }
Status CheckVersion(const VersionedTensor& m, const Wanted& wanted) {
  if (m.version.major > dlpack::kMajorVersion) {
    return Error(ErrorKind::kRuntime, "from_dlpack(): version ", m.version.major,
                 " of DLPack is newer than the ", dlpack::kMajorVersion, " known here");
  }
  if (m.flags & dlpack::kReadOnlyFlag && wanted.copy != true) {
    return Error(ErrorKind::kValue,
                 "from_dlpack(): the data is read-only, but the tensor would be writable; pass "
                 "copy=True");
  }
  return OkStatus();
}

// The tensor where it is wanted, in memory of its own if that is wanted.
StatusOr<Tensor> AsWanted(const Tensor& t, bool is_copy, const Wanted& wanted) {
  const bool moves = wanted.device && *wanted.device != t.device();
  if (moves && wanted.copy == false) {
    return Error(ErrorKind::kValue, "from_dlpack(): the data is on ", t.device().ToString(),
                 ", and on ", wanted.device->ToString(), " only in a copy, but copy is False");
  }
  if (moves) return functional::To(t, wanted.device, {});
  return wanted.copy == true && !is_copy ? functional::Clone(t) : StatusOr<Tensor>(t);
}

template <class M>
PyObject* ImportCapsule(PyObject* capsule, const Wanted& wanted) {
  auto* managed = static_cast<M*>(PyCapsule_GetPointer(capsule, kCapsuleName<M>));
  if (const Status s = CheckVersion(*managed, wanted); !s.ok()) return Raise(s);
  bool is_copy = false;
  if constexpr (kVersioned<M>) is_copy = managed->flags & dlpack::kCopiedFlag;
  const auto t = ImportManaged(managed);
  if (!t.ok()) return Raise(t.status());
  // The deleter is ours now, the capsule must not call it.
  if (PyCapsule_SetName(capsule, kUsedCapsuleName<M>) < 0 ||
      PyCapsule_SetDestructor(capsule, nullptr) < 0) {
    return nullptr;
  }
  return WrapResult(AsWanted(*t, is_copy, wanted));
}

// Where the producer's data is.
StatusOr<dlpack::DeviceId> DeviceOfProducer(PyObject* producer) {
  PyRef pair(PyObject_CallMethod(producer, "__dlpack_device__", nullptr));
  if (!pair) return TakeRaised();
  // Some producers give the type as an enum.
  PyRef type(PySequence_GetItem(pair.get(), 0));
  PyRef id(type ? PySequence_GetItem(pair.get(), 1) : nullptr);
  int64_t numbers[2];
  const auto read = [](PyObject* o, int64_t* out) {
    if (!o) return false;
    const Match m = AsInt(o, out);
    if (m == Match::kNo) {
      PyErr_Format(PyExc_TypeError, "from_dlpack(): __dlpack_device__() gave %s for an int",
                   Py_TYPE(o)->tp_name);
    }
    return m == Match::kYes;
  };
  if (!read(type.get(), &numbers[0]) || !read(id.get(), &numbers[1])) return TakeRaised();
  return dlpack::DeviceId{static_cast<int32_t>(numbers[0]), static_cast<int32_t>(numbers[1])};
}

// What the producer must order its work before: our current stream on its device. 0: nothing.
StatusOr<int64_t> ConsumerStream(Device device) {
  if (device.type != DeviceType::kCUDA) return 0;
  OFL_ASSIGN_OR_RETURN(Stream * stream, CurrentStream(device));
  const auto native = static_cast<int64_t>(reinterpret_cast<intptr_t>(stream->native()));
  return native ? native : 1;
}

bool Add(PyObject* kwargs, const char* name, PyObject* owned) {
  const PyRef value(owned);
  return value && PyDict_SetItemString(kwargs, name, value.get()) == 0;
}

// __dlpack__ with the version, or as producers before 1.0 want it. `to`: the producer is asked to
// bring the data there, since it is on a device that is none of ours.
PyRef AskForCapsule(PyObject* producer, int64_t stream, const dlpack::DeviceId* to,
                    const Wanted& wanted) {
  PyRef method(PyObject_GetAttrString(producer, "__dlpack__"));
  PyRef empty(PyTuple_New(0)), plain(PyDict_New());
  if (!method || !empty || !plain) return PyRef();
  if (stream && !Add(plain.get(), "stream", PyLong_FromLongLong(stream))) return PyRef();
  PyRef kwargs(PyDict_Copy(plain.get()));
  if (!kwargs || !Add(kwargs.get(), "max_version", Py_BuildValue("(ii)", 1, 0))) return PyRef();
  if (to && !Add(kwargs.get(), "dl_device", Py_BuildValue("(ii)", to->type, to->id))) {
    return PyRef();
  }
  // Else only what we would copy ourselves: a producer knows when its memory cannot be shared.
  if (wanted.copy == true && !Add(kwargs.get(), "copy", PyBool_FromLong(1))) return PyRef();
  PyRef capsule(PyObject_Call(method.get(), empty.get(), kwargs.get()));
  if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError) && !to) {
    PyErr_Clear();
    capsule = PyRef(PyObject_Call(method.get(), empty.get(), plain.get()));
  }
  return capsule;
}

PyRef CapsuleOf(PyObject* producer, const Wanted& wanted) {
  const auto own = DeviceOfProducer(producer);
  if (!own.ok()) return Raise(own.status()), PyRef();
  const auto from = DeviceFrom(*own);
  if (!from.ok() && wanted.device && wanted.copy != false) {
    const dlpack::DeviceId to = DlpackDeviceOf(*wanted.device);
    return AskForCapsule(producer, 0, &to, wanted);
  }
  if (!from.ok()) return Raise(from.status()), PyRef();
  const auto stream = ConsumerStream(*from);
  if (!stream.ok()) return Raise(stream.status()), PyRef();
  return AskForCapsule(producer, *stream, nullptr, wanted);
}

bool ReadWanted(PyObject* device, PyObject* copy, Wanted* wanted) {
  std::optional<DType> no_dtype;
  if (!ReadOptions("from_dlpack", Py_None, device, &no_dtype, &wanted->device)) return false;
  if (copy == Py_None) return true;
  if (!PyBool_Check(copy)) {
    PyErr_Format(PyExc_TypeError, "from_dlpack(): argument 'copy' must be bool or None, not %s",
                 Py_TYPE(copy)->tp_name);
    return false;
  }
  wanted->copy = copy == Py_True;
  return true;
}

PyObject* Import(PyObject* o, const Wanted& wanted) {
  PyRef capsule = PyRef::Borrow(o);
  if (!PyCapsule_CheckExact(o)) {
    if (!HasDlpack(o)) {
      return PyErr_Format(PyExc_TypeError,
                          "from_dlpack(): argument must have __dlpack__ and __dlpack_device__ or "
                          "be a capsule, not %s",
                          Py_TYPE(o)->tp_name);
    }
    capsule = CapsuleOf(o, wanted);
    if (!capsule) return nullptr;
  }
  if (PyCapsule_IsValid(capsule.get(), kCapsuleName<VersionedTensor>)) {
    return ImportCapsule<VersionedTensor>(capsule.get(), wanted);
  }
  if (PyCapsule_IsValid(capsule.get(), kCapsuleName<ManagedTensor>)) {
    return ImportCapsule<ManagedTensor>(capsule.get(), wanted);
  }
  return Raise(ErrorKind::kValue,
               "from_dlpack(): the capsule holds no DLPack tensor, or was used already");
}

PyObject* FromDlpack(PyObject*, PyObject* args, PyObject* kwargs) {
  return Protect([&]() -> PyObject* {
    static const char* keywords[] = {"", "device", "copy", nullptr};
    PyObject *o, *device = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OO:from_dlpack",
                                     const_cast<char**>(keywords), &o, &device, &copy)) {
      return nullptr;
    }
    Wanted wanted;
    return ReadWanted(device, copy, &wanted) ? Import(o, wanted) : nullptr;
  });
}

}  // namespace

bool HasDlpack(PyObject* o) {
  return PyObject_HasAttrString(o, "__dlpack__") && PyObject_HasAttrString(o, "__dlpack_device__");
}

Tensor TensorFromDlpack(PyObject* o) {
  const PyRef t(Import(o, {.device = {}, .copy = true}));
  return t ? Unwrap(t.get()) : Tensor();
}

PyMethodDef dlpack_functions[] = {
    {"from_dlpack", WithKeywords<FromDlpack>(), METH_VARARGS | METH_KEYWORDS,
     "from_dlpack(x, /, *, device=None, copy=None)\n--\n\n"
     "A tensor over the memory of an object with __dlpack__, or of a DLPack capsule.\n\n"
     "With copy=True in memory of its own; with False never, a ValueError where it would have to\n"
     "be. On another device than the data it is a copy."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace oneflow_lite::python
