// SPDX-License-Identifier: Apache-2.0
//
// What the CUDA kernels can do on a device: asked once.
#include <mutex>
#include <string>

#include "oneflow_lite/core/cuda/cuda_status.h"
#include "primitive/cuda/architecture.h"
#include "python/torch/bindings/launch.h"

namespace oneflow_lite::torch_ops {
namespace {

constexpr int kMostDevices = 64;

std::string DriverVersion(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

// The kernels are of one major release of CUDA; a driver for an older one cannot run them.
Status CheckDriver() {
  int version = 0;
  OFL_RETURN_IF_ERROR(CudaStatus(cudaDriverGetVersion(&version), "query of the driver"));
  if (version / 1000 >= CUDART_VERSION / 1000) return OkStatus();
  if (version == 0) {
    return Error(ErrorKind::kRuntime, "oneflow_lite_torch: there is no NVIDIA driver here");
  }
  return Error(ErrorKind::kRuntime, "oneflow_lite_torch: its kernels need a driver for CUDA ",
               CUDART_VERSION / 1000, " or newer; this one is for CUDA ", DriverVersion(version));
}

Status Query(int device, DeviceProperties* p) {
  OFL_RETURN_IF_ERROR(CheckDriver());
  const auto query = [&](cudaDeviceAttr attribute, int* value) {
    return CudaStatus(cudaDeviceGetAttribute(value, attribute, device), "query of the device");
  };
  int major = 0, minor = 0, block = 0, sm = 0, clusters = 0, cooperative = 0, l2 = 0;
  OFL_RETURN_IF_ERROR(query(cudaDevAttrComputeCapabilityMajor, &major));
  OFL_RETURN_IF_ERROR(query(cudaDevAttrComputeCapabilityMinor, &minor));
  OFL_RETURN_IF_ERROR(query(cudaDevAttrMultiProcessorCount, &p->multiprocessors));
  OFL_RETURN_IF_ERROR(query(cudaDevAttrMaxSharedMemoryPerBlockOptin, &block));
  OFL_RETURN_IF_ERROR(query(cudaDevAttrMaxSharedMemoryPerMultiprocessor, &sm));
  OFL_RETURN_IF_ERROR(query(cudaDevAttrClusterLaunch, &clusters));
  OFL_RETURN_IF_ERROR(query(cudaDevAttrCooperativeLaunch, &cooperative));
  OFL_RETURN_IF_ERROR(query(cudaDevAttrL2CacheSize, &l2));
  p->compute_capability = major * 10 + minor;
  p->shared_memory_per_block = block;
  p->shared_memory_per_sm = sm;
  p->l2_bytes = l2;
  p->supports_clusters = clusters != 0;
  p->supports_cooperative_launch = cooperative != 0;
  DeviceGuard guard(device);
  int architecture = 0;
  if (cuda::FindArchitecture(&architecture) == cudaSuccess) return OkStatus();
  cudaGetLastError();
  return Error(ErrorKind::kRuntime,
               "oneflow_lite_torch: this build has no kernels for a GPU of "
               "compute capability ",
               major, ".", minor);
}

struct Known {
  std::once_flag once;
  DeviceProperties properties;
  Status status;
};

const Known& Ask(int device) {
  static Known known[kMostDevices];
  Require(device >= 0 && device < kMostDevices, "oneflow_lite_torch: cuda:", device,
          " is beyond the 64 devices that are served");
  Known& k = known[device];
  std::call_once(k.once, [&] { k.status = Query(device, &k.properties); });
  return k;
}

}  // namespace

const DeviceProperties& CudaProperties(int device) {
  const Known& k = Ask(device);
  Require(k.status.ok(), k.status.message());  // such a device is PyTorch's
  return k.properties;
}

}  // namespace oneflow_lite::torch_ops
