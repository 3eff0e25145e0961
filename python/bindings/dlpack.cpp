// SPDX-License-Identifier: Apache-2.0
//
// __dlpack__ and from_dlpack: tensors over the memory of other libraries, and the other way round.
#include "python/bindings/dlpack.h"

#include <memory>
#include <optional>

#include "functional/copy.h"
#include "oneflow_lite/core/device_backend.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "python/bindings/arguments.h"
#include "python/bindings/classes.h"

namespace oneflow_lite::python {
namespace {

using dlpack::ManagedTensor;
using dlpack::VersionedTensor;

template <class M>
constexpr bool kVersioned = std::is_same_v<M, VersionedTensor>;
template <class M>
constexpr const char* kName = kVersioned<M> ? "dltensor_versioned" : "dltensor";
template <class M>
constexpr const char* kUsedName = kVersioned<M> ? "used_dltensor_versioned" : "used_dltensor";

dlpack::DataType TypeOf(DType t) {
  const uint8_t code = t == DType::kBool       ? dlpack::kBool
                       : t == DType::kUInt8    ? dlpack::kUInt
                       : t == DType::kBFloat16 ? dlpack::kBFloat
                       : IsFloating(t)         ? dlpack::kFloat
                                               : dlpack::kInt;
  return {code, static_cast<uint8_t>(8 * SizeOf(t)), 1};
}

StatusOr<DType> DTypeFrom(dlpack::DataType d) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const dlpack::DataType own = TypeOf(static_cast<DType>(i));
    if (own.code == d.code && own.bits == d.bits && d.lanes == 1) return static_cast<DType>(i);
  }
  return Error(ErrorKind::kDType, "from_dlpack(): elements of type code ", int{d.code}, " with ",
               int{d.bits}, " bits and ", d.lanes, " lanes are not supported");
}

dlpack::DeviceId DeviceOf(Device d) {
  return {d.type == DeviceType::kCUDA ? dlpack::kCUDA : dlpack::kCPU, d.index};
}

// A tensor on its way out: the structure, what it points to, and the storage it keeps.
template <class M>
struct Export {
  M managed;
  Dims shape, strides;
  Ref<Storage> storage;
};

template <class M>
void DeleteExport(M* managed) {
  delete static_cast<Export<M>*>(managed->context);
}

// A capsule that no consumer took still owns its tensor.
template <class M>
void DestroyCapsule(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, kName<M>)) return;
  auto* managed = static_cast<M*>(PyCapsule_GetPointer(capsule, kName<M>));
  if (managed->deleter) managed->deleter(managed);
}

template <class M>
PyObject* MakeCapsule(const Tensor& t, uint64_t flags) {
  auto e = std::make_unique<Export<M>>();
  e->shape = t.shape().dims();
  e->strides = t.strides();
  e->storage = t.storage();
  e->managed.array = {t.data(),        DeviceOf(t.device()), t.ndim(), TypeOf(t.dtype()),
                      e->shape.data(), e->strides.data(),    0};
  e->managed.context = e.get();
  e->managed.deleter = &DeleteExport<M>;
  if constexpr (kVersioned<M>) {
    e->managed.version = {dlpack::kMajorVersion, 0};
    e->managed.flags = flags;
  }
  PyObject* capsule = PyCapsule_New(&e->managed, kName<M>, &DestroyCapsule<M>);
  if (capsule) e.release();
  return capsule;
}

// A consumer's stream as __dlpack__ gets it; none for None.
using StreamNumber = std::optional<int64_t>;
bool ReadStream(PyObject* o, StreamNumber* out) {
  if (o == Py_None) return true;
  const Match m = AsInt(o, &out->emplace());
  if (m == Match::kNo) {
    PyErr_Format(PyExc_TypeError, "__dlpack__(): argument 'stream' must be int or None, not %s",
                 Py_TYPE(o)->tp_name);
  }
  return m == Match::kYes;
}

// Two ints; untouched for None. False: an exception is set.
bool ReadPair(const char* argument, PyObject* o, std::pair<int, int>* out) {
  if (o == Py_None) return true;
  if (PyTuple_Check(o)) return PyArg_ParseTuple(o, "ii", &out->first, &out->second);
  PyErr_Format(PyExc_TypeError, "__dlpack__(): argument '%s' must be a tuple, not %s", argument,
               Py_TYPE(o)->tp_name);
  return false;
}

