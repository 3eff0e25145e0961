// SPDX-License-Identifier: Apache-2.0
//
// Row kernels compiled at run time, for oneflow_lite/fuse: planning, loading, launching.
#include "primitive/fused_rows.h"

#include <pybind11/stl.h>

#include "oneflow_lite/core/expression.h"
#include "primitive/fused_elements_source.h"
#include "primitive/library.h"
#include "primitive/nvrtc.h"
#include "python/bindings/classes.h"
#include "python/bindings/dtype_device.h"
#include "python/bindings/tensor_object.h"
#include "python/bindings/throwing.h"

namespace oneflow_lite::python {
namespace {

const FusedRows& Primitive() {
  static const FusedRows* primitive =
      ValueOrThrow(NewPrimitive<FusedRowsFactory>(DeviceType::kCUDA, {})).release();
  return *primitive;
}

const Tensor& TensorOf(const py::handle& o) {
  if (!IsTensor(o.ptr())) throw py::type_error("a tensor is wanted");
  return Unwrap(o.ptr());
}
Stream& StreamOf(const Tensor& t) { return *ValueOrThrow(CurrentStream(t.device())); }

// A plan for one shape, its kernel once that is loaded.
struct FusedRowsKernel {
  int64_t rows, cols;
  FusedRowsPlan plan;
  const void* kernel = nullptr;
};

FusedRowsKernel Plan(const py::handle& x, int64_t rows, int64_t cols, int pack, int bytes_per_pack,
                     int statistics_bytes, bool is_double, bool shares_registers, bool is_lean,
                     bool is_single, bool is_whole, bool is_odd, bool is_norm, bool is_log,
                     bool stores_costly, int common_bytes, int late_bytes,
                     const std::vector<int>& operands, int most_clustered) {
  const FusedRowsTraits traits{
      pack,    bytes_per_pack, statistics_bytes, is_double,  shares_registers,
      is_lean, is_single,      is_whole,         is_odd,     is_norm,
      is_log,  stores_costly,  common_bytes,     late_bytes, operands};
  if (rows <= 0 || cols <= 0) throw py::value_error("fused_rows: there are no elements");
  return {rows, cols, Primitive().Plan(StreamOf(TensorOf(x)), rows, cols, traits, most_clustered)};
}

using Compiled = std::shared_ptr<const CompiledKernel>;

Compiled CompileKernel(const std::string& source, const std::string& kernel, int architecture) {
  const auto compiled = [&] {
    const py::gil_scoped_release release;
    return CompileCuda(source, kernel, architecture);
  }();
  return ValueOrThrow(compiled);
}

bool Load(FusedRowsKernel& k, const py::handle& x, const CompiledKernel& compiled) {
  k.kernel = ValueOrThrow(Primitive().Load(StreamOf(TensorOf(x)), k.plan, compiled));
  return k.kernel != nullptr;
}

// As a RuntimeWarning, from whichever thread.
void WarnOfCache(const std::string& text) {
  const py::gil_scoped_acquire acquire;
  if (PyErr_WarnEx(PyExc_RuntimeWarning, text.c_str(), 1) != 0) PyErr_WriteUnraisable(nullptr);
}

void Launch(const FusedRowsKernel& k, const py::handle& y, const std::vector<uint64_t>& words,
            const std::vector<uint64_t>& operands, const py::handle& workspace) {
  if (!k.kernel) throw std::runtime_error("fused_rows: the kernel is not loaded");
  std::vector<const void*> copied;
  for (const uint64_t p : operands) copied.push_back(reinterpret_cast<const void*>(p));
  void* space = nullptr;
  if (!workspace.is_none()) space = TensorOf(workspace).data();
  ThrowIfError(Primitive().Launch(StreamOf(TensorOf(y)), k.plan, k.kernel, k.rows, k.cols, words,
                                  copied, space));
}

// The source that a call of fuse_elements compiles on CUDA for tensors that lie as these do.
py::tuple ElementSource(const std::string& expression, const std::vector<py::object>& tensors,
                        const std::vector<py::object>& results, uint64_t numbers) {
  std::vector<ElementType> types;
  std::vector<Dims> strides;
  std::vector<FusedElements::Input> inputs(tensors.size());
  std::vector<FusedElements::Output> outputs;
  const Shape& shape = TensorOf(results.at(0)).shape();
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = TensorOf(tensors[i]);
    const bool is_number = numbers >> i & 1;
    types.push_back({t.dtype(), is_number       ? ElementType::kNumber
                                : t.ndim() == 0 ? ElementType::kScalar
                                                : ElementType::kTensor});
    strides.emplace_back(shape.ndim(), 0);
    const int extra = shape.ndim() - t.ndim();
    for (int d = 0; d < t.ndim(); ++d) {
      if (t.shape()[d] != 1) strides[i][d + extra] = t.strides()[d];
    }
    if (!is_number) inputs[i].data = t.data();
  }
  for (size_t i = 0; i < tensors.size(); ++i) inputs[i].strides = strides[i];
  for (const py::object& t : results) {
    outputs.push_back({TensorOf(t).data(), TensorOf(t).strides()});
  }
  const auto typed = ValueOrThrow(TypedOnce(expression, types));
  const FusedGeometry g = MergeFusedDims(shape, inputs, outputs);
  const FusedLayout layout = LayoutOf(*typed, g, inputs);
  const FusedSource source = SourceOf(*typed, layout);
  return py::make_tuple(source.text, source.kernel,
                        WordsOf(*typed, layout, g, inputs, outputs).size() == source.words);
}

void AddCompiler(py::module_& m) {
  SetKernelWarningHandler(&WarnOfCache);
  py::class_<CompiledKernel, std::shared_ptr<CompiledKernel>>(
      m, "CompiledKernel", "A kernel's binary, its name there, and a key that no other has.")
      .def_readonly("key", &CompiledKernel::key)
      .def_property_readonly("image", [](const CompiledKernel& k) { return py::bytes(k.image); })
      .def_readonly("name", &CompiledKernel::name);
  m.def(
      "compile_kernel",
      [](const std::string& source, const std::string& kernel, int architecture) {
        return std::const_pointer_cast<CompiledKernel>(CompileKernel(source, kernel, architecture));
      },
      py::arg("source"), py::arg("kernel"), py::arg("architecture"),
      "The kernel of that name in CUDA source, by NVRTC or from the cache.");
  m.def("compiler_problem", &CompilerProblem, "What keeps NVRTC from compiling here, or ''.");
  m.def("kernel_compilations", &Compilations, "How often NVRTC compiled in this process.");
  m.def("forget_kernels", &ForgetKernels, "Empties this process's cache of kernels.");
  m.def("element_source", &ElementSource, py::arg("expression"), py::arg("tensors"),
        py::arg("results"), py::arg("numbers") = 0,
        "The CUDA source of a call of fuse_elements, its kernel, and whether its words are as many "
        "as the kernel's.");
  m.def(
      "element_functions",
      [] {
        py::dict functions;
        for (const ElementFunctionName& f : ElementFunctions())
          functions[py::str(f.name)] = f.arity;
        return functions;
      },
      "The functions that an expression of fuse_elements may have, and how many operands each "
      "has.");
  m.def(
      "add_library_homes", [](const std::vector<std::string>& homes) { AddToolkitFolders(homes); },
      py::arg("homes"), "More folders in which a CUDA toolkit, or a library of NVIDIA's, may be.");
  m.def("library_homes", &AddedLibraryHomes, "What add_library_homes was given.");
}

}  // namespace

