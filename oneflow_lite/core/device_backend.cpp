// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/core/device_backend.h"

#include <dlfcn.h>

#include <atomic>
#include <mutex>
#include <string>

namespace oneflow_lite {

DeviceBackend* CpuBackend();  // allocator.cpp

namespace {

std::atomic<DeviceBackend*> backends[kNumDeviceTypes];

// The CUDA half lies beside this library; linking it would make every program load the driver.
std::string LoadCudaLibrary() {
#ifdef OFL_WITH_CUDA
  Dl_info self;
  std::string path = "liboneflow_lite_cuda.so";
  if (dladdr(reinterpret_cast<void*>(&LoadCudaLibrary), &self) && self.dli_fname) {
    const std::string here = self.dli_fname;
    if (const size_t slash = here.rfind('/'); slash != std::string::npos) {
      path = here.substr(0, slash + 1) + path;
    }
  }
  // RTLD_GLOBAL is not needed: the library registers itself through RegisterBackend.
  if (!dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    return absl::StrCat("CUDA is not available: ", dlerror());
  }
  return {};
#else
  return "CUDA is not available: this build of oneflow_lite has no CUDA support";
#endif
}

}  // namespace

bool BuiltWithCuda() {
#ifdef OFL_WITH_CUDA
  return true;
#else
  return false;
#endif
}

void RegisterBackend(DeviceType type, DeviceBackend* backend) {
  backends[static_cast<int>(type)].store(backend, std::memory_order_release);
}

StatusOr<DeviceBackend*> GetBackend(DeviceType type) {
  auto& slot = backends[static_cast<int>(type)];
  if (DeviceBackend* backend = slot.load(std::memory_order_acquire)) return backend;
  if (type == DeviceType::kCPU) {
    RegisterBackend(type, CpuBackend());
    return CpuBackend();
  }
  if (type == DeviceType::kMeta) {
    return Error(ErrorKind::kRuntime, "a tensor on the meta device has no data");
  }
  static std::once_flag once;
  static std::string reason;
  std::call_once(once, [] { reason = LoadCudaLibrary(); });
  if (DeviceBackend* backend = slot.load(std::memory_order_acquire)) return backend;
  return Error(ErrorKind::kRuntime,
               reason.empty() ? "CUDA is not available: no usable driver or device" : reason);
}

StatusOr<DeviceBackend*> GetBackend(Device device) {
  OFL_ASSIGN_OR_RETURN(DeviceBackend * backend, GetBackend(device.type));
  if (device.index < 0 || device.index >= backend->DeviceCount()) {
    return Error(ErrorKind::kRuntime, "device ", device.ToString(),
                 " is not there: this machine has ", backend->DeviceCount(), " ", Name(device.type),
                 " device(s)");
  }
  return backend;
}

}  // namespace oneflow_lite
