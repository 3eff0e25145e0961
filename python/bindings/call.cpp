// SPDX-License-Identifier: Apache-2.0
//
// The life of a call from Python: its arguments are read by the function's signature, the function
// runs without the interpreter's lock where it has much to do, the results become objects. The
// reading is in this file because the compiler makes one function of it and the call: apart, a call
// takes 20 instructions more in the bindings, of 770.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/argument_name.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/destination.h"
#include "python/bindings/arguments.h"
#include "python/bindings/functions.h"
#include "python/bindings/global.h"
#include "python/bindings/keyword_names.h"
#include "python/bindings/older_arguments.h"
#include "python/bindings/out_argument.h"
#include "python/bindings/traced.h"

namespace oneflow_lite::python {
namespace {

// The arguments of a call, values and names as in METH_FASTCALL | METH_KEYWORDS.
struct CallArguments {
  PyObject* self;
  PyObject* const* args;
  Py_ssize_t nargs;
  PyObject* kwnames;
};

// Reads what was passed by keyword. `given` has a bit per argument so far. `target` gets the value
// of out=, which is no argument of the function itself; null: it is not taken.
bool ReadKeywords(const BoundFunction& b, PyObject* const* values, PyObject* kwnames,
                  OlderReduction older, uint64_t* given, Value* out, PyObject** target) {
  const FunctionSchema& f = *b.schema;
  for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); ++k) {
    PyObject* name = TupleItem(kwnames, k);
    size_t i = 0;
    while (i < b.names.size() && b.names[i] != name) ++i;
    if (i == b.names.size()) {  // not interned, or wrong
      for (i = 0; i < b.names.size(); ++i) {
        if (PyUnicode_Compare(b.names[i], name) == 0) break;
      }
    }
    if (i == b.names.size()) i = FindByOtherName(f, name);
    if (i == b.names.size() && MeansNothing(name, values[k])) continue;
    if (i == b.names.size() && older.Takes(f, name, values[k])) continue;
    if (i == b.names.size() && target && IsNamed(name, "out")) {
      *target = values[k];
      continue;
    }
    if (i == b.names.size()) {
      PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'%s",
                   f.name.c_str(), name, NearName(b, name).c_str());
      return false;
    }
    if (*given >> i & 1) {
      PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%U'", f.name.c_str(),
                   name);
      return false;
    }
    *given |= uint64_t{1} << i;
    if (!ReadArgument(f.name.c_str(), f.args[i], values[k], &out[i])) return false;
  }
  return older.Set(f, given, out);
}

bool RaiseTooMany(const BoundFunction& b, bool method, Py_ssize_t given) {
  const Py_ssize_t self = method ? 1 : 0;
  const auto most = static_cast<Py_ssize_t>(b.num_positional) - self;
  PyErr_Format(PyExc_TypeError, "%s() takes at most %zd positional argument%s (%zd given)",
               b.schema->name.c_str(), most, most == 1 ? "" : "s", given - self);
  return false;
}

bool FillDefaults(const BoundFunction& b, uint64_t given, Value* out) {
  const FunctionSchema& f = *b.schema;
  if (given + 1 == uint64_t{1} << f.args.size()) return true;  // none to fill
  for (size_t i = 0; i < f.args.size(); ++i) {
    if (given >> i & 1 || out[i].index() != 0) continue;
    const ArgSchema& a = f.args[i];
    if (!a.has_default) {
      if (a.keyword_only) {
        PyErr_Format(PyExc_TypeError, "%s() missing required keyword argument '%s'", f.name.c_str(),
                     a.name.c_str());
      } else {
        PyErr_Format(PyExc_TypeError, "%s() missing required argument '%s' (pos %zu)",
                     f.name.c_str(), a.name.c_str(), i + 1);
      }
      return false;
    }
    // None is what a fresh Value holds.
    if (a.default_value.index() != 0) out[i] = a.default_value;
  }
  return true;
}

// Positional arguments, `self` among them where there is one.
bool ReadPositional(const BoundFunction& b, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                    uint64_t* given, Value* out) {
  const FunctionSchema& f = *b.schema;
  const char* name = f.name.c_str();
  size_t i = 0;
  if (self) {
    if (!ReadArgument(name, f.args[0], self, &out[0])) return false;
    *given = 1;
    i = 1;
  }
  const bool tensors = b.spread >= 0 && f.args[b.spread].type == ArgType::kTensorList;
  if (tensors && (nargs != 1 || IsTensor(args[0]))) {
    if (nargs > 0) *given |= 1;  // else a keyword may still bring them
    return ReadTensors(name, f.args[0], Items(args, nargs), &out[0]);
  }
  const Py_ssize_t total = static_cast<Py_ssize_t>(i) + nargs;
  if (b.spread < 0 && total > static_cast<Py_ssize_t>(b.num_positional)) {
    return RaiseTooMany(b, self != nullptr, total);
  }
  for (Py_ssize_t k = 0; k < nargs; ++k, ++i) {
    *given |= uint64_t{1} << i;
    if (static_cast<int>(i) == b.spread && nargs - k > 1) {
      return ReadInts(name, f.args[i], Items(args + k, nargs - k), &out[i]);
    }
    if (!ReadArgument(name, f.args[i], args[k], &out[i])) return false;
  }
  return true;
}

