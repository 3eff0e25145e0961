// SPDX-License-Identifier: Apache-2.0
//
// A sum over the blocks of a cluster, again and again, without a cluster-wide barrier: that would
// wait for all that a thread has written to memory. Each block sends its value to the others by
// stores that a barrier object of the receiver counts (sm_90 and later; elsewhere a cluster is a
// single block and there is nothing to sum).
#pragma once

#include <string.h>

#include "primitive/cuda/cluster.cuh"
#include "primitive/cuda/group.cuh"

namespace oneflow_lite {
namespace cuda {

class ClusterExchange {
 public:
  static constexpr int kMaxBlocks = kMaxClusterBlocks;
  static constexpr int kScratchBytes = 2 * kMaxBlocks * kReduceSlotBytes + 32;

  // `scratch` is shared memory, aligned to 16 bytes, at the same place in every block. All threads
  // of the cluster must come here, and exchange at least once.
  __device__ __forceinline__ void Start(char* scratch) {
    scratch_ = scratch;
    NV_IF_TARGET(
        NV_PROVIDES_SM_90, (if (threadIdx.x == 0) {
          for (int half = 0; half < 2; ++half) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(Barrier(half)) : "memory");
          }
          asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        }))
    internal::ClusterArriveRelaxed();
  }
  __device__ __forceinline__ void Finish() {
    internal::ClusterArrive();
    internal::ClusterWait();
  }

  // Gives every block the values of all: Value<T>(slots, i) is that of block i; v is the same in
  // all threads of a block. T is a plain struct of at most kReduceSlotBytes. All threads of the
  // cluster must come here. Once they have read the slots, the threads of a block must meet in a
  // barrier before the next exchange: that of the reduction over the block that gives v.
  template <class T>
  __device__ __forceinline__ const char* Exchange(const T& v) {
    static_assert(sizeof(T) <= kReduceSlotBytes);
    // Another block's shared memory is there only once that block runs.
    if (turn_ == 0) internal::ClusterWait();
    constexpr int kWords = static_cast<int>((sizeof(T) + 15) / 16);
    const int half = turn_ & 1, parity = turn_ >> 1 & 1;
    // A half is written again in the turn after next. All threads have read it by then: they met in
    // their block's barrier before it sent its value of the turn in between, which the writer has.
    turn_ += 1;
    char* slots = scratch_ + half * kMaxBlocks * kReduceSlotBytes;
    if (static_cast<int>(threadIdx.x) < size()) {
      uint4 words[kWords] = {};
      memcpy(words, &v, sizeof(T));
      const uint32_t slot = Shared(slots + internal::ClusterRank() * kReduceSlotBytes);
#pragma unroll
      for (int i = 0; i < kWords; ++i) Send(slot + 16 * i, threadIdx.x, Barrier(half), words[i]);
    }
    Wait(Barrier(half), parity, size() * kWords * 16);
    return slots;
  }
  template <class T>
  __device__ __forceinline__ static const T& Value(const char* slots, int i) {
    return *reinterpret_cast<const T*>(slots + i * kReduceSlotBytes);
  }
  // The sum in the order of the blocks.
  template <class T>
  __device__ __forceinline__ T Sum(const T& v) {
    const char* slots = Exchange(v);
    T sum = Value<T>(slots, 0);
    for (int i = 1; i < size(); ++i) sum = sum + Value<T>(slots, i);
    return sum;
  }
  // The blocks' values merged, in every thread with the same bits; `identity` stands for the blocks
  // that are not there.
  template <class T, class Op>
  __device__ __forceinline__ T Reduce(const T& v, Op op, const T& identity) {
    const char* slots = Exchange(v);
    const int lane = threadIdx.x % kWarp;
    T other = identity;
    if (lane < size()) other = Value<T>(slots, lane);
    return ReduceLanes<kWarp>(other, op);
  }
  __device__ __forceinline__ static int rank() { return static_cast<int>(internal::ClusterRank()); }
  __device__ __forceinline__ static int size() { return static_cast<int>(internal::ClusterSize()); }

 private:
  __device__ __forceinline__ static uint32_t Shared(const void* p) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(p));
  }
  __device__ __forceinline__ uint32_t Barrier(int half) const {
    return Shared(scratch_) + 2 * kMaxBlocks * kReduceSlotBytes + 8 * half;
  }
  // Stores 16 bytes at the place in block `rank` that `slot` is here, and counts them there.
  __device__ __forceinline__ static void Send(uint32_t slot, unsigned rank, uint32_t barrier,
                                              const uint4& v) {
    NV_IF_TARGET(NV_PROVIDES_SM_90,
                 (asm volatile("{ .reg .b32 to, count;\n"
                               "mapa.shared::cluster.u32 to, %0, %2;\n"
                               "mapa.shared::cluster.u32 count, %1, %2;\n"
                               "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 "
                               "[to], {%3, %4, %5, %6}, [count]; }" ::"r"(slot),
                               "r"(barrier), "r"(rank), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                               : "memory");))
  }
  // Until `bytes` have come in.
  __device__ __forceinline__ static void Wait(uint32_t barrier, int parity, int bytes) {
    NV_IF_TARGET(
        NV_PROVIDES_SM_90, (if (threadIdx.x == 0) {
          asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                       "r"(bytes)
                       : "memory");
        } asm volatile("{ .reg .pred done;\n"
                       "again:\n"
                       "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
                       "@!done bra again; }" ::"r"(barrier),
                           "r"(parity)
                           : "memory");))
  }

  char* scratch_ = nullptr;
  int turn_ = 0;
};

}  // namespace cuda
}  // namespace oneflow_lite
