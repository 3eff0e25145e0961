// SPDX-License-Identifier: Apache-2.0
//
// The blocks of a thread-block cluster (sm_90 and later) that work on one row together. The one
// place of the row kernels that tells architectures apart: elsewhere a cluster is a single block.
#pragma once

#include <string.h>

#include <nv/target>

#include "primitive/cuda/group.cuh"

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
// All threads of all blocks meet in Wait; what they wrote to shared memory before Arrive is seen
// after it.
__device__ __forceinline__ void ClusterArrive() {
  NV_IF_TARGET(NV_PROVIDES_SM_90, (asm volatile("barrier.cluster.arrive.release;" ::: "memory");))
}
__device__ __forceinline__ void ClusterWait() {
  NV_IF_TARGET(NV_PROVIDES_SM_90, (asm volatile("barrier.cluster.wait.acquire;" ::: "memory");))
}
// Writes a word to the place in block `rank` that `mine` is in this block; both shared memory.
__device__ __forceinline__ void StoreToBlock(uint32_t* mine, unsigned rank, uint32_t value) {
  NV_IF_TARGET(NV_PROVIDES_SM_90,
               (uint32_t theirs; asm volatile(
                    "mapa.shared::cluster.u32 %0, %1, %2;"
                    : "=r"(theirs)
                    : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(mine))), "r"(rank));
                asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(theirs), "r"(value)
                             : "memory");))
}

}  // namespace internal

class Cluster {
 public:
  static constexpr int kScratchBytes = 2 * kMaxClusterBlocks * kReduceSlotBytes;

  // `scratch` is shared memory at the same place in every block. All threads of the cluster must
  // construct it, and call Reduce at least once.
  __device__ __forceinline__ explicit Cluster(void* scratch)
      : scratch_(static_cast<char*>(scratch)) {
    internal::ClusterArrive();
  }
  __device__ __forceinline__ int rank() const { return static_cast<int>(internal::ClusterRank()); }
  __device__ __forceinline__ int size() const { return static_cast<int>(internal::ClusterSize()); }

  // Merges the blocks' values, each the same in all threads of its block, in the order of the
  // blocks; every thread gets the result. All threads of the cluster must call it.
  template <class T, class Op>
  __device__ __forceinline__ T Reduce(const T& v, Op op) {
    static_assert(sizeof(T) % 4 == 0 && sizeof(T) <= kReduceSlotBytes);
    constexpr int kWords = sizeof(T) / 4;
    // Another block's shared memory is there only once that block runs.
    if (!met_) internal::ClusterWait();
    met_ = true;
    const int size = this->size();
    // The two halves alternate: who writes a half again has passed the barrier of the reduction in
    // between, which all blocks reach after they have read.
    char* slots = scratch_ + phase_ * kMaxClusterBlocks * kReduceSlotBytes;
    phase_ ^= 1;
    if (static_cast<int>(threadIdx.x) < size) {
      uint32_t words[kWords];
      memcpy(words, &v, sizeof(T));
      auto* slot = reinterpret_cast<uint32_t*>(slots + rank() * kReduceSlotBytes);
#pragma unroll
      for (int i = 0; i < kWords; ++i) internal::StoreToBlock(slot + i, threadIdx.x, words[i]);
    }
    internal::ClusterArrive();
    internal::ClusterWait();
    T merged = *reinterpret_cast<const T*>(slots);
    for (int i = 1; i < size; ++i) {
      merged = op(merged, *reinterpret_cast<const T*>(slots + i * kReduceSlotBytes));
    }
    return merged;
  }

 private:
  char* scratch_;
  int phase_ = 0;
  bool met_ = false;
};

}  // namespace cuda
}  // namespace oneflow_lite
