// SPDX-License-Identifier: Apache-2.0
//
// What is registered and how this library was built, for people and tools.
#include <dlfcn.h>

#include "oneflow_lite/core/device_backend.h"
#include "oneflow_lite/framework/function.h"
#include "oneflow_lite/framework/op_expr.h"
#include "oneflow_lite/framework/op_registry.h"
#include "primitive/cpu/simd_targets.h"
#include "python/bindings/classes.h"
#include "python/bindings/errors.h"

namespace oneflow_lite::python {
namespace {

// "ops/softmax.cpp:12": the folder and the file, wherever it was compiled.
std::string Place(absl::string_view file, int line) {
  size_t slash = file.rfind('/');
  if (slash != absl::string_view::npos && slash > 0) slash = file.rfind('/', slash - 1);
  if (slash != absl::string_view::npos) file.remove_prefix(slash + 1);
  return absl::StrCat(file, ":", line);
}

StatusOr<std::string> DescribeOp(absl::string_view name) {
  OFL_ASSIGN_OR_RETURN(const OpExpr* expr, FindOp(name));
  const OpDef& op = expr->def();
  std::string text = op.Schema() + "\n";
  if (!op.doc.empty()) text += "  " + op.doc + "\n";
  text += "  defined in " + Place(op.file, op.line) + "\n";
  if (op.views()) text += "  a view: it has no kernel\n";
  for (const KernelDef* k : ListKernels(op.name)) {
    text += absl::StrCat("  kernel for ", k->device ? Name(*k->device) : "any device", ": ",
                         ToString(k->dtypes), " (", Place(k->file, k->line), ")\n");
  }
  text += !op.differentiable ? "  never requires grad\n"
          : op.backward      ? "  has a gradient\n"
                             : "  has no gradient\n";
  return text;
}

PyObject* Text(absl::string_view text) {
  return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
}

PyObject* DescribeOpFunction(PyObject*, PyObject* name) {
  return Protect([&]() -> PyObject* {
    if (!PyUnicode_Check(name)) {
      return PyErr_Format(PyExc_TypeError, "describe_op(): argument 'name' must be str, not %s",
                          Py_TYPE(name)->tp_name);
    }
    const char* utf8 = PyUnicode_AsUTF8(name);
    if (!utf8) return nullptr;
    const auto text = DescribeOp(utf8);
    return text.ok() ? Text(*text) : Raise(text.status());
  });
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

PyObject* ListFunctionDicts(PyObject*, PyObject*) {
  return Protect([]() -> PyObject* {
    PyRef list(PyList_New(0));
    for (const FunctionSchema* f : ListFunctions()) {
      PyRef dict(Py_BuildValue("{s:s,s:s,s:s,s:N,s:N}", "name", f->name.c_str(), "signature",
                               f->text.c_str(), "doc", f->doc.c_str(), "method",
                               PyBool_FromLong(f->flags & kMethod), "method_only",
                               PyBool_FromLong(f->flags == kMethodOnly)));
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

}  // namespace

PyMethodDef registry_functions[] = {
    {"list_ops", ListOpNames, METH_NOARGS, "list_ops()\n--\n\nThe names of all ops, sorted."},
    {"describe_op", DescribeOpFunction, METH_O,
     "describe_op(name, /)\n--\n\nSchema, place, kernels and gradient of an op as text."},
    {"list_functions", ListFunctionDicts, METH_NOARGS,
     "list_functions()\n--\n\n"
     "The registered functions: name, signature, doc, method, method_only of each."},
    {"build_config", BuildConfig, METH_NOARGS,
     "build_config()\n--\n\nHow the library was built, and what it found."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace oneflow_lite::python
