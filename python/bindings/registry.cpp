// SPDX-License-Identifier: Apache-2.0
//
// What is registered and how this library was built, for people and tools.
#include <dlfcn.h>

#include "oneflow_lite/framework/function.h"
#include "oneflow_lite/framework/op_expr.h"
#include "oneflow_lite/framework/op_registry.h"
#include "primitive/cpu/simd_targets.h"
#include "python/bindings/classes.h"
#include "python/bindings/throwing.h"

namespace oneflow_lite::python {
namespace {

// "ops/softmax.cpp:12": the folder and the file, wherever it was compiled.
std::string Place(absl::string_view file, int line) {
  size_t slash = file.rfind('/');
  if (slash != absl::string_view::npos && slash > 0) slash = file.rfind('/', slash - 1);
  if (slash != absl::string_view::npos) file.remove_prefix(slash + 1);
  return absl::StrCat(file, ":", line);
}

std::string DescribeOp(const std::string& name) {
  const OpDef& op = ValueOrThrow(FindOp(name))->def();
  std::string text = op.Schema() + "\n";
  if (!op.doc.empty()) text += "  " + op.doc + "\n";
  text += "  defined in " + Place(op.file, op.line) + "\n";
  if (op.views()) text += "  a view: it has no kernel\n";
  for (const KernelDef* k : ListKernels(name)) {
    text += absl::StrCat("  kernel for ", k->device ? Name(*k->device) : "any device", ": ",
                         ToString(k->dtypes), " (", Place(k->file, k->line), ")\n");
  }
  text += !op.differentiable ? "  never requires grad\n"
          : op.backward      ? "  has a gradient\n"
                             : "  has no gradient\n";
  return text;
}

py::list ListFunctionDicts() {
  py::list list;
  for (const FunctionSchema* f : ListFunctions()) {
    py::dict d;
    d["name"] = f->name;
    d["signature"] = f->text;
    d["doc"] = f->doc;
    d["method"] = (f->flags & kMethod) != 0;
    d["method_only"] = f->flags == kMethodOnly;
    list.append(d);
  }
  return list;
}

// OpenBLAS describes itself; another BLAS in its place has no such function.
std::string BlasName() {
  using Config = char* (*)();
  const auto config = reinterpret_cast<Config>(dlsym(RTLD_DEFAULT, "openblas_get_config"));
  return config ? config() : "unknown";
}

py::dict BuildConfig() {
  py::dict d;
  d["version"] = OFL_VERSION;
#ifdef OFL_WITH_CUDA
  d["CUDA"] = true;
#else
  d["CUDA"] = false;
#endif
  d["SIMD"] = SimdTargets();
  d["BLAS"] = BlasName();
  d["compiler"] = __VERSION__;
  d["Python"] = PY_VERSION;
  d["pybind11"] = absl::StrCat(PYBIND11_VERSION_MAJOR, ".", PYBIND11_VERSION_MINOR);
  return d;
}

}  // namespace

void AddRegistry(py::module_& m) {
  m.def(
      "list_ops",
      [] {
        py::list names;
        for (const std::string& name : ListOps()) names.append(name);
        return names;
      },
      "The names of all ops, sorted.");
  m.def("describe_op", &DescribeOp, py::arg("name"),
        "Schema, place, kernels and gradient of an op as text.");
  m.def("list_functions", &ListFunctionDicts,
        "The registered functions: name, signature, doc, method, method_only of each.");
  m.def("build_config", &BuildConfig, "How the library was built, and what it found.");
}

}  // namespace oneflow_lite::python