// A call that was refused, once more, if its arguments are a loss's in PyTorch's order, which has
// those that `reduction` replaced.
bool ReadOlderCall(const BoundFunction& b, const CallArguments& g, Value* out, PyObject** target) {
  OlderReduction older;
  std::vector<PyObject*> args(g.args, g.args + g.nargs);
  if (g.self || !PyErr_ExceptionMatches(PyExc_TypeError)) return false;
  if (!older.TakeByPlace(*b.schema, &args)) return false;
  PyErr_Clear();
  for (size_t i = 0; i < b.schema->args.size(); ++i) out[i] = Value();
  uint64_t given = 0;
  const auto count = static_cast<Py_ssize_t>(args.size());
  return ReadPositional(b, nullptr, args.data(), count, &given, out) &&
         ReadKeywords(b, g.args + g.nargs, g.kwnames, older, &given, out, target) &&
         FillDefaults(b, given, out);
}

// `target`: see ReadKeywords.
bool ReadCall(const BoundFunction& b, const CallArguments& g, Value* out, PyObject** target) {
  uint64_t given = 0;
  if (!ReadPositional(b, g.self, g.args, g.nargs, &given, out)) {
    return ReadOlderCall(b, g, out, target);
  }
  return (!g.kwnames || ReadKeywords(b, g.args + g.nargs, g.kwnames, {}, &given, out, target)) &&
         FillDefaults(b, given, out);
}

bool WarnOfOrder(const FunctionSchema& f, const std::vector<size_t>& order) {
  std::string names, options;
  for (const size_t i : order) {
    const bool tensor = f.args[i].type == ArgType::kTensor || f.args[i].type == ArgType::kOperand;
    absl::StrAppend(&names, names.empty() ? "" : ", ", f.args[i].name);
    if (!tensor) absl::StrAppend(&options, options.empty() ? "" : ", ", f.args[i].name);
  }
  const PyRef warnings(PyImport_ImportModule("oneflow_lite._warnings"));
  const std::string text =
      absl::StrCat(f.name, "(", names, ") is an older order of arguments; pass ", options,
                   " by keyword, after the tensors");
  return warnings && PyRef(PyObject_CallMethod(warnings.get(), "warn", "s", text.c_str()));
}

// Reads arguments that are given in an older order, tensors where it has them and all of it. False
// without an exception: they are not.
bool ReadOlder(const BoundFunction& b, const CallArguments& g, const std::vector<size_t>& order,
               Value* out, PyObject** target) {
  const FunctionSchema& f = *b.schema;
  const size_t own = g.self ? 1 : 0, total = own + static_cast<size_t>(g.nargs);
  if (total > order.size()) return false;
  uint64_t given = 0;
  for (size_t k = 0; k < total; ++k) {
    PyObject* value = k < own ? g.self : g.args[k - own];
    const ArgSchema& a = f.args[order[k]];
    const bool tensor = a.type == ArgType::kTensor || a.type == ArgType::kOperand;
    if (IsTensor(value) != tensor) return false;
    if (!ReadArgument(f.name.c_str(), a, value, &out[order[k]])) return false;
    given |= uint64_t{1} << order[k];
  }
  if (!ReadKeywords(b, g.args + g.nargs, g.kwnames, {}, &given, out, target)) return false;
  for (const size_t i : order) {
    if (!(given >> i & 1)) return false;
  }
  return FillDefaults(b, given, out) && WarnOfOrder(f, order);
}

// After ReadCall failed: whether the arguments are there in an older order. False: an exception is
// set, the one that was, or what an argument raised meanwhile.
bool ReadOlder(const BoundFunction& b, const CallArguments& g, Value* out, PyObject** target) {
  if (b.schema->older.empty() || !PyErr_ExceptionMatches(PyExc_TypeError)) return false;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  const PyRef kept_type(type), kept_value(value), kept_trace(trace);
  for (const std::vector<size_t>& order : b.schema->older) {
    std::fill(out, out + b.schema->args.size(), Value());
    if (ReadOlder(b, g, order, out, target)) return true;
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_TypeError)) return false;
    PyErr_Clear();  // the next order may run Python
  }
  PyErr_Restore(PyRef::Borrow(type).Give(), PyRef::Borrow(value).Give(),
                PyRef::Borrow(trace).Give());
  return false;
}

// Reads the arguments for the function or for the first of its overloads that takes them, which it
// gives. Null: none does, and what the function itself said of them is set.
const BoundFunction* ReadAny(const BoundFunction& b, const CallArguments& g, ValueList* values,
                             PyObject** target) {
  values->resize(b.schema->args.size());
  if (ReadCall(b, g, values->data(), target) || ReadOlder(b, g, values->data(), target)) return &b;
  if (!b.overload || !PyErr_ExceptionMatches(PyExc_TypeError)) return nullptr;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  const PyRef kept_type(type), kept_value(value), kept_trace(trace);
  for (const BoundFunction* o = b.overload; o; o = o->overload) {
    values->clear();
    values->resize(o->schema->args.size());
    if (target) *target = nullptr;
    if (ReadCall(*o, g, values->data(), target)) return o;
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) return nullptr;
    PyErr_Clear();
  }
  PyErr_Restore(PyRef::Borrow(type).Give(), PyRef::Borrow(value).Give(),
                PyRef::Borrow(trace).Give());
  return nullptr;
}

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
    const Tensor there = out ? WrittenAtOnce(values, out) : Tensor();
    {
      const ScopeOf scope(values);
      GilRelease unlocked(IsLargeWork(values) || (b.waits && AnyOnGpu(values)));
      if (there.defined()) {
        const internal::Destination destination(there);
        s = f(absl::MakeSpan(values), &result);
      } else {
        s = f(absl::MakeSpan(values), &result);
      }
    }
    if (!s.ok()) return Raise(InWordsOf(f, s));
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
    PyObject* const traced = CallTraced(called, self, args, nargs, kwnames);
    if (!traced) NameByModule(called.schema->name);
    return traced;
  });
}

}  // namespace oneflow_lite::python
