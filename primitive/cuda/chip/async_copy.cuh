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

namespace oneflow_lite {
namespace cuda {

// The first `bytes` of 16 are copied, zeros take the place of the rest. The thread that waits for
// the copy may read the slot; others after a barrier.
__device__ __forceinline__ void CopyAsync(uint32_t shared, const void* global, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(shared), "l"(__cvta_generic_to_global(global)), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void CopyAsync(void* shared, const void* global, int bytes) {
  CopyAsync(static_cast<uint32_t>(__cvta_generic_to_shared(shared)), global, bytes);
}
// Loads 16 bytes from an address in the window of shared memory. The load is made here: the
// compiler may not use what it read there before.
__device__ __forceinline__ uint4 LoadShared(uint32_t shared) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(shared));
  return v;
}

__device__ __forceinline__ void CommitCopies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int kPending>
__device__ __forceinline__ void WaitForCopiesOf() {
  asm volatile("cp.async.wait_group %0;" : : "n"(kPending) : "memory");
}
// Until at most `pending` batches of this thread are under way: 0 to kMaxPendingCopies, the same
// number in all threads.
inline constexpr int kMaxPendingCopies = 3;
__device__ __forceinline__ void WaitForCopies(int pending) {
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
__device__ __forceinline__ void NamedBarrier(int id, int threads) {
  asm volatile("bar.sync %0, %1;" : : "r"(id), "r"(threads) : "memory");
}

// Hints that a line of memory will be read soon.
__device__ __forceinline__ void PrefetchToL2(const void* global) {
  asm volatile("prefetch.global.L2 [%0];" : : "l"(__cvta_generic_to_global(global)));
}

// Lets a kernel behind this one that may start before its end (LaunchAfter, LaunchFusedRows) take
// its place as soon as there is room, though it still waits.
__device__ __forceinline__ void AllowNextKernel() {
  NV_IF_TARGET(NV_PROVIDES_SM_90, (asm volatile("griddepcontrol.launch_dependents;" ::: "memory");))
}
// In a kernel that may start before the one in front of it has ended: waits for that, and for what
// it wrote.
__device__ __forceinline__ void WaitForPreviousKernel() {
  NV_IF_TARGET(NV_PROVIDES_SM_90, (asm volatile("griddepcontrol.wait;" ::: "memory");))
}

}  // namespace cuda
}  // namespace oneflow_lite
