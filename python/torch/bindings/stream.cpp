// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include "python/torch/bindings/launch.h"

namespace oneflow_lite::torch_ops {
namespace {

const DeviceProperties& PropertiesOf(Device device) {
  static const DeviceProperties cpu;
  return device.type == DeviceType::kCUDA ? CudaProperties(device.index) : cpu;
}

// Exported by the CUDA half of PyTorch, which need not be there.
using GetStream = AOTITorchError (*)(int32_t device, void** stream);
GetStream FindGetStream() {
  void* library = dlopen("libtorch_cuda.so", RTLD_LAZY | RTLD_NOLOAD);
  void* symbol = library ? dlsym(library, "aoti_torch_get_current_cuda_stream") : nullptr;
  return reinterpret_cast<GetStream>(symbol);
}

}  // namespace

CurrentStream::CurrentStream(Device device) : Stream(device, &PropertiesOf(device)) {
  if (device.type != DeviceType::kCUDA) return;
  static const GetStream get = FindGetStream();
  Require(get && get(device.index, &native_) == AOTI_TORCH_SUCCESS,
          "oneflow_lite_torch: PyTorch does not say which CUDA stream is current");
}

#ifndef OFL_TORCH_WITH_CUDA
const DeviceProperties& CudaProperties(int) {
  Require(false, "oneflow_lite_torch was built without its CUDA kernels");
  static const DeviceProperties none;
  return none;
}
#endif

}  // namespace oneflow_lite::torch_ops
