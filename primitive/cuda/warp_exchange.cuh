// SPDX-License-Identifier: Apache-2.0
//
// One exchange of a value per warp among all warps that work on a row: those of a block, or of a
// cluster of blocks (sm_90 and later), where each warp sends its value straight to every block.
//
//   WarpExchange<Sums> exchange(shared);    // before the row is loaded
//   const Sums* all = exchange.Give(mine);  // of all warps, in their order
#pragma once

#include <string.h>

#include "primitive/cuda/cluster.cuh"
#include "primitive/cuda/group.cuh"

namespace oneflow_lite {
namespace cuda {

// T: a plain struct of a multiple of 16 bytes, aligned to 16. Serves one exchange.
template <class T>
class WarpExchange {
 public:
  // Of dynamic shared memory.
  static constexpr size_t Bytes(int blocks, int threads) {
    return kBarrierBytes + sizeof(T) * blocks * (threads / kWarp);
  }

  // `shared` is at the same place in every block, aligned to 16 bytes. All threads of all blocks
  // must come here, and to Give.
  __device__ __forceinline__ explicit WarpExchange(void* shared)
      : slots_(reinterpret_cast<T*>(static_cast<char*>(shared) + kBarrierBytes)),
        barrier_(static_cast<uint32_t>(__cvta_generic_to_shared(shared))) {
    if (blocks() == 1) return;
    if (threadIdx.x == 0) Expect(values() * static_cast<int>(sizeof(T)));
    internal::ClusterArriveRelaxed();
  }
  __device__ __forceinline__ static int block() {
    return static_cast<int>(internal::ClusterRank());
  }
  __device__ __forceinline__ static int blocks() {
    return static_cast<int>(internal::ClusterSize());
  }
  __device__ __forceinline__ static int values() {
    return blocks() * static_cast<int>(blockDim.x) / kWarp;
  }

  // `mine` is the same in all lanes of a warp.
  __device__ __forceinline__ const T* Give(const T& mine) {
    const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
    if (blocks() == 1) {
      if (lane == 0) slots_[warp] = mine;
      __syncthreads();
    } else {
      internal::ClusterWait();  // the other blocks' shared memory is there
      T* slot = slots_ + block() * (static_cast<int>(blockDim.x) / kWarp) + warp;
      if (lane < blocks()) Send(slot, lane, mine);
      Wait();
    }
    return slots_;
  }

 private:
  static constexpr size_t kBarrierBytes = 16;

  // Sets the barrier up for so many bytes that come in.
  __device__ __forceinline__ void Expect(int bytes) {
    NV_IF_TARGET(
        NV_PROVIDES_SM_90,
        (asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier_)
                      : "memory");
         asm volatile("fence.mbarrier_init.release.cluster;" ::
                          : "memory");
         asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier_),
                      "r"(bytes)
                      : "memory");))
  }
  // Stores at the place in another block that `slot` is here, and counts the bytes there.
  __device__ __forceinline__ void Send(T* slot, int block, const T& value) {
    const auto place = static_cast<uint32_t>(__cvta_generic_to_shared(slot));
    uint4 words[sizeof(T) / 16];
    memcpy(words, &value, sizeof(T));
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof(T) / 16); ++i) {
      NV_IF_TARGET(NV_PROVIDES_SM_90,
                   (asm volatile("{ .reg .b32 to, count;\n"
                                 "mapa.shared::cluster.u32 to, %0, %2;\n"
                                 "mapa.shared::cluster.u32 count, %1, %2;\n"
                                 "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 "
                                 "[to], {%3, %4, %5, %6}, [count]; }" ::"r"(place + 16 * i),
                                 "r"(barrier_), "r"(block), "r"(words[i].x), "r"(words[i].y),
                                 "r"(words[i].z), "r"(words[i].w)
                                 : "memory");))
    }
  }
  __device__ __forceinline__ void Wait() {
    NV_IF_TARGET(NV_PROVIDES_SM_90,
                 (asm volatile("{ .reg .pred done;\n"
                               "again:\n"
                               "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, "
                               "[%0], 0;\n"
                               "@!done bra again; }" ::"r"(barrier_)
                               : "memory");))
  }

  T* slots_;
  uint32_t barrier_;
};

}  // namespace cuda
}  // namespace oneflow_lite
