// SPDX-License-Identifier: Apache-2.0
//
// Launching kernels of teams (norm_team.cuh).
#pragma once

#include <initializer_list>

#include "primitive/cuda/norm_team.cuh"

namespace oneflow_lite {
namespace cuda {
namespace internal {

inline uint64_t AddressOf(const void* p) { return reinterpret_cast<uintptr_t>(p); }
inline bool AreMultiplesOf16(std::initializer_list<uint64_t> bytes) {
  uint64_t bits = 0;
  for (const uint64_t b : bytes) bits |= b;
  return bits % kPackBytes == 0;
}

// Lets the kernel run in clusters of more than eight blocks.
template <auto kernel>
cudaError_t AllowLargeClusters() {
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
}

// How many clusters of 2, 4, 8 or 16 blocks of the kernel, a block per multiprocessor, the device
// holds at once. The driver is asked once per kernel, device and size, for blocks with so much
// shared memory that there is no room for a second one, however much a plan's have.
template <auto kernel>
int MaxClusters(int blocks, int threads, const DeviceLimits& limits) {
  static std::atomic<int> known[64][kMaxClusterBlocks + 1];
  if (!limits.clusters) return 0;
  const int guess = limits.multiprocessors / blocks;
  if (limits.device < 0 || limits.device >= 64) return guess;
  std::atomic<int>& slot = known[limits.device][blocks];
  int clusters = slot.load(std::memory_order_relaxed);
  if (clusters > 0) return clusters;
  if (AllowAllShared<kernel>(limits) != cudaSuccess) return 0;
  if (blocks > 8 && AllowLargeClusters<kernel>() != cudaSuccess) return 0;
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {static_cast<unsigned>(blocks), 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = static_cast<size_t>(limits.shared_per_block) / 4 * 3;
  config.attrs = &attribute;
  config.numAttrs = 1;
  if (cudaOccupancyMaxActiveClusters(&clusters, kernel, &config) != cudaSuccess) {
    cudaGetLastError();  // "none" is an answer, not an error of the caller's
    return 0;
  }
  if (clusters > guess) clusters = guess;
  slot.store(clusters, std::memory_order_relaxed);
  return clusters;
}

template <auto kernel, class... Args>
cudaError_t LaunchTeams(const NormPlan& plan, const DeviceLimits& limits, cudaStream_t stream,
                        const Args&... args) {
  cudaError_t error = AllowAllShared<kernel>(limits);
  if (error != cudaSuccess) return error;
  LaunchKind kind;
  if (plan.cluster) kind.cluster = static_cast<int>(plan.slices);
  if (kind.cluster > 8) {
    error = AllowLargeClusters<kernel>();
    if (error != cudaSuccess) return error;
  }
  return LaunchAs(kind, kernel, plan.units * plan.slices, plan.threads,
                  static_cast<size_t>(plan.shared), stream, args...);
}

}  // namespace internal
}  // namespace cuda
}  // namespace oneflow_lite
