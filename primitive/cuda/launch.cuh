// SPDX-License-Identifier: Apache-2.0
//
// Launching kernels: no device queries, no allocation, one error code.
//
//   return Launch(MyKernel<float>, blocks, threads, /*shared=*/0, stream, x, y, n);
#pragma once

#include <cuda_runtime_api.h>
#include <stdint.h>

#include <atomic>

namespace oneflow_lite {
namespace cuda {

// What a launcher must know about the device; read once per device by the caller.
struct DeviceLimits {
  int device = 0;
  int multiprocessors = 1;
  int shared_per_block = 48 << 10;  // bytes, after opt-in
  int shared_per_multiprocessor = 48 << 10;
};

// For callers without a cache of their own: asks the driver.
inline cudaError_t QueryDeviceLimits(int device, DeviceLimits* limits) {
  limits->device = device;
  cudaError_t error =
      cudaDeviceGetAttribute(&limits->multiprocessors, cudaDevAttrMultiProcessorCount, device);
  if (error != cudaSuccess) return error;
  error = cudaDeviceGetAttribute(&limits->shared_per_block, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                                 device);
  if (error != cudaSuccess) return error;
  return cudaDeviceGetAttribute(&limits->shared_per_multiprocessor,
                                cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
}

// Kernels loop over what a grid of this size does not cover.
inline constexpr int64_t kMaxBlocks = (int64_t{1} << 31) - 1;

template <class... Params, class... Args>
cudaError_t Launch(void (*kernel)(Params...), int64_t blocks, int threads, size_t shared,
                   cudaStream_t stream, const Args&... args) {
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(blocks < kMaxBlocks ? blocks : kMaxBlocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, Params(args)...);
}

// Lets the kernel use all the shared memory that a block of the device may have. The driver is
// asked once per kernel and device.
template <auto kernel>
cudaError_t AllowAllShared(const DeviceLimits& limits) {
  static std::atomic<uint64_t> allowed{0};
  const uint64_t bit = limits.device < 64 ? uint64_t{1} << limits.device : 0;
  if (allowed.load(std::memory_order_relaxed) & bit) return cudaSuccess;
  const cudaError_t error = cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, limits.shared_per_block);
  if (error == cudaSuccess) allowed.fetch_or(bit, std::memory_order_relaxed);
  return error;
}

constexpr int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace cuda
}  // namespace oneflow_lite
