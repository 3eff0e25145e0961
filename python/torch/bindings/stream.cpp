// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <memory>
#include <mutex>

#include "python/torch/bindings/launch.h"

namespace oneflow_lite::torch_ops {
namespace {

// The same without multiprocessors. Devices are few, and asked for by index.
const DeviceProperties& WithoutMultiprocessors(const DeviceProperties& of, int index) {
  static std::mutex mutex;
  static std::unique_ptr<const DeviceProperties> made[64];
  const std::lock_guard lock(mutex);
  auto& properties = made[index];
  if (!properties) {
    DeviceProperties p = of;
    p.multiprocessors = 0;
    properties = std::make_unique<const DeviceProperties>(p);
  }
  return *properties;
}

const DeviceProperties& PropertiesOf(Device device, bool invariant) {
  static const DeviceProperties cpu;
  if (device.type != DeviceType::kCUDA) return cpu;
  const DeviceProperties& properties = CudaProperties(device.index);  // of one of 64 devices
  return invariant ? WithoutMultiprocessors(properties, device.index) : properties;
}

// Exported by the CUDA half of PyTorch, which need not be there.
using GetStream = AOTITorchError (*)(int32_t device, void** stream);
GetStream FindGetStream() {
  void* library = dlopen("libtorch_cuda.so", RTLD_LAZY | RTLD_NOLOAD);
  void* symbol = library ? dlsym(library, "aoti_torch_get_current_cuda_stream") : nullptr;
  return reinterpret_cast<GetStream>(symbol);
}

}  // namespace

CurrentStream::CurrentStream(Device device, bool invariant)
    : Stream(device, &PropertiesOf(device, invariant)) {
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
