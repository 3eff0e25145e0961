// SPDX-License-Identifier: Apache-2.0
#include "primitive/cuda/c_api/device.h"

namespace oneflow_lite {
namespace cuda {
namespace {

constexpr int kMostDevices = 64;

// A device's limits, written by the first call that asks for them.
struct Known {
  enum : int { kNothing, kBeingWritten, kAll };
  std::atomic<int> state{kNothing};
  DeviceLimits limits;
};
Known known[kMostDevices];

}  // namespace

cudaError_t LimitsOfCurrentDevice(DeviceLimits* limits) {
  int device = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error != cudaSuccess) return error;
  Known* const entry = device < kMostDevices ? &known[device] : nullptr;
  if (entry && entry->state.load(std::memory_order_acquire) == Known::kAll) {
    *limits = entry->limits;
    return cudaSuccess;
  }
  error = QueryDeviceLimits(device, limits);
  int state = Known::kNothing;
  if (error != cudaSuccess || !entry ||
      !entry->state.compare_exchange_strong(state, Known::kBeingWritten)) {
    return error;
  }
  entry->limits = *limits;
  entry->state.store(Known::kAll, std::memory_order_release);
  return cudaSuccess;
}

}  // namespace cuda
}  // namespace oneflow_lite
