// SPDX-License-Identifier: Apache-2.0
//
// How the threads that share columns merge what each has found: across the warps of a block
// through shared memory, across the blocks of a cluster by stores that a barrier object of the
// receiver counts, so that nobody waits for what a thread has written to memory. The order of
// merging is fixed.
#pragma once

#include "primitive/cuda/cluster.cuh"
#include "primitive/cuda/group.cuh"

namespace oneflow_lite {
namespace cuda {

// Stat has 4, 8 or 16 bytes; Stat() adds nothing. Merge is a symmetric functor.
// A thread has kColumns columns; those of `lanes` neighbouring threads (a power of two, at most a
// warp) follow one another, and the other threads of the block have the same columns again.
template <class Stat, class Merge, int kColumns>
class AxisExchange {
 public:
  static_assert(sizeof(Stat) % 4 == 0);

  // Bytes of scratch; `blocks` of a cluster.
  __host__ __device__ static constexpr int Bytes(int lanes, int warps, int blocks) {
    return kBarrierBytes + Row(lanes * kColumns) * (1 + warps + (blocks > 1 ? blocks : 0));
  }
  // `scratch` is shared memory, aligned to 16 bytes, at the same place in every block.
  __device__ __forceinline__ AxisExchange(char* scratch, int lanes, int warps)
      : barrier_(static_cast<uint32_t>(__cvta_generic_to_shared(scratch))),
        columns_(lanes * kColumns),
        result_(reinterpret_cast<Stat*>(scratch + kBarrierBytes)) {
    own_ = result_ + columns_ + 1;
    incoming_ = own_ + (columns_ + 1) * warps;
  }
  // Before MergeCluster, early: all threads of all blocks.
  __device__ __forceinline__ void Open() {
    NV_IF_TARGET(
        NV_PROVIDES_SM_90, (if (threadIdx.x == 0) {
          asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier_) : "memory");
          asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        }))
    internal::ClusterArriveRelaxed();
  }

  // What the warp's first lanes have found becomes what the block has, in result[column], for the
  // caller to change (conclude) on the way; then every thread reads its columns.
  template <class Conclude>
  __device__ __forceinline__ void MergeBlock(Stat (&stat)[kColumns], int lane, int warps,
                                             Conclude conclude) {
    Put(stat, lane);
    MergeRows([&](int row, int column) { return own_[row * (columns_ + 1) + column]; }, warps,
              [&](int column, int member, int, const Stat& merged) {
                if (member == 0) result_[column] = conclude(merged);
              });
    Take(stat, lane);
  }
  // The same over all blocks of the cluster. Once.
  template <class Conclude>
  __device__ __forceinline__ void MergeCluster(Stat (&stat)[kColumns], int lane, int warps,
                                               Conclude conclude) {
    const int rank = static_cast<int>(internal::ClusterRank());
    const int size = static_cast<int>(internal::ClusterSize());
    Put(stat, lane);
    internal::ClusterWait();  // the others' barriers are there
    Expect(size * columns_ * static_cast<int>(sizeof(Stat)));
    MergeRows([&](int row, int column) { return own_[row * (columns_ + 1) + column]; }, warps,
              [&](int column, int member, int members, const Stat& merged) {
                Stat* slot = incoming_ + rank * (columns_ + 1) + column;
                for (int r = member; r < size; r += members) Send(slot, r, merged);
              });
    Await();
    MergeRows([&](int row, int column) { return incoming_[row * (columns_ + 1) + column]; }, size,
              [&](int column, int member, int, const Stat& merged) {
                if (member == 0) result_[column] = conclude(merged);
              });
    Take(stat, lane);
  }
  // The same of rows in global memory: row r of a column is at(r, column).
  template <class At, class Conclude>
  __device__ __forceinline__ void MergeMemory(At at, int rows, Stat (&stat)[kColumns], int lane,
                                              Conclude conclude) {
    MergeRows(at, rows, [&](int column, int member, int, const Stat& merged) {
      if (member == 0) result_[column] = conclude(merged);
    });
    Take(stat, lane);
  }

 private:
  static constexpr int kBarrierBytes = 16;
  __host__ __device__ static constexpr int Row(int columns) {
    return (columns + 1) * static_cast<int>(sizeof(Stat));  // 1: no two rows in the same banks
  }

  __device__ __forceinline__ void Put(const Stat (&stat)[kColumns], int lane) {
    const int warp = static_cast<int>(threadIdx.x) / kWarp, lanes = columns_ / kColumns;
    if (static_cast<int>(threadIdx.x) % kWarp < lanes) {
#pragma unroll
      for (int i = 0; i < kColumns; ++i) own_[warp * (columns_ + 1) + i * lanes + lane] = stat[i];
    }
    __syncthreads();
  }
  __device__ __forceinline__ void Take(Stat (&stat)[kColumns], int lane) {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kColumns; ++i) stat[i] = result_[i * (columns_ / kColumns) + lane];
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
        for (int r = member; r < rows; r += members) merged = Merge{}(merged, at(r, column));
      }
      for (int mask = members / 2; mask > 0; mask /= 2) {
        merged = Merge{}(merged, ShuffleXor(merged, mask));
      }
      if (column < columns_) use(column, member, members, merged);
    }
  }
  __device__ __forceinline__ void Expect(int bytes) {
    NV_IF_TARGET(NV_PROVIDES_SM_90, (if (threadIdx.x == 0) {
                   asm volatile(
                       "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier_),
                       "r"(bytes)
                       : "memory");
                 }))
  }
  // Stores `v` at the place in block `rank` that `slot` is here, and counts its bytes there.
  __device__ __forceinline__ void Send(Stat* slot, int rank, const Stat& v) {
    constexpr int kWord = sizeof(Stat) % 8 == 0 ? 8 : 4;
    std::conditional_t<kWord == 8, unsigned long long, uint32_t> words[sizeof(Stat) / kWord];
    memcpy(words, &v, sizeof(Stat));
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof(Stat)) / kWord; ++i) {
      const uint32_t to = static_cast<uint32_t>(__cvta_generic_to_shared(slot)) + kWord * i;
      if constexpr (kWord == 8) {
        NV_IF_TARGET(NV_PROVIDES_SM_90,
                     (asm volatile("{ .reg .b32 to, count;\n"
                                   "mapa.shared::cluster.u32 to, %0, %2;\n"
                                   "mapa.shared::cluster.u32 count, %1, %2;\n"
                                   "st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 "
                                   "[to], %3, [count]; }" ::"r"(to),
                                   "r"(barrier_), "r"(rank), "l"(words[i])
                                   : "memory");))
      } else {
        NV_IF_TARGET(NV_PROVIDES_SM_90,
                     (asm volatile("{ .reg .b32 to, count;\n"
                                   "mapa.shared::cluster.u32 to, %0, %2;\n"
                                   "mapa.shared::cluster.u32 count, %1, %2;\n"
                                   "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 "
                                   "[to], %3, [count]; }" ::"r"(to),
                                   "r"(barrier_), "r"(rank), "r"(words[i])
                                   : "memory");))
      }
    }
  }
  __device__ __forceinline__ void Await() {
    NV_IF_TARGET(NV_PROVIDES_SM_90,
                 (asm volatile("{ .reg .pred done;\n"
                               "again:\n"
                               "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, "
                               "[%0], 0;\n"
                               "@!done bra again; }" ::"r"(barrier_)
                               : "memory");))
  }

  uint32_t barrier_;
  int columns_;
  Stat *result_, *own_, *incoming_;
};

}  // namespace cuda
}  // namespace oneflow_lite
