// SPDX-License-Identifier: Apache-2.0
//
// What a device can do, and which of it the code may use that was compiled for it.
//
//   DeviceLimits limits;
//   if (cudaError_t e = QueryDeviceLimits(device, &limits)) return e;  // once per device; keep it
#pragma once

#include <cuda_runtime.h>

#include "primitive/cuda/chip/device_limits.h"

namespace oneflow_lite::cuda {
namespace internal {

// Never launched: its attributes say of which architecture a device takes the code.
template <class>
static __global__ void ArchitectureProbe() {}

}  // namespace internal

// The architecture for which that code was compiled which the current device runs: 80 where there
// is code for sm_80 alone, though a device of sm_90 translates it for itself.
//
// These two functions are templates and static, so that each translation unit has its own, which
// asks about the code of that unit, and has none where it does not ask.
template <class Unused = void>
static cudaError_t QueryArchitecture(int* architecture) {
  cudaFuncAttributes attributes;
  const cudaError_t error = cudaFuncGetAttributes(&attributes, internal::ArchitectureProbe<Unused>);
  if (error == cudaSuccess) *architecture = attributes.ptxVersion;
  return error;
}

// The limits of a device for launches from this translation unit. Clusters are what the device and
// the code have: a launch in clusters of code without them would give wrong results.
template <class Unused = void>
static cudaError_t QueryDeviceLimits(int device, DeviceLimits* limits) {
  limits->device = device;
  cudaError_t error = cudaSuccess;
  const auto query = [&](cudaDeviceAttr attribute) {
    int value = 0;
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&value, attribute, device);
    return value;
  };
  limits->multiprocessors = query(cudaDevAttrMultiProcessorCount);
  limits->shared_per_block = query(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  limits->shared_per_multiprocessor = query(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
  limits->cooperative = query(cudaDevAttrCooperativeLaunch) != 0;
  limits->clusters = query(cudaDevAttrClusterLaunch) != 0;
  if (error != cudaSuccess || !limits->clusters) return error;
  int current = 0, architecture = 0;
  error = cudaGetDevice(&current);
  if (error != cudaSuccess) return error;
  if (current != device) error = cudaSetDevice(device);
  if (error == cudaSuccess) error = QueryArchitecture<Unused>(&architecture);
  limits->clusters = architecture >= kFirstWithClusters;
  const cudaError_t restored = current != device ? cudaSetDevice(current) : cudaSuccess;
  return error != cudaSuccess ? error : restored;
}

}  // namespace oneflow_lite::cuda
