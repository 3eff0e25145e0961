// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/errors.h"

#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "oneflow_lite/core/linalg_error.h"
#include "python/bindings/items.h"

namespace oneflow_lite::python {
namespace {

constexpr char kExceptionUrl[] = "oneflow_lite/python_exception";
// A status that is dropped leaves its exception behind; the oldest of so many makes room.
constexpr size_t kMaxKept = 64;

PyObject* dtype_error;
PyObject* shape_error;
PyObject* out_of_memory_error;
PyObject* linalg_error;

// Exceptions on their way through C++, by the number in the status' payload.
struct Kept {
  std::mutex mutex;
  uint64_t next = 0;
  std::map<uint64_t, PyObject*> exceptions;
};
Kept& GetKept() {
  static auto* kept = new Kept;
  return *kept;
}

PyObject* TypeOf(ErrorKind kind) {
  if (kind == kLinAlgError) return linalg_error;
  switch (kind) {
    case ErrorKind::kIndex:
      return PyExc_IndexError;
    case ErrorKind::kDType:
      return dtype_error;
    case ErrorKind::kType:
      return PyExc_TypeError;
    case ErrorKind::kShape:
      return shape_error;
    case ErrorKind::kValue:
      return PyExc_ValueError;
    case ErrorKind::kOverflow:
      return PyExc_OverflowError;
    case ErrorKind::kNotImplemented:
      return PyExc_NotImplementedError;
    case ErrorKind::kOutOfMemory:
      return out_of_memory_error;
    default:
      return PyExc_RuntimeError;
  }
}

PyObject* NewError(PyObject* module, const char* name, const char* doc, PyObject* base,
                   const char* place = "oneflow_lite.") {
  PyRef bases(base ? PyTuple_Pack(2, base, PyExc_RuntimeError)
                   : PyTuple_Pack(1, PyExc_RuntimeError));
  if (!bases) return nullptr;
  const std::string full = std::string(place) + name;
  PyObject* type = PyErr_NewExceptionWithDoc(full.c_str(), doc, bases.get(), nullptr);
  if (type && PyModule_AddObjectRef(module, name, type) < 0) return nullptr;
  return type;
}

// The exception kept under the payload of `s`; null where it has none or it made room.
PyRef FindKept(const Status& s) {
  const auto payload = s.GetPayload(kExceptionUrl);
  uint64_t id;
  if (!payload || payload->size() != sizeof(id)) return PyRef();
  const std::string bytes(*payload);
  std::memcpy(&id, bytes.data(), sizeof(id));
  Kept& kept = GetKept();
  std::lock_guard lock(kept.mutex);
  auto it = kept.exceptions.find(id);
  if (it == kept.exceptions.end()) return PyRef();
  PyRef found(it->second);
  kept.exceptions.erase(it);
  return found;
}

// Puts it under a number; the oldest one is the caller's to drop.
uint64_t Keep(PyRef exception, PyRef* oldest) {
  Kept& kept = GetKept();
  std::lock_guard lock(kept.mutex);
  const uint64_t id = kept.next++;
  kept.exceptions[id] = exception.Give();
  if (kept.exceptions.size() > kMaxKept) {
    *oldest = PyRef(kept.exceptions.begin()->second);
    kept.exceptions.erase(kept.exceptions.begin());
  }
  return id;
}

}  // namespace

bool AddErrors(PyObject* module) {
  dtype_error =
      NewError(module, "DTypeError", "An unsupported dtype, or dtypes that do not go together.",
               PyExc_TypeError);
  shape_error = NewError(module, "ShapeError", "Shapes that do not go together.", PyExc_ValueError);
  out_of_memory_error = NewError(module, "OutOfMemoryError",
                                 "The device has no memory of the size asked for left.", nullptr);
  linalg_error =
      NewError(module, "LinAlgError", "A matrix has no inverse, factorization or decomposition.",
               nullptr, "oneflow_lite.linalg.");
  return dtype_error && shape_error && out_of_memory_error && linalg_error;
}

PyObject* Raise(const Status& s) {
  const ErrorKind kind = KindOf(s);
  if (kind == ErrorKind::kPython) {
    if (PyRef kept = FindKept(s)) {
      PyRef type = PyRef::Borrow(reinterpret_cast<PyObject*>(Py_TYPE(kept.get())));
      PyObject* traceback = PyException_GetTraceback(kept.get());
      PyErr_Restore(type.Give(), kept.Give(), traceback);
      return nullptr;
    }
  }
  return Raise(kind, s.message());
}

PyObject* Raise(ErrorKind kind, absl::string_view message) {
  PyRef text(
      PyUnicode_DecodeUTF8(message.data(), static_cast<Py_ssize_t>(message.size()), "replace"));
  if (text) PyErr_SetObject(TypeOf(kind), text.get());
  return nullptr;
}

void RenameRaised(absl::string_view from, absl::string_view to) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  const PyRef args(PyObject_GetAttrString(value, "args"));
  const bool one = args && PyTuple_Check(args.get()) && PyTuple_GET_SIZE(args.get()) == 1;
  PyObject* const text = one ? TupleItem(args.get(), 0) : nullptr;
  const char* given = text && PyUnicode_Check(text) ? PyUnicode_AsUTF8(text) : nullptr;
  if (given && absl::StartsWith(given, absl::StrCat(from, "()"))) {
    const std::string renamed = absl::StrCat(to, given + from.size());
    const PyRef message(Py_BuildValue("(s)", renamed.c_str()));
    if (message) PyObject_SetAttrString(value, "args", message.get());
  }
  PyErr_Clear();
  PyErr_Restore(type, value, traceback);
}

Status TakeRaised() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  PyRef owned_type(type), exception(value), owned_traceback(traceback);
  if (!value) return MakeError(ErrorKind::kRuntime, "a Python call failed without an exception");
  if (traceback) PyException_SetTraceback(value, traceback);
  std::string message = Py_TYPE(value)->tp_name;
  if (PyRef text(PyObject_Str(value)); text) {
    if (const char* utf8 = PyUnicode_AsUTF8(text.get())) message = message + ": " + utf8;
  }
  PyErr_Clear();  // where str() raised
  PyRef oldest;
  const uint64_t id = Keep(std::move(exception), &oldest);
  Status s = MakeError(ErrorKind::kPython, message);
  s.SetPayload(kExceptionUrl,
               absl::Cord(absl::string_view(reinterpret_cast<const char*>(&id), sizeof(id))));
  return s;
}

}  // namespace oneflow_lite::python
