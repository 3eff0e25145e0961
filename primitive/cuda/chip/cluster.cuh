// SPDX-License-Identifier: Apache-2.0
//
// The blocks of a thread-block cluster (sm_90 and later) that work on one row together; elsewhere a
// cluster is a single block. This file, chip/cluster_barrier.cuh, chip/bulk_copy.cuh and
// chip/async_copy.cuh are the places of the row kernels that tell architectures apart.
#pragma once

#include <nv/target>

namespace oneflow_lite {
namespace cuda {

inline constexpr int kMaxClusterBlocks = 16;

namespace internal {

__device__ __forceinline__ unsigned ClusterRank() {
  unsigned rank = 0;
  NV_IF_TARGET(NV_PROVIDES_SM_90, (asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));))
  return rank;
}
__device__ __forceinline__ unsigned ClusterSize() {
  unsigned size = 1;
  NV_IF_TARGET(NV_PROVIDES_SM_90, (asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));))
  return size;
}
// Which cluster of the grid, along x.
__device__ __forceinline__ unsigned ClusterIndex() {
  unsigned index = blockIdx.x;
  NV_IF_TARGET(NV_PROVIDES_SM_90, (asm("mov.u32 %0, %%clusterid.x;" : "=r"(index));))
  return index;
}
// All threads of all blocks meet in Wait; what they wrote before Arrive is seen after it, which
// ArriveRelaxed does not promise: it waits for no writes.
__device__ __forceinline__ void ClusterArrive() {
  NV_IF_TARGET(NV_PROVIDES_SM_90, (asm volatile("barrier.cluster.arrive.release;" ::: "memory");))
}
__device__ __forceinline__ void ClusterArriveRelaxed() {
  NV_IF_TARGET(NV_PROVIDES_SM_90, (asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");))
}
__device__ __forceinline__ void ClusterWait() {
  NV_IF_TARGET(NV_PROVIDES_SM_90, (asm volatile("barrier.cluster.wait.acquire;" ::: "memory");))
}

}  // namespace internal

}  // namespace cuda
}  // namespace oneflow_lite
