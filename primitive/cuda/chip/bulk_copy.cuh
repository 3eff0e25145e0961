// SPDX-License-Identifier: Apache-2.0
//
// Bulk copies from global to shared memory (sm_90 and later): one thread asks for many bytes, and a
// barrier object in shared memory counts them as they arrive. And back: the thread that asks waits.
//
//   const ClusterBarrier barrier(place);
//   if (threadIdx.x == 0) {
//     barrier.Init();
//     PublishToCopies();
//   }
//   __syncthreads();
//   if (threadIdx.x == 0) {
//     barrier.Expect(bytes);
//     CopyBulk(barrier, slots, x, bytes);   // both aligned to 16 bytes, bytes a multiple of 16
//   }
//   barrier.AwaitBlock(0);                  // 1 the next time, and so on in turn
#pragma once

#include "primitive/cuda/chip/cluster.cuh"

namespace oneflow_lite {
namespace cuda {

// A constant on the device.
__device__ __forceinline__ bool HasBulkCopies() {
  NV_IF_ELSE_TARGET(NV_PROVIDES_SM_90, (return true;), (return false;))
}

// After the last Init of barriers that count copies.
__device__ __forceinline__ void PublishToCopies() {
  ClusterBarrier::Publish();
  NV_IF_TARGET(NV_PROVIDES_SM_90, (asm volatile("fence.proxy.async.shared::cta;" ::: "memory");))
}

__device__ __forceinline__ void CopyBulk(const ClusterBarrier& barrier, void* shared,
                                         const void* global, int bytes) {
  NV_IF_TARGET(
      NV_PROVIDES_SM_90,
      (asm volatile(
           "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
           "[%0], [%1], %2, [%3];" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(shared))),
           "l"(__cvta_generic_to_global(global)), "r"(bytes), "r"(barrier.address())
           : "memory");))
}

// Of threads that have written what StoreBulk is to read, before they meet the one that calls it.
__device__ __forceinline__ void PublishToStores() {
  NV_IF_TARGET(NV_PROVIDES_SM_90, (asm volatile("fence.proxy.async.shared::cta;" ::: "memory");))
}

// Returns when shared memory has been read. Both aligned to 16 bytes, bytes a multiple of 16.
__device__ __forceinline__ void StoreBulk(void* global, const void* shared, int bytes) {
  NV_IF_TARGET(
      NV_PROVIDES_SM_90,
      (asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n"
                    "cp.async.bulk.commit_group;\n"
                    "cp.async.bulk.wait_group.read 0;" ::"l"(__cvta_generic_to_global(global)),
                    "r"(static_cast<uint32_t>(__cvta_generic_to_shared(shared))), "r"(bytes)
                    : "memory");))
}

// A hint that `bytes` of memory will be read soon.
__device__ __forceinline__ void PrefetchBulk(const void* global, int bytes) {
  NV_IF_TARGET(NV_PROVIDES_SM_90, (asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(
                                                    __cvta_generic_to_global(global)),
                                                "r"(bytes)
                                                : "memory");))
}

}  // namespace cuda
}  // namespace oneflow_lite
