// SPDX-License-Identifier: Apache-2.0
//
// The life of a call from Python: its arguments are read, the function runs without the
// interpreter's lock where it has much to do, the results become objects.
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "python/bindings/arguments.h"
#include "python/bindings/call_arguments.h"
#include "python/bindings/functions.h"
#include "python/bindings/global.h"
#include "python/bindings/older_arguments.h"
#include "python/bindings/out_argument.h"

namespace oneflow_lite::python {
namespace {

PyObject* WrapResults(const BoundFunction& b, Value&& result) {
  TensorList* list = b.results ? std::get_if<TensorList>(&result) : nullptr;
  if (!list) return WrapValue(std::move(result));
  PyRef tuple(PyStructSequence_New(b.results));
  if (!tuple) return nullptr;
  for (size_t i = 0; i < list->size(); ++i) {
    PyObject* item = Wrap(std::move((*list)[i]));
    if (!item) return nullptr;
    PyStructSequence_SetItem(tuple.get(), static_cast<Py_ssize_t>(i), item);
  }
  return tuple.Give();
}

// Of the first global tensor among the arguments, where there is one.
class ScopeOf {
 public:
  explicit ScopeOf(absl::Span<const Value> args) {
    if (!any_global.load(std::memory_order_relaxed)) return;
    for (const Value& v : args) {
      const auto* list = std::get_if<TensorList>(&v);
      const auto* one = std::get_if<Tensor>(&v);
      const absl::Span<const Tensor> tensors =
          list ? absl::MakeConstSpan(*list) : absl::MakeConstSpan(one, one ? 1 : 0);
      for (const Tensor& t : tensors) {
        if (!GlobalOf(t)) continue;
        scope_.emplace(absl::MakeConstSpan(&t, 1));
        return;
      }
    }
  }

 private:
  std::optional<GlobalScope> scope_;
};

Py_ssize_t FindKeyword(PyObject* kwnames, const char* name) {
  for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); ++k) {
    if (IsNamed(TupleItem(kwnames, k), name)) return k;
  }
  return -1;
}

// Whether the function makes tensors, so that it can make global ones.
bool MakesTensors(const FunctionSchema& f) {
  bool device = false, tensors = false;
  for (const ArgSchema& a : f.args) {
    device = device || a.name == "device";
    tensors = tensors || a.type == ArgType::kTensor;
  }
  return device && (!tensors || absl::EndsWith(f.name, "_like"));
}

// The result as the keywords placement= and sbp= ask for it, a leaf as it was.
PyObject* PutOn(PyObject* made, const PlacedAt& at) {
  const PyRef owned(made);
  if (!made || !IsTensor(made)) return PyRef::Borrow(made).Give();
  const Tensor t = Unwrap(made);
  StatusOr<Tensor> moved = Box(t.Detach(), at.placement, at.sbp);
  if (!moved.ok()) return Raise(moved.status());
  const Status s = autograd::SetRequiresGrad(*moved, autograd::RequiresGrad(t));
  return s.ok() ? Wrap(*std::move(moved)) : Raise(s);
}

// zeros(2, 3, placement=..., sbp=...): the call without these two, which says where its ops run.
PyObject* CallPlaced(const BoundFunction& called, PyObject* const* args, Py_ssize_t nargs,
                     PyObject* kwnames) {
  const Py_ssize_t placement = FindKeyword(kwnames, "placement"), sbp = FindKeyword(kwnames, "sbp");
  PlacedAt at;
  if (!ReadPlaced(called.schema->name.c_str(), args[nargs + placement],
                  sbp < 0 ? nullptr : args[nargs + sbp], &at)) {
    return nullptr;
  }
  if (FindKeyword(kwnames, "device") >= 0) {
    PyErr_Format(PyExc_TypeError, "%s(): a placement says which device, leave out 'device'",
                 called.schema->name.c_str());
    return nullptr;
  }
  std::vector<PyObject*> values(args, args + nargs);
  const PyRef names(PyList_New(0)), device(WrapDevice(at.placement->device()));
  const PyRef device_name(PyUnicode_InternFromString("device"));
  if (!names || !device || !device_name) return nullptr;
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(kwnames); ++k) {
    if (k == placement || k == sbp) continue;
    values.push_back(args[nargs + k]);
    if (PyList_Append(names.get(), TupleItem(kwnames, k)) < 0) return nullptr;
  }
  values.push_back(device.get());
  if (PyList_Append(names.get(), device_name.get()) < 0) return nullptr;
  const PyRef tuple(PyList_AsTuple(names.get()));
  if (!tuple) return nullptr;
  const GlobalScope scope(at.placement, at.sbp);
  return PutOn(CallBound(called, nullptr, values.data(), nargs, tuple.get()), at);
}

// linalg_inv is linalg.inv to its callers: so the message of the exception that is set begins.
void NameByModule(const std::string& name) {
  for (const char* module : {"linalg", "special"}) {
    const std::string prefix = absl::StrCat(module, "_");
    if (!absl::StartsWith(name, prefix)) continue;
    RenameRaised(name, absl::StrCat(module, ".", name.substr(prefix.size())));
  }
}

PyObject* CallAsRead(const BoundFunction& called, PyObject* self, PyObject* const* args,
                     Py_ssize_t nargs, PyObject* kwnames) {
  return Protect([&]() -> PyObject* {
    ValueList values;
    PyObject* out = nullptr;
    PyObject** target = self ? nullptr : &out;
    const BoundFunction* taken = ReadAny(called, {self, args, nargs, kwnames}, &values, target);
    if (!taken) {
      const bool placed = !self && FindKeyword(kwnames, "placement") >= 0;
      if (!placed || !MakesTensors(*called.schema)) return nullptr;
      PyErr_Clear();  // "unexpected keyword argument 'placement'"
      return CallPlaced(called, args, nargs, kwnames);
    }
    const BoundFunction& b = *taken;
    const FunctionSchema& f = *b.schema;
    Value result;
    Status s;
    {
      const ScopeOf scope(values);
      GilRelease unlocked(IsLargeWork(values));
      s = f(absl::MakeSpan(values), &result);
    }
    if (!s.ok()) return Raise(Renamed(f.name, s));
    if (out) return StoreResults(f.name.c_str(), result, out, b.results);
    if (b.as_given && nargs == 1 && IsTensor(args[0])) {
      return Wrap(std::move(std::get<TensorList>(result)[0]));
    }
    return WrapResults(b, std::move(result));
  });
}

}  // namespace

PyObject* CallBound(const BoundFunction& called, PyObject* self, PyObject* const* args,
                    Py_ssize_t nargs, PyObject* kwnames) {
  PyObject* const result = CallAsRead(called, self, args, nargs, kwnames);
  if (result) return result;
  return Protect([&]() -> PyObject* {
    NameByModule(called.schema->name);
    return nullptr;
  });
}

}  // namespace oneflow_lite::python
