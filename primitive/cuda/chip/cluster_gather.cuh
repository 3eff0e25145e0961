// SPDX-License-Identifier: Apache-2.0
//
// The first block of a cluster gets a row of values from each of its blocks, by stores that a
// barrier object of its own counts, so that nobody waits for what a thread has written to memory
// (sm_90 and later; elsewhere a cluster is a single block, whose values are its own).
//
//   ClusterGather<float> gather(shared, n);               // early
//   gather.Meet();                                        // all threads, before the first Give
//   gather.Give(i, v);                                    // each of n values, by some thread
//   if (gather.Take()) { ... gather.Value(block, i) ... }  // all threads; true in the first block
#pragma once

#include "primitive/cuda/chip/cluster.cuh"

namespace oneflow_lite {
namespace cuda {

// C has 4 or 8 bytes.
template <class C>
class ClusterGather {
 public:
  __host__ __device__ static constexpr size_t Bytes(int blocks, int values) {
    return kBarrierBytes + sizeof(C) * blocks * values;
  }

  // `shared`: Bytes, aligned to 16, at the same place in every block. All threads of all blocks
  // must come here, to Give at least one value per block, and to Take. Not `together`: each block
  // is alone, whatever the cluster.
  __device__ __forceinline__ ClusterGather(char* shared, int values, bool together = true)
      : slots_(reinterpret_cast<C*>(shared + kBarrierBytes)),
        barrier_(shared),
        values_(values),
        together_(together) {
    if (blocks() == 1) return;
    if (threadIdx.x == 0 && block() == 0) {
      barrier_.Init();
      ClusterBarrier::Publish();
      barrier_.Expect(blocks() * values * static_cast<int>(sizeof(C)));
    }
    internal::ClusterArriveRelaxed();
  }
  __device__ __forceinline__ int block() const {
    return together_ ? static_cast<int>(internal::ClusterRank()) : 0;
  }
  __device__ __forceinline__ int blocks() const {
    return together_ ? static_cast<int>(internal::ClusterSize()) : 1;
  }

  // Once, by all threads, before the first Give: the first block's shared memory is there.
  __device__ __forceinline__ void Meet() {
    if (blocks() > 1) internal::ClusterWait();
  }
  __device__ __forceinline__ void Give(int i, C v) {
    C* const slot = slots_ + block() * values_ + i;
    if (blocks() == 1) {
      *slot = v;
    } else {
      barrier_.Send(slot, 0, v);
    }
  }
  __device__ __forceinline__ bool Take() {
    if (block() > 0) return false;
    if (blocks() == 1) {
      __syncthreads();
    } else {
      barrier_.Await(0);
    }
    return true;
  }
  __device__ __forceinline__ C Value(int block, int i) const { return slots_[block * values_ + i]; }

 private:
  static constexpr size_t kBarrierBytes = 16;

  C* slots_;
  ClusterBarrier barrier_;
  int values_;
  bool together_;
};

}  // namespace cuda
}  // namespace oneflow_lite
