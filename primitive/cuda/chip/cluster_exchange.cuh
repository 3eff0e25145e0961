// SPDX-License-Identifier: Apache-2.0
//
// A sum over the blocks of a cluster, again and again, without a cluster-wide barrier: that would
// wait for all that a thread has written to memory. Each block sends its value to the others by
// stores that a barrier object of the receiver counts (sm_90 and later; elsewhere a cluster is a
// single block and there is nothing to sum).
#pragma once

#include "primitive/cuda/chip/cluster.cuh"
#include "primitive/cuda/chip/group.cuh"

namespace oneflow_lite::cuda {

class ClusterExchange {
 public:
  static constexpr int kMaxBlocks = kMaxClusterBlocks;
  static constexpr int kScratchBytes = 2 * (kMaxBlocks * kReduceSlotBytes + ClusterBarrier::kBytes);

  // `scratch` is shared memory, aligned to 16 bytes, at the same place in every block. All threads
  // of the cluster must come here, and exchange at least once.
  OFL_DEVICE void Start(char* scratch) {
    scratch_ = scratch;
    if (threadIdx.x == 0) {
      for (int half = 0; half < 2; ++half) Barrier(half).Init();
      ClusterBarrier::Publish();
    }
    internal::ClusterArriveRelaxed();
  }
  OFL_DEVICE void Finish() {
    internal::ClusterArrive();
    internal::ClusterWait();
  }

  // Gives every block the values of all: Value<T>(slots, i) is that of block i; v is the same in
  // all threads of a block. T is a plain struct of at most kReduceSlotBytes. All threads of the
  // cluster must come here. Once they have read the slots, the threads of a block must meet in a
  // barrier before the next exchange: that of the reduction over the block that gives v.
  template <class T>
  OFL_DEVICE const char* Exchange(const T& v) {
    static_assert(sizeof(T) <= kReduceSlotBytes);
    // Another block's shared memory is there only once that block runs.
    if (turn_ == 0) internal::ClusterWait();
    const int half = turn_ & 1, parity = turn_ >> 1 & 1;
    // A half is written again in the turn after next. All threads have read it by then: they met in
    // their block's barrier before it sent its value of the turn in between, which the writer has.
    turn_ += 1;
    char* slots = scratch_ + half * kMaxBlocks * kReduceSlotBytes;
    const ClusterBarrier barrier = Barrier(half);
    if (static_cast<int>(threadIdx.x) < size()) {
      char* own = slots + internal::ClusterRank() * kReduceSlotBytes;
      barrier.Send(reinterpret_cast<T*>(own), threadIdx.x, v);
    }
    if (threadIdx.x == 0) barrier.Expect(size() * static_cast<int>(sizeof(T)));
    barrier.Await(parity);
    return slots;
  }
  template <class T>
  OFL_DEVICE static const T& Value(const char* slots, int i) {
    return *reinterpret_cast<const T*>(slots + i * kReduceSlotBytes);
  }
  // The sum in the order of the blocks.
  template <class T>
  OFL_DEVICE T Sum(const T& v) {
    const char* slots = Exchange(v);
    T sum = Value<T>(slots, 0);
    for (int i = 1; i < size(); ++i) sum = sum + Value<T>(slots, i);
    return sum;
  }
  // The blocks' values merged, in every thread with the same bits; `identity` stands for the blocks
  // that are not there.
  template <class T, class Op>
  OFL_DEVICE T Reduce(const T& v, Op op, const T& identity) {
    const char* slots = Exchange(v);
    const int lane = threadIdx.x % kWarp;
    // The opposite of Block::ReduceWarps: this choice between two addresses keeps `identity` in
    // memory, because some kernels have no register left for it.
    return ReduceLanes<kWarp>(lane < size() ? Value<T>(slots, lane) : identity, op);
  }
  OFL_DEVICE static int rank() { return static_cast<int>(internal::ClusterRank()); }
  OFL_DEVICE static int size() { return static_cast<int>(internal::ClusterSize()); }

 private:
  OFL_DEVICE ClusterBarrier Barrier(int half) const {
    return ClusterBarrier(scratch_ + 2 * kMaxBlocks * kReduceSlotBytes, half);
  }
  char* scratch_ = nullptr;
  int turn_ = 0;
};

// The first block of a cluster gets a row of values from each of its blocks, by stores that a
// barrier object of its own counts, so that nobody waits for what a thread has written to memory
// (sm_90 and later; elsewhere a cluster is a single block, whose values are its own).
//
//   ClusterGather<float> gather(shared, n);               // early
//   gather.Meet();                                        // all threads, before the first Give
//   gather.Give(i, v);                                    // each of n values, by some thread
//   if (gather.Take()) { ... gather.Value(block, i) ... }  // all threads; true in the first block

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
  OFL_DEVICE ClusterGather(char* shared, int values, bool together = true)
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
  OFL_DEVICE int block() const { return together_ ? static_cast<int>(internal::ClusterRank()) : 0; }
  OFL_DEVICE int blocks() const {
    return together_ ? static_cast<int>(internal::ClusterSize()) : 1;
  }

  // Once, by all threads, before the first Give: the first block's shared memory is there.
  OFL_DEVICE void Meet() {
    if (blocks() > 1) internal::ClusterWait();
  }
  OFL_DEVICE void Give(int i, C v) {
    C* const slot = slots_ + block() * values_ + i;
    if (blocks() == 1) {
      *slot = v;
    } else {
      barrier_.Send(slot, 0, v);
    }
  }
  OFL_DEVICE bool Take() {
    if (block() > 0) return false;
    if (blocks() == 1) {
      __syncthreads();
    } else {
      barrier_.Await(0);
    }
    return true;
  }
  OFL_DEVICE C Value(int block, int i) const { return slots_[block * values_ + i]; }

 private:
  static constexpr size_t kBarrierBytes = 16;

  C* slots_;
  ClusterBarrier barrier_;
  int values_;
  bool together_;
};

}  // namespace oneflow_lite::cuda
