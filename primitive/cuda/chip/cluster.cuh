// SPDX-License-Identifier: Apache-2.0
//
// The blocks of a thread-block cluster (sm_90 and later) that work on one row together; elsewhere a
// cluster is a single block. This file and chip/async_copy.cuh alone tell architectures apart.
#pragma once

#include <stdint.h>
#include <string.h>

#include <nv/target>
#include <type_traits>

#include "primitive/cuda/chip/inline.cuh"

namespace oneflow_lite::cuda {

inline constexpr int kMaxClusterBlocks = 16;

namespace internal {

OFL_DEVICE unsigned ClusterRank() {
  unsigned rank = 0;
  NV_IF_TARGET(NV_PROVIDES_SM_90, (asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));))
  return rank;
}
OFL_DEVICE unsigned ClusterSize() {
  unsigned size = 1;
  NV_IF_TARGET(NV_PROVIDES_SM_90, (asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));))
  return size;
}
// Which cluster of the grid, along x.
OFL_DEVICE unsigned ClusterIndex() {
  unsigned index = blockIdx.x;
  NV_IF_TARGET(NV_PROVIDES_SM_90, (asm("mov.u32 %0, %%clusterid.x;" : "=r"(index));))
  return index;
}
// All threads of all blocks meet in Wait; what they wrote before Arrive is seen after it, which
// ArriveRelaxed does not promise: it waits for no writes.
OFL_DEVICE void ClusterArrive() {
  NV_IF_TARGET(NV_PROVIDES_SM_90, (asm volatile("barrier.cluster.arrive.release;" ::: "memory");))
}
OFL_DEVICE void ClusterArriveRelaxed() {
  NV_IF_TARGET(NV_PROVIDES_SM_90, (asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");))
}
OFL_DEVICE void ClusterWait() {
  NV_IF_TARGET(NV_PROVIDES_SM_90, (asm volatile("barrier.cluster.wait.acquire;" ::: "memory");))
}

}  // namespace internal

// A barrier object in shared memory that counts arrivals, and bytes which blocks of the cluster or
// bulk copies store (elsewhere nothing is sent). Unlike a barrier of the cluster it waits for no
// other writes.
class ClusterBarrier {
 public:
  static constexpr int kBytes = 8;

  // `place` is shared memory, aligned to 8 bytes, at the same place in every block; `index` of
  // several that follow one another.
  OFL_DEVICE explicit ClusterBarrier(const void* place, int index = 0)
      : at_(Address(place) + index * kBytes) {}

  // By one thread, before the blocks meet; Publish after the last Init. arrivals: how many calls of
  // Expect or Arrive make a turn.
  OFL_DEVICE void Init(int arrivals = 1) const {
    NV_IF_TARGET(NV_PROVIDES_SM_90,
                 (asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at_), "r"(arrivals)
                               : "memory");))
  }
  OFL_DEVICE static void Publish() {
    NV_IF_TARGET(NV_PROVIDES_SM_90, (asm volatile("fence.mbarrier_init.release.cluster;" ::
                                                      : "memory");))
  }
  // Of this block. What the thread wrote to shared memory before is there for those who await.
  OFL_DEVICE void Arrive() const {
    NV_IF_TARGET(NV_PROVIDES_SM_90,
                 (asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at_)
                               : "memory");))
  }
  // The same, and says how many bytes come in during this turn besides.
  OFL_DEVICE void Expect(int bytes) const {
    NV_IF_TARGET(NV_PROVIDES_SM_90,
                 (asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at_),
                               "r"(bytes)
                               : "memory");))
  }
  // Until all have arrived and all bytes come in. `parity` is 0 in the first turn and alternates.
  OFL_DEVICE void Await(int parity) const {
    NV_IF_TARGET(
        NV_PROVIDES_SM_90,
        (asm volatile("{ .reg .pred done;\n"
                      "again:\n"
                      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
                      "@!done bra again; }" ::"r"(at_),
                      "r"(parity)
                      : "memory");))
  }
  // The same where all comes from this block or from bulk copies, so that no acquire over the
  // cluster is needed: that empties the L1, and waits for it.
  OFL_DEVICE void AwaitBlock(int parity) const {
    NV_IF_TARGET(NV_PROVIDES_SM_90,
                 (asm volatile("{ .reg .pred done;\n"
                               "again:\n"
                               "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                               "@!done bra again; }" ::"r"(at_),
                               "r"(parity)
                               : "memory");))
  }
  // Stores `v`, whose size is a multiple of 4, at the place in block `rank` that `slot` is here,
  // aligned as the largest word that divides its size, and counts its bytes there.
  template <class T>
  OFL_DEVICE void Send(T* slot, int rank, const T& v) const {
    using Word =
        std::conditional_t<sizeof(T) % 16 == 0, uint4,
                           std::conditional_t<sizeof(T) % 8 == 0, unsigned long long, uint32_t>>;
    constexpr int kWords = static_cast<int>(sizeof(T) / sizeof(Word));
    static_assert(kWords * sizeof(Word) == sizeof(T));
    Word words[kWords];
    memcpy(words, &v, sizeof(T));
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      SendWord(Address(slot) + i * static_cast<int>(sizeof(Word)), rank, words[i]);
    }
  }

  // The barrier `index` places behind this one.
  OFL_DEVICE ClusterBarrier Next(int index) const {
    ClusterBarrier next = *this;
    next.at_ += index * kBytes;
    return next;
  }
  // Where it is, in the window of shared memory.
  OFL_DEVICE uint32_t address() const { return at_; }

 private:
  OFL_DEVICE static uint32_t Address(const void* p) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(p));
  }
  OFL_DEVICE void SendWord(uint32_t slot, int rank, const uint4& v) const {
    NV_IF_TARGET(NV_PROVIDES_SM_90,
                 (asm volatile("{ .reg .b32 to, count;\n"
                               "mapa.shared::cluster.u32 to, %0, %2;\n"
                               "mapa.shared::cluster.u32 count, %1, %2;\n"
                               "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 "
                               "[to], {%3, %4, %5, %6}, [count]; }" ::"r"(slot),
                               "r"(at_), "r"(rank), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                               : "memory");))
  }
  OFL_DEVICE void SendWord(uint32_t slot, int rank, unsigned long long v) const {
    NV_IF_TARGET(NV_PROVIDES_SM_90,
                 (asm volatile("{ .reg .b32 to, count;\n"
                               "mapa.shared::cluster.u32 to, %0, %2;\n"
                               "mapa.shared::cluster.u32 count, %1, %2;\n"
                               "st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 "
                               "[to], %3, [count]; }" ::"r"(slot),
                               "r"(at_), "r"(rank), "l"(v)
                               : "memory");))
  }
  OFL_DEVICE void SendWord(uint32_t slot, int rank, uint32_t v) const {
    NV_IF_TARGET(NV_PROVIDES_SM_90,
                 (asm volatile("{ .reg .b32 to, count;\n"
                               "mapa.shared::cluster.u32 to, %0, %2;\n"
                               "mapa.shared::cluster.u32 count, %1, %2;\n"
                               "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 "
                               "[to], %3, [count]; }" ::"r"(slot),
                               "r"(at_), "r"(rank), "r"(v)
                               : "memory");))
  }
  uint32_t at_;
};

}  // namespace oneflow_lite::cuda
