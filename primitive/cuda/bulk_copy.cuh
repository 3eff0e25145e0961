// SPDX-License-Identifier: Apache-2.0
//
// Bulk copies from global to shared memory (sm_90 and later): one thread asks for many bytes, and a
// barrier object in shared memory counts them as they arrive.
//
//   if (threadIdx.x == 0) InitBulkBarrier(barrier, 1);
//   __syncthreads();
//   if (threadIdx.x == 0) {
//     ExpectBulk(barrier, bytes);
//     CopyBulk(slots, x, bytes, barrier);   // both aligned to 16 bytes, bytes a multiple of 16
//   }
//   WaitForBulk(barrier, 0);                // 1 the next time, and so on in turn
#pragma once

#include <stdint.h>

#include <nv/target>

namespace oneflow_lite {
namespace cuda {

// A constant on the device.
__device__ __forceinline__ bool HasBulkCopies() {
  NV_IF_ELSE_TARGET(NV_PROVIDES_SM_90, (return true;), (return false;))
}

// arrivals: how often ExpectBulk is called per use.
__device__ __forceinline__ void InitBulkBarrier(uint32_t barrier, int arrivals) {
  NV_IF_TARGET(NV_PROVIDES_SM_90, (asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n"
                                                "fence.mbarrier_init.release.cluster;\n"
                                                "fence.proxy.async.shared::cta;" ::"r"(barrier),
                                                "r"(arrivals)
                                                : "memory");))
}

// What the thread wrote to shared memory before is there for those who wait.
__device__ __forceinline__ void ExpectBulk(uint32_t barrier, int bytes) {
  NV_IF_TARGET(
      NV_PROVIDES_SM_90,
      (asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                    "r"(bytes)
                    : "memory");))
}

__device__ __forceinline__ void CopyBulk(uint32_t shared, const void* global, int bytes,
                                         uint32_t barrier) {
  NV_IF_TARGET(NV_PROVIDES_SM_90,
               (asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                             "[%0], [%1], %2, [%3];" ::"r"(shared),
                             "l"(__cvta_generic_to_global(global)), "r"(bytes), "r"(barrier)
                             : "memory");))
}

// A hint that `bytes` of memory will be read soon.
__device__ __forceinline__ void PrefetchBulk(const void* global, int bytes) {
  NV_IF_TARGET(NV_PROVIDES_SM_90, (asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(
                                                    __cvta_generic_to_global(global)),
                                                "r"(bytes)
                                                : "memory");))
}

__device__ __forceinline__ void WaitForBulk(uint32_t barrier, int parity) {
  NV_IF_TARGET(NV_PROVIDES_SM_90,
               (asm volatile("{ .reg .pred done;\n"
                             "again:\n"
                             "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                             "@!done bra again; }" ::"r"(barrier),
                             "r"(parity)
                             : "memory");))
}

}  // namespace cuda
}  // namespace oneflow_lite
