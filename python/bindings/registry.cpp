// SPDX-License-Identifier: Apache-2.0
//
// What is registered and how this library was built, for people and tools.
#include <dlfcn.h>

#include "absl/strings/match.h"
#include "oneflow_lite/core/device_backend.h"
#include "oneflow_lite/framework/function.h"
#include "oneflow_lite/framework/op_registry.h"
#include "primitive/cpu/simd_targets.h"
#include "python/bindings/classes.h"
#include "python/bindings/errors.h"
#include "python/bindings/items.h"

namespace oneflow_lite::python {
namespace {

PyObject* Text(absl::string_view text) {
  return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
}

PyObject* ListOpNames(PyObject*, PyObject*) {
  return Protect([]() -> PyObject* {
    PyRef list(PyList_New(0));
    for (const std::string& name : ListOps()) {
      PyRef text(Text(name));
      if (!list || !text || PyList_Append(list.get(), text.get()) < 0) return nullptr;
    }
    return list.Give();
  });
}

// To the list under a key of a dict.
bool AppendTo(PyObject* dict, const char* key, const std::string& text) {
  const PyRef name(Text(key)), item(Text(text));
  if (!name || !item) return false;
  const PyRef list = FindKey(dict, name.get());
  return list && PyList_Append(list.get(), item.get()) == 0;
}

PyObject* ListFunctionDicts(PyObject*, PyObject*) {
  return Protect([]() -> PyObject* {
    PyRef list(PyList_New(0));
    for (const FunctionSchema* f : ListFunctions()) {
      if (absl::StrContains(f->name, '.')) {  // an overload of the function before it
        const Items items(list.get());
        const PyRef first = items[items.size() - 1];
        if (!AppendTo(first.get(), "overloads", f->text) ||
            !AppendTo(first.get(), "functors", f->functor)) {
          return nullptr;
        }
        continue;
      }
      PyRef dict(Py_BuildValue("{s:s,s:s,s:s,s:s,s:N,s:N,s:[],s:[s]}", "name", f->name.c_str(),
                               "signature", f->text.c_str(), "doc", f->doc.c_str(), "alias_of",
                               f->alias_of.c_str(), "method", PyBool_FromLong(f->flags & kMethod),
                               "method_only", PyBool_FromLong(f->flags == kMethodOnly), "overloads",
                               "functors", f->functor.c_str()));
      if (!list || !dict || PyList_Append(list.get(), dict.get()) < 0) return nullptr;
    }
    return list.Give();
  });
}

// OpenBLAS describes itself; another BLAS in its place has no such function.
std::string BlasName() {
  using Config = char* (*)();
  const auto config = reinterpret_cast<Config>(dlsym(RTLD_DEFAULT, "openblas_get_config"));
  return config ? config() : "unknown";
}

PyObject* BuildConfig(PyObject*, PyObject*) {
  return Protect([]() -> PyObject* {
    PyObject* cuda = BuiltWithCuda() ? Py_True : Py_False;
    return Py_BuildValue("{s:s,s:O,s:s,s:s,s:s,s:s}", "version", OFL_VERSION, "CUDA", cuda, "SIMD",
                         SimdTargets().c_str(), "BLAS", BlasName().c_str(), "compiler", __VERSION__,
                         "Python", PY_VERSION);
  });
}

// {"axis": ("dim", "dims"), ...}
PyObject* OtherNamesDict() {
  PyRef dict(PyDict_New());
  for (const OtherName& other : OtherNames()) {
    const PyRef given(Text(other.given));
    const PyRef meant(Py_BuildValue("(N)", Text(other.meant)));
    if (!dict || !given || !meant) return nullptr;
    const PyRef before = FindKey(dict.get(), given.get());
    const PyRef all(before ? PySequence_Concat(before.get(), meant.get())
                           : PyRef::Borrow(meant.get()).Give());
    if (!all || PyDict_SetItem(dict.get(), given.get(), all.get()) < 0) return nullptr;
  }
  return dict.Give();
}

PyObject* MeaninglessTuple() {
  PyRef list(PyList_New(0));
  for (const absl::string_view name : MeaninglessNames()) {
    const PyRef text(Text(name));
    if (!list || !text || PyList_Append(list.get(), text.get()) < 0) return nullptr;
  }
  return PyList_AsTuple(list.get());
}

}  // namespace

bool AddArgumentNames(PyObject* module) {
  const PyRef other(OtherNamesDict()), meaningless(MeaninglessTuple());
  return other && meaningless && PyModule_AddObjectRef(module, "OTHER_NAMES", other.get()) == 0 &&
         PyModule_AddObjectRef(module, "MEANINGLESS", meaningless.get()) == 0;
}

PyMethodDef registry_functions[] = {
    {"list_ops", ListOpNames, METH_NOARGS, "list_ops()\n--\n\nThe names of all ops, sorted."},
    {"list_functions", ListFunctionDicts, METH_NOARGS,
     "list_functions()\n--\n\n"
     "The registered functions: name, signature, doc, alias_of, method, method_only, overloads and "
     "functors of each: what C++ callers have in place of the function and of its overloads."},
    {"build_config", BuildConfig, METH_NOARGS,
     "build_config()\n--\n\nHow the library was built, and what it found."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace oneflow_lite::python