// Makes the consumer's stream wait for the work that writes the tensor. The numbers are the
// protocol's: None and 1 the legacy default stream, 2 the per-thread one, -1 nothing to do.
Status OrderBefore(const Tensor& t, StreamNumber stream) {
  if (t.device().type != DeviceType::kCUDA) {
    if (!stream) return OkStatus();
    return Error(ErrorKind::kValue, "__dlpack__(): stream must be None for ", Describe(t));
  }
  const int64_t handle = stream.value_or(1);
  if (handle == -1) return OkStatus();
  if (handle == 0 || handle < -1) {
    return Error(ErrorKind::kValue, "__dlpack__(): stream ", handle,
                 " is ambiguous or unknown; 1 is the legacy default stream, 2 the per-thread one");
  }
  OFL_ASSIGN_OR_RETURN(DeviceBackend * backend, GetBackend(t.device()));
  OFL_ASSIGN_OR_RETURN(Stream * current, CurrentStream(t.device()));
  const auto native = [](int64_t h) { return reinterpret_cast<void*>(static_cast<intptr_t>(h)); };
  if (current->native() == native(handle) || (handle == 1 && !current->native())) {
    return OkStatus();
  }
  OFL_ASSIGN_OR_RETURN(Ref<Stream> consumer,
                       backend->ExternalStream(t.device().index, native(handle)));
  OFL_ASSIGN_OR_RETURN(Ref<Event> event, backend->NewEvent(t.device().index, false));
  OFL_RETURN_IF_ERROR(event->Record(*current));
  return event->Wait(*consumer);
}

Status CheckExport(const Tensor& t) {
  if (autograd::RequiresGrad(t)) {
    return Error(ErrorKind::kRuntime, "__dlpack__(): ", Describe(t),
                 " requires grad; export x.detach()");
  }
  if (t.device().type == DeviceType::kMeta) {
    return Error(ErrorKind::kRuntime, "__dlpack__(): ", Describe(t), " has no data");
  }
  return OkStatus();
}

PyObject* DlpackMethod(PyObject* self, PyObject* args, PyObject* kwargs) {
  return Protect([&]() -> PyObject* {
    static const char* keywords[] = {"stream", "max_version", "dl_device", "copy", nullptr};
    PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__",
                                     const_cast<char**>(keywords), &stream, &version, &device,
                                     &copy)) {
      return nullptr;
    }
    // Numbers first: reading them may run Python code, which may change the tensor.
    std::pair<int, int> asked_version, asked_device;
    StreamNumber asked_stream;
    if (!ReadPair("max_version", version, &asked_version) ||
        !ReadPair("dl_device", device, &asked_device) || !ReadStream(stream, &asked_stream)) {
      return nullptr;
    }
    Tensor t = Unwrap(self);
    if (const Status s = CheckExport(t); !s.ok()) {
      PyErr_SetString(PyExc_BufferError, std::string(s.message()).c_str());
      return nullptr;
    }
    const dlpack::DeviceId own = DeviceOf(t.device());
    if (device != Py_None && asked_device != std::pair<int, int>(own.type, own.id)) {
      PyErr_SetString(PyExc_BufferError,
                      "__dlpack__(): the tensor is on another device than "
                      "dl_device; move it with to()");
      return nullptr;
    }
    if (copy == Py_True) {
      auto cloned = functional::Clone(t);
      if (!cloned.ok()) return Raise(cloned.status());
      t = *std::move(cloned);
    }
    if (const Status s = OrderBefore(t, asked_stream); !s.ok()) return Raise(s);
    if (asked_version.first >= 1) return MakeCapsule<VersionedTensor>(t, copy == Py_True ? 2 : 0);
    return MakeCapsule<ManagedTensor>(t, 0);
  });
}

PyObject* DlpackDevice(PyObject* self, PyObject*) {
  const dlpack::DeviceId d = DeviceOf(Unwrap(self).device());
  return Py_BuildValue("(ii)", d.type, d.id);
}

StatusOr<Device> DeviceFrom(dlpack::DeviceId d) {
  if (d.type == dlpack::kCPU || d.type == dlpack::kCUDAHost) return Device{};
  if (d.type == dlpack::kCUDA || d.type == dlpack::kCUDAManaged) {
    return Device{DeviceType::kCUDA, static_cast<int16_t>(d.id)};
  }
  return Error(ErrorKind::kRuntime, "from_dlpack(): DLPack device type ", d.type,
               " is not supported; supported are CPU and CUDA");
}

