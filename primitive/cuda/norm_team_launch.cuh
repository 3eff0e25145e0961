// SPDX-License-Identifier: Apache-2.0
//
// Launching kernels of teams (norm_team.cuh).
#pragma once

#include <initializer_list>

#include "primitive/cuda/launch.cuh"
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

// Asks the driver how many clusters of so many blocks of the kernel, a block per multiprocessor,
// the device holds at once: for blocks with so much shared memory that there is no room for a
// second one, however much a plan's have.
template <auto kernel>
int AskMaxClusters(int blocks, int threads, const DeviceLimits& limits) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {static_cast<unsigned>(blocks), 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = static_cast<size_t>(limits.shared_per_block) / 4 * 3;
  config.attrs = &attribute;
  config.numAttrs = 1;
  int clusters = 0;
  cudaError_t error = AllowAllShared<kernel>(limits);
  if (error == cudaSuccess && blocks > 8) error = AllowLargeClusters<kernel>();
  if (error == cudaSuccess) error = cudaOccupancyMaxActiveClusters(&clusters, kernel, &config);
  if (error == cudaSuccess) return clusters;
  cudaGetLastError();  // "none" is an answer, not an error of the caller's
  return 0;
}

// The same for 2 to 16 blocks, remembered by kernel, device and size: none too, so that a launch
// finds the plan that its workspace was made for.
template <auto kernel>
int MaxClusters(int blocks, int threads, const DeviceLimits& limits) {
  static std::atomic<int> known[64][kMaxClusterBlocks + 1];  // one more; 0: not asked yet
  if (!limits.clusters) return 0;
  const int most = limits.multiprocessors / blocks;
  if (limits.device < 0 || limits.device >= 64) return most;
  std::atomic<int>& slot = known[limits.device][blocks];
  int clusters = slot.load(std::memory_order_relaxed) - 1;
  if (clusters < 0) {
    clusters = AskMaxClusters<kernel>(blocks, threads, limits);
    slot.store(clusters + 1, std::memory_order_relaxed);
  }
  return clusters < most ? clusters : most;
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
