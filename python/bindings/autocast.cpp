// SPDX-License-Identifier: Apache-2.0
//
// Autocast on this thread; amp/autocast.py is the context manager.
#include "oneflow_lite/framework/autocast.h"

#include "python/bindings/classes.h"
#include "python/bindings/dtype_device.h"
#include "python/bindings/throwing.h"

namespace oneflow_lite::python {
namespace {

DeviceType TypeOrThrow(const std::string& name) {
  if (name == "cpu") return DeviceType::kCPU;
  if (name == "cuda") return DeviceType::kCUDA;
  throw py::value_error("autocast(): device_type is \"" + name +
                        "\", but it must be \"cpu\" or \"cuda\"");
}

void Push(const std::string& type, bool enabled, const py::object& dtype, bool cache, bool torch) {
  AutocastOptions options{.enabled = enabled, .cache = cache, .torch = torch};
  if (!AsDType(dtype.ptr(), &options.dtype)) {
    throw py::type_error("autocast(): dtype must be a dtype");
  }
  if (options.dtype != DType::kBFloat16 && options.dtype != DType::kFloat16) {
    throw py::value_error(std::string("autocast(): dtype is ") + Name(options.dtype) +
                          ", but it must be bfloat16 or float16");
  }
  PushAutocast(TypeOrThrow(type), options);
}

py::tuple Current(const std::string& type) {
  const AutocastOptions o = CurrentAutocast(TypeOrThrow(type));
  return py::make_tuple(o.enabled, OwnedOrThrow(WrapDType(o.dtype)), o.cache, o.torch);
}

const char* Name(AutocastPolicy policy) {
  switch (policy) {
    case AutocastPolicy::kAsIs:
      return "as is";
    case AutocastPolicy::kLower:
      return "lower";
    case AutocastPolicy::kFloat32:
      return "float32";
    case AutocastPolicy::kWidest:
      return "widest";
  }
  return "";
}

py::dict Policies() {
  py::dict found;
  for (const AutocastRow& row : AutocastRows()) {
    found[row.op] = py::make_tuple(Name(row.own), Name(row.torch_cuda), Name(row.torch_cpu));
  }
  return found;
}

}  // namespace

void AddAutocast(py::module_& m) {
  m.def("push_autocast", &Push, py::arg("device_type"), py::arg("enabled"), py::arg("dtype"),
        py::arg("cache"), py::arg("torch"),
        "Puts autocast in force on this thread, until pop_autocast.");
  m.def("pop_autocast", [] {
    if (!PopAutocast()) throw std::runtime_error("pop_autocast(): there is none on this thread");
  });
  m.def("current_autocast", &Current, py::arg("device_type"),
        "What is in force for a type of device: (enabled, dtype, cache, torch).");
  m.def("autocast_policies", &Policies,
        "{op: what autocast does with its inputs: ours, PyTorch's on CUDA, on the CPU}");
  m.def("drop_autocast_cache", &DropAutocastCache, "Forgets the casts that this thread keeps.");
}

}  // namespace oneflow_lite::python
