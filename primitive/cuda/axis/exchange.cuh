// SPDX-License-Identifier: Apache-2.0
//
// How the threads that share columns merge what each has found: across the warps of a block
// through shared memory, across the blocks of a cluster by stores that a barrier object of the
// receiver counts, so that nobody waits for what a thread has written to memory. The order of
// merging is fixed.
#pragma once

#include "primitive/cuda/axis/policy.h"
#include "primitive/cuda/chip/cluster.cuh"
#include "primitive/cuda/chip/group.cuh"

namespace oneflow_lite {
namespace cuda {

// Stat has 4, 8 or 16 bytes; Stat() adds nothing. Merge is a symmetric functor. A thread has the
// kColumns columns of its lane, those of neighbouring lanes follow one another, and the other
// threads of the block have the same columns again.
template <class Stat, class Merge, int kColumns>
class AxisExchange {
 public:
  static_assert(sizeof(Stat) % 4 == 0);

  // `scratch` is shared memory of AxisScratch bytes (axis/policy.h), aligned to 16 bytes, at the
  // same place in every block.
  __device__ __forceinline__ AxisExchange(char* scratch, const AxisShape& p)
      : barrier_(scratch),
        lanes_(p.lanes),
        rows_(static_cast<int>(blockDim.x) / kWarp),
        columns_(p.lanes * kColumns),
        result_(reinterpret_cast<Stat*>(scratch + kAxisBarrierBytes)) {
    incoming_ = result_ + columns_ + 1;
    const int blocks = static_cast<int>(internal::ClusterSize());
    own_ = incoming_ + (blocks > 1 ? (columns_ + 1) * blocks : 0);
  }
  // Before MergeCluster, early: all threads of all blocks.
  __device__ __forceinline__ void Open() {
    if (threadIdx.x == 0) {
      barrier_.Init();
      ClusterBarrier::Publish();
    }
    internal::ClusterArriveRelaxed();
  }

  // What the warps' first lanes have found becomes what the block has, concluded by the caller, and
  // every thread reads its columns.
  template <class Conclude>
  __device__ __forceinline__ void MergeBlock(Stat (&stat)[kColumns], Conclude conclude) {
    Put(stat);
    MergeRows([&](int column) { return OwnOf(column); }, rows_,
              [&](int column, int member, int, const Stat& merged) {
                if (member == 0) result_[column] = conclude(merged);
              });
    Take(stat);
  }
  // The same over all blocks of the cluster. Once.
  template <class Conclude>
  __device__ __forceinline__ void MergeCluster(Stat (&stat)[kColumns], Conclude conclude) {
    const int rank = static_cast<int>(internal::ClusterRank());
    const int size = static_cast<int>(internal::ClusterSize());
    Put(stat);
    internal::ClusterWait();  // the others' barriers are there
    if (threadIdx.x == 0) barrier_.Expect(size * columns_ * static_cast<int>(sizeof(Stat)));
    MergeRows([&](int column) { return OwnOf(column); }, rows_,
              [&](int column, int member, int members, const Stat& merged) {
                Stat* slot = incoming_ + rank * (columns_ + 1) + column;
                for (int r = member; r < size; r += members) barrier_.Send(slot, r, merged);
              });
    barrier_.Await(0);
    const auto incoming = [&](int column) {
      return [column, this](int row) { return incoming_[row * (columns_ + 1) + column]; };
    };
    MergeRows(incoming, size, [&](int column, int member, int, const Stat& merged) {
      if (member == 0) result_[column] = conclude(merged);
    });
    Take(stat);
  }
  // The same of rows in global memory: row r of a column is at(column)(r).
  template <class At, class Conclude>
  __device__ __forceinline__ void MergeMemory(At at, int rows, Stat (&stat)[kColumns],
                                              Conclude conclude) {
    MergeRows(at, rows, [&](int column, int member, int, const Stat& merged) {
      if (member == 0) result_[column] = conclude(merged);
    });
    Take(stat);
  }

 private:
  // A row of own_ is one longer than it has columns, so that no two rows lie in the same banks.
  __device__ __forceinline__ int OwnRow() const { return lanes_ * kColumns + 1; }
  // What the rows found of a column: a functor of the row.
  __device__ __forceinline__ auto OwnOf(int column) const {
    return [column, own = own_, stride = OwnRow()](int row) { return own[row * stride + column]; };
  }
  __device__ __forceinline__ void Put(const Stat (&stat)[kColumns]) {
    const int t = static_cast<int>(threadIdx.x), row = t / kWarp, lane = t % kWarp;
    if (lane < lanes_) {
#pragma unroll
      for (int i = 0; i < kColumns; ++i) own_[row * OwnRow() + i * lanes_ + lane] = stat[i];
    }
    __syncthreads();
  }
  __device__ __forceinline__ void Take(Stat (&stat)[kColumns]) {
    __syncthreads();
    const int lane = static_cast<int>(threadIdx.x) % lanes_;
#pragma unroll
    for (int i = 0; i < kColumns; ++i) stat[i] = result_[i * lanes_ + lane];
  }
  // A column's rows are dealt to `members` neighbouring lanes. All threads of the block.
  template <class At, class Use>
  __device__ __forceinline__ void MergeRows(At at, int rows, Use use) {
    int members = 1;
    while (members < rows && members < kWarp) members *= 2;
    const int member = static_cast<int>(threadIdx.x) & (members - 1);
    const int first = static_cast<int>(threadIdx.x) / members;
    for (int base = 0; base < columns_; base += static_cast<int>(blockDim.x) / members) {
      const int column = base + first;  // whole warps stay together for the shuffles
      Stat merged = Stat();
      if (column < columns_) {
        const auto from = at(column);
        for (int r = member; r < rows; r += members) merged = Merge{}(merged, from(r));
      }
      for (int mask = members / 2; mask > 0; mask /= 2) {
        merged = Merge{}(merged, ShuffleXor(merged, mask));
      }
      if (column < columns_) use(column, member, members, merged);
    }
  }

  ClusterBarrier barrier_;
  int lanes_, rows_, columns_;
  Stat *result_, *incoming_, *own_;
};

}  // namespace cuda
}  // namespace oneflow_lite