// The tensor over managed memory, which is freed with its last view.
template <class M>
StatusOr<Tensor> ImportManaged(M* managed) {
  const dlpack::Array& a = managed->array;
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

Status CheckVersion(const ManagedTensor&) { return OkStatus(); }
Status CheckVersion(const VersionedTensor& m) {
  if (m.version.major > dlpack::kMajorVersion) {
    return Error(ErrorKind::kRuntime, "from_dlpack(): version ", m.version.major,
                 " of DLPack is newer than the ", dlpack::kMajorVersion, " known here");
  }
  if (m.flags & dlpack::kReadOnlyFlag) {
    return Error(ErrorKind::kValue,
                 "from_dlpack(): the data is read-only, but the tensor would be writable; pass a "
                 "copy");
  }
  return OkStatus();
}

template <class M>
PyObject* ImportCapsule(PyObject* capsule) {
  auto* managed = static_cast<M*>(PyCapsule_GetPointer(capsule, kName<M>));
  if (const Status s = CheckVersion(*managed); !s.ok()) return Raise(s);
  auto t = ImportManaged(managed);
  if (!t.ok()) return Raise(t.status());
  // The deleter is ours now, the capsule must not call it.
  if (PyCapsule_SetName(capsule, kUsedName<M>) < 0 ||
      PyCapsule_SetDestructor(capsule, nullptr) < 0) {
    return nullptr;
  }
  return Wrap(*std::move(t));
}

// What the producer must order its work before: our current stream on its device.
StatusOr<int64_t> ConsumerStream(PyObject* producer) {
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
  const dlpack::DeviceId d{static_cast<int32_t>(numbers[0]), static_cast<int32_t>(numbers[1])};
  OFL_ASSIGN_OR_RETURN(const Device device, DeviceFrom(d));
  if (device.type != DeviceType::kCUDA) return 0;
  OFL_ASSIGN_OR_RETURN(Stream * stream, CurrentStream(device));
  const auto native = static_cast<int64_t>(reinterpret_cast<intptr_t>(stream->native()));
  return native ? native : 1;
}

// __dlpack__ with the version, or as producers before 1.0 want it.
PyRef AskForCapsule(PyObject* producer, int64_t stream) {
  PyRef method(PyObject_GetAttrString(producer, "__dlpack__"));
  PyRef empty(PyTuple_New(0));
  if (!method || !empty) return PyRef();
  PyRef kwargs(stream ? Py_BuildValue("{s:L,s:(ii)}", "stream", static_cast<long long>(stream),
                                      "max_version", 1, 0)
                      : Py_BuildValue("{s:(ii)}", "max_version", 1, 0));
  if (!kwargs) return PyRef();
  PyRef capsule(PyObject_Call(method.get(), empty.get(), kwargs.get()));
  if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {
    PyErr_Clear();
    if (PyDict_DelItemString(kwargs.get(), "max_version") < 0) return PyRef();
    capsule = PyRef(PyObject_Call(method.get(), empty.get(), kwargs.get()));
  }
  return capsule;
}

PyObject* FromDlpack(PyObject*, PyObject* o) {
  return Protect([&]() -> PyObject* {
    PyRef capsule = PyRef::Borrow(o);
    if (!PyCapsule_CheckExact(o)) {
      if (!PyObject_HasAttrString(o, "__dlpack__") ||
          !PyObject_HasAttrString(o, "__dlpack_device__")) {
        return PyErr_Format(PyExc_TypeError,
                            "from_dlpack(): argument must have __dlpack__ and __dlpack_device__ or "
                            "be a capsule, not %s",
                            Py_TYPE(o)->tp_name);
      }
      const auto stream = ConsumerStream(o);
      if (!stream.ok()) return Raise(stream.status());
      capsule = AskForCapsule(o, *stream);
      if (!capsule) return nullptr;
    }
    if (PyCapsule_IsValid(capsule.get(), kName<VersionedTensor>)) {
      return ImportCapsule<VersionedTensor>(capsule.get());
    }
    if (PyCapsule_IsValid(capsule.get(), kName<ManagedTensor>)) {
      return ImportCapsule<ManagedTensor>(capsule.get());
    }
    return Raise(ErrorKind::kValue,
                 "from_dlpack(): the capsule holds no DLPack tensor, or was used already");
  });
}

}  // namespace

PyMethodDef dlpack_methods[] = {
    {"__dlpack__", WithKeywords<DlpackMethod>(), METH_VARARGS | METH_KEYWORDS,
     "__dlpack__($self, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
     "A DLPack capsule over the same memory; see the Python array API."},
    {"__dlpack_device__", DlpackDevice, METH_NOARGS,
     "__dlpack_device__($self, /)\n--\n\nDevice type and index as DLPack numbers them."},
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef dlpack_functions[] = {
    {"from_dlpack", FromDlpack, METH_O,
     "from_dlpack(x, /)\n--\n\n"
     "A tensor over the memory of an object with __dlpack__, or of a DLPack capsule."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace oneflow_lite::python
