// SPDX-License-Identifier: Apache-2.0
//
// __dlpack__: other libraries over the memory of tensors.
#include "python/bindings/dlpack.h"

#include <memory>

#include "functional/copy.h"
#include "oneflow_lite/core/device_backend.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "python/bindings/arguments.h"
#include "python/bindings/classes.h"

namespace oneflow_lite::python {

dlpack::DataType DlpackTypeOf(DType t) {
  const uint8_t code = t == DType::kBool       ? dlpack::kBool
                       : t == DType::kUInt8    ? dlpack::kUInt
                       : t == DType::kBFloat16 ? dlpack::kBFloat
                       : IsFloating(t)         ? dlpack::kFloat
                                               : dlpack::kInt;
  return {code, static_cast<uint8_t>(8 * SizeOf(t)), 1};
}

dlpack::DeviceId DlpackDeviceOf(Device d) {
  return {d.type == DeviceType::kCUDA ? dlpack::kCUDA : dlpack::kCPU, d.index};
}

namespace {

using dlpack::ManagedTensor;
using dlpack::VersionedTensor;

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
  if (!PyCapsule_IsValid(capsule, kCapsuleName<M>)) return;
  auto* managed = static_cast<M*>(PyCapsule_GetPointer(capsule, kCapsuleName<M>));
  if (managed->deleter) managed->deleter(managed);
}

template <class M>
PyObject* MakeCapsule(const Tensor& t, uint64_t flags) {
  auto e = std::make_unique<Export<M>>();
  e->shape = t.shape().dims();
  e->strides = t.strides();
  e->storage = t.storage();
  e->managed.array = {
      t.data(),        DlpackDeviceOf(t.device()), t.ndim(), DlpackTypeOf(t.dtype()),
      e->shape.data(), e->strides.data(),          0};
  e->managed.context = e.get();
  e->managed.deleter = &DeleteExport<M>;
  if constexpr (kVersioned<M>) {
    e->managed.version = {dlpack::kMajorVersion, 0};
    e->managed.flags = flags;
  }
  PyObject* capsule = PyCapsule_New(&e->managed, kCapsuleName<M>, &DestroyCapsule<M>);
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
  if (t.impl()->global_spec) {
    return Error(ErrorKind::kRuntime, "__dlpack__(): ", Describe(t),
                 " is global; export x.to_local()");
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
    const dlpack::DeviceId own = DlpackDeviceOf(t.device());
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
    if (asked_version.first >= 1)
      return MakeCapsule<VersionedTensor>(t, copy == Py_True ? dlpack::kCopiedFlag : 0);
    return MakeCapsule<ManagedTensor>(t, 0);
  });
}

PyObject* DlpackDevice(PyObject* self, PyObject*) {
  const dlpack::DeviceId d = DlpackDeviceOf(Unwrap(self).device());
  return Py_BuildValue("(ii)", d.type, d.id);
}

}  // namespace

PyMethodDef dlpack_methods[] = {
    {"__dlpack__", WithKeywords<DlpackMethod>(), METH_VARARGS | METH_KEYWORDS,
     "__dlpack__($self, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
     "A DLPack capsule over the same memory; see the Python array API."},
    {"__dlpack_device__", DlpackDevice, METH_NOARGS,
     "__dlpack_device__($self, /)\n--\n\nDevice type and index as DLPack numbers them."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace oneflow_lite::python
