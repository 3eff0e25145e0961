// SPDX-License-Identifier: Apache-2.0
//
// Launching kernels of teams (norms/backward/team.cuh).
#pragma once

#include <initializer_list>

#include "primitive/cuda/chip/launch.cuh"
#include "primitive/cuda/norms/backward/team.cuh"

namespace oneflow_lite {
namespace cuda {
namespace internal {

inline uint64_t AddressOf(const void* p) { return reinterpret_cast<uintptr_t>(p); }
inline bool AreMultiplesOf16(std::initializer_list<uint64_t> bytes) {
  uint64_t bits = 0;
  for (const uint64_t b : bytes) bits |= b;
  return bits % kPackBytes == 0;
}

// How many clusters of 2 to 16 blocks of the kernel, a block per multiprocessor, the device holds
// at once. The driver is asked once per kernel, device and size. It is asked about blocks with
// three quarters of the shared memory, whatever a plan's have: there is no room for a second one
// then. An answer of 0 is remembered too, so that a launch finds the plan that its workspace was
// made for.
template <auto kernel>
int MaxClusters(int blocks, int threads, const DeviceLimits& limits) {
  static std::atomic<int> known[64][kMaxClusterBlocks + 1];  // one more; 0: not asked yet
  if (!limits.clusters) return 0;
  const int most = limits.multiprocessors / blocks;
  if (limits.device < 0 || limits.device >= 64) return most;
  std::atomic<int>& slot = known[limits.device][blocks];
  int clusters = slot.load(std::memory_order_relaxed) - 1;
  if (clusters < 0) {
    if (AllowAllShared<kernel>(limits) != cudaSuccess) cudaGetLastError();  // then none will fit
    const size_t shared = static_cast<size_t>(limits.shared_per_block) / 4 * 3;
    clusters = AskForClusters<kernel>(blocks, threads, shared);
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
