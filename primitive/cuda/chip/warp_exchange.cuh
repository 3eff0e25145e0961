// SPDX-License-Identifier: Apache-2.0
//
// One exchange of a value per warp among all warps that work on a row: those of a block, or of a
// cluster of blocks (sm_90 and later), where each warp sends its value straight to every block.
//
//   WarpExchange<Sums> exchange(shared);   // before the row is loaded
//   exchange.Send(mine);
//   const Sums* all = exchange.Receive();  // of all warps, in their order
#pragma once

#include "primitive/cuda/chip/cluster.cuh"
#include "primitive/cuda/chip/group.cuh"

namespace oneflow_lite::cuda {

// T: a plain struct of a multiple of 16 bytes, aligned to 16. Serves one exchange. kRows: 2 where
// the warps work on two rows at once, of which each sends a value.
template <class T, int kRows = 1>
class WarpExchange {
 public:
  // Of dynamic shared memory.
  static constexpr size_t Bytes(int blocks, int threads) {
    return kBarrierBytes + sizeof(T) * kRows * blocks * (threads / kWarp);
  }

  // `shared` is at the same place in every block, aligned to 16 bytes. All threads of all blocks
  // must come here, to Send and to Receive.
  OFL_DEVICE explicit WarpExchange(void* shared)
      : slots_(reinterpret_cast<T*>(static_cast<char*>(shared) + kBarrierBytes)), barrier_(shared) {
    if (blocks() == 1) return;
    if (threadIdx.x == 0) {
      barrier_.Init();
      ClusterBarrier::Publish();
      barrier_.Expect(kRows * values() * static_cast<int>(sizeof(T)));
    }
    internal::ClusterArriveRelaxed();
  }
  OFL_DEVICE static int block() { return static_cast<int>(internal::ClusterRank()); }
  OFL_DEVICE static int blocks() { return static_cast<int>(internal::ClusterSize()); }
  OFL_DEVICE static int values() { return blocks() * static_cast<int>(blockDim.x) / kWarp; }

  // `mine` is the same in all lanes of a warp.
  OFL_DEVICE void Send(const T& mine) {
    const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
    if (blocks() == 1) {
      if (lane == 0) slots_[warp] = mine;
      return;
    }
    internal::ClusterWait();  // the other blocks' shared memory is there
    T* slot = slots_ + block() * (static_cast<int>(blockDim.x) / kWarp) + warp;
    if (lane < blocks()) barrier_.Send(slot, lane, mine);
  }
  // Of two rows; those of the second are behind all of the first.
  OFL_DEVICE void Send(const T& first, const T& second) {
    static_assert(kRows == 2, "");
    const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
    T* slot = slots_ + block() * (static_cast<int>(blockDim.x) / kWarp) + warp;
    if (blocks() == 1) {
      if (lane == 0) slot[0] = first, slot[values()] = second;
      return;
    }
    internal::ClusterWait();
    if (lane >= blocks()) return;
    barrier_.Send(slot, lane, first);
    barrier_.Send(slot + values(), lane, second);
  }
  OFL_DEVICE const T* Receive() {
    if (blocks() == 1) {
      __syncthreads();
    } else {
      barrier_.Await(0);
    }
    return slots_;
  }

 private:
  static constexpr size_t kBarrierBytes = 16;

  T* slots_;
  ClusterBarrier barrier_;
};

}  // namespace oneflow_lite::cuda