void AddFusedRows(py::module_& m) {
  AddCompiler(m);
  py::class_<FusedRowsKernel>(m, "FusedRowsKernel")
      .def(py::init(&Plan), py::arg("x"), py::arg("rows"), py::arg("cols"), py::kw_only(),
           py::arg("pack"), py::arg("bytes_per_pack"), py::arg("statistics_bytes"),
           py::arg("is_double"), py::arg("shares_registers"), py::arg("is_lean"),
           py::arg("is_single"), py::arg("is_whole"), py::arg("is_odd"), py::arg("is_norm"),
           py::arg("is_log"), py::arg("stores_costly"), py::arg("common_bytes"),
           py::arg("late_bytes"), py::arg("operands"), py::arg("most_clustered"),
           "The kernel that serves rows x cols on x's device; not loaded yet.")
      .def_property_readonly(
          "name", [](const FusedRowsKernel& k) { return k.plan.kernel; },
          "The kernel to compile, with A for the algorithm.")
      .def_property_readonly(
          "whole", [](const FusedRowsKernel& k) { return k.plan.whole; },
          "Whether A is a WholeRow, of rows that are whole packs, but for their ends where they "
          "are odd.")
      .def_property_readonly("workspace_bytes",
                             [](const FusedRowsKernel& k) { return k.plan.workspace_bytes; })
      .def_property_readonly(
          "copies",
          [](const FusedRowsKernel& k) {
            std::vector<size_t> offsets;
            for (const FusedRowsCopies& copies : k.plan.copies) offsets.push_back(copies.offset);
            return offsets;
          },
          "Where the workspace holds the copies of operands that the kernel reads in their place.")
      .def("load", &Load, py::arg("x"), py::arg("compiled"),
           "Loads a compiled kernel; False where the device cannot place its clusters.")
      .def("launch", &Launch, py::arg("y"), py::arg("words"), py::arg("operands"),
           py::arg("workspace"),
           "Launches on the current stream of y's device; operands are the addresses of those that "
           "are copied.");
}

}  // namespace oneflow_lite::python
