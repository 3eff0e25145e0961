// SPDX-License-Identifier: Apache-2.0
//
// Row kernels compiled at run time, for oneflow_lite/fuse: planning, loading, launching.
#include "primitive/fused_rows.h"

#include <pybind11/stl.h>

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

bool Load(FusedRowsKernel& k, const py::handle& x, const std::string& key, const py::bytes& image,
          const std::string& name) {
  k.kernel = ValueOrThrow(Primitive().Load(StreamOf(TensorOf(x)), k.plan, {key, image, name}));
  return k.kernel != nullptr;
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

}  // namespace

void AddFusedRows(py::module_& m) {
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
      .def("load", &Load, py::arg("x"), py::arg("key"), py::arg("image"), py::arg("name"),
           "Loads a compiled image; False where the device cannot place its clusters.")
      .def("launch", &Launch, py::arg("y"), py::arg("words"), py::arg("operands"),
           py::arg("workspace"),
           "Launches on the current stream of y's device; operands are the addresses of those that "
           "are copied.");
}

}  // namespace oneflow_lite::python
