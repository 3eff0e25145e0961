// SPDX-License-Identifier: Apache-2.0
//
// Copies from global to shared memory that run while the thread goes on, and a barrier for some of
// a block's warps.
//
//   CopyAsync(slot, x, 16);   // both aligned to 16 bytes
//   CommitCopies();           // closes a batch
//   WaitForCopies(1);         // until at most one batch of this thread is under way
#pragma once

#include <stdint.h>

#include <nv/target>

#include "primitive/cuda/chip/cluster.cuh"

namespace oneflow_lite::cuda {

// The first `bytes` of 16 are copied, zeros take the place of the rest. The thread that waits for
// the copy may read the slot; others after a barrier.
OFL_DEVICE void CopyAsync(uint32_t shared, const void* global, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(shared), "l"(__cvta_generic_to_global(global)), "r"(bytes)
               : "memory");
}
OFL_DEVICE void CopyAsync(void* shared, const void* global, int bytes) {
  CopyAsync(static_cast<uint32_t>(__cvta_generic_to_shared(shared)), global, bytes);
}
// Loads 16 bytes from an address in the window of shared memory. The load is made here: the
// compiler may not use what it read there before.
OFL_DEVICE uint4 LoadShared(uint32_t shared) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(shared));
  return v;
}

OFL_DEVICE void CommitCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int kPending>
OFL_DEVICE void WaitForCopiesOf() {
  asm volatile("cp.async.wait_group %0;" : : "n"(kPending) : "memory");
}
// Until at most `pending` batches of this thread are under way: 0 to kMaxPendingCopies, the same
// number in all threads.
inline constexpr int kMaxPendingCopies = 3;
OFL_DEVICE void WaitForCopies(int pending) {
  if (pending >= 3) {
    WaitForCopiesOf<3>();
  } else if (pending == 2) {
    WaitForCopiesOf<2>();
  } else if (pending == 1) {
    WaitForCopiesOf<1>();
  } else {
    WaitForCopiesOf<0>();
  }
}

// A barrier of `threads` threads, whole warps, of a block. Barrier 0 is __syncthreads().
OFL_DEVICE void NamedBarrier(int id, int threads) {
  asm volatile("bar.sync %0, %1;" : : "r"(id), "r"(threads) : "memory");
}

// Hints that a line of memory will be read soon.
OFL_DEVICE void PrefetchToL2(const void* global) {
  asm volatile("prefetch.global.L2 [%0];" : : "l"(__cvta_generic_to_global(global)));
}

// Lets a kernel behind this one that may start before its end (LaunchAfter, LaunchFusedRows) take
// its place as soon as there is room, though it still waits.
OFL_DEVICE void AllowNextKernel() {
  NV_IF_TARGET(NV_PROVIDES_SM_90, (asm volatile("griddepcontrol.launch_dependents;" ::: "memory");))
}
// In a kernel that may start before the one in front of it has ended: waits for that, and for what
// it wrote.
OFL_DEVICE void WaitForPreviousKernel() {
  NV_IF_TARGET(NV_PROVIDES_SM_90, (asm volatile("griddepcontrol.wait;" ::: "memory");))
}

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

// A constant on the device.
OFL_DEVICE bool HasBulkCopies() {
  NV_IF_ELSE_TARGET(NV_PROVIDES_SM_90, (return true;), (return false;))
}

// Of threads that have written what StoreBulk is to read, before they meet the one that calls it.
OFL_DEVICE void PublishToStores() {
  NV_IF_TARGET(NV_PROVIDES_SM_90, (asm volatile("fence.proxy.async.shared::cta;" ::: "memory");))
}
// After the last Init of barriers that count copies.
OFL_DEVICE void PublishToCopies() {
  ClusterBarrier::Publish();
  PublishToStores();
}

OFL_DEVICE void CopyBulk(const ClusterBarrier& barrier, void* shared, const void* global,
                         int bytes) {
  NV_IF_TARGET(
      NV_PROVIDES_SM_90,
      (asm volatile(
           "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
           "[%0], [%1], %2, [%3];" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(shared))),
           "l"(__cvta_generic_to_global(global)), "r"(bytes), "r"(barrier.address())
           : "memory");))
}

// Returns when shared memory has been read. Both aligned to 16 bytes, bytes a multiple of 16.
OFL_DEVICE void StoreBulk(void* global, const void* shared, int bytes) {
  NV_IF_TARGET(
      NV_PROVIDES_SM_90,
      (asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n"
                    "cp.async.bulk.commit_group;\n"
                    "cp.async.bulk.wait_group.read 0;" ::"l"(__cvta_generic_to_global(global)),
                    "r"(static_cast<uint32_t>(__cvta_generic_to_shared(shared))), "r"(bytes)
                    : "memory");))
}

// A hint that `bytes` of memory will be read soon.
OFL_DEVICE void PrefetchBulk(const void* global, int bytes) {
  NV_IF_TARGET(NV_PROVIDES_SM_90, (asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(
                                                    __cvta_generic_to_global(global)),
                                                "r"(bytes)
                                                : "memory");))
}

}  // namespace oneflow_lite::cuda
