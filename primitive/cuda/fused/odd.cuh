// SPDX-License-Identifier: Apache-2.0
//
// A fused row (fused/row.cuh) whose ends lie inside packs of 16 bytes, of a block or a cluster
// (narrow ones: fused/lanes.cuh), where every matrix with a row for each begins at one: their packs
// lie alike, so that all are read as they are written. What serves all rows, a bias or a norm's
// weights, is read from a copy that lies as the row does (fused/copies.cuh). The first and the last
// whole pack count among the columns outside packs, at most one a thread of the first warp: nothing
// outside a row is read then.
#pragma once

#include "primitive/cuda/fused/copies.cuh"
#include "primitive/cuda/fused/wide.cuh"

namespace oneflow_lite::cuda {

// PacksOfThread of such a row, and maybe a column outside packs. Threads have all kPacks packs but
// the last one.
template <int N_, int kPacks_, int kThreads_, int kBlocks>
struct OddPacksOfShare {
  static constexpr int N = N_, kPacks = kPacks_, kThreads = kThreads_, kSize = kThreads * kBlocks;
  static constexpr bool kOdd = true;
  static constexpr int kExtras = 1;
  int packs, rank, first;  // the column of the thread's first pack
  int extra;               // a column outside packs, or -1
  int extras;              // of them

  __device__ __forceinline__ OddPacksOfShare(int head, int cols, int rank) : rank(rank) {
    packs = (cols - head) / N - 2;
    first = head + (rank + 1) * N;
    extras = cols - packs * N;
    extra = rank >= extras ? -1 : rank < head + N ? rank : rank + packs * N;
  }
  __device__ __forceinline__ bool Has(int k) const {
    return k + 1 < kPacks || rank + k * kSize < packs;
  }
  __device__ __forceinline__ int Column(int k) const { return first + k * kSize * N; }
  __device__ __forceinline__ bool HasExtra(int) const { return extra >= 0; }
  // Columns of this thread's warp.
  template <int kLanes>
  __device__ __forceinline__ int Count() const {
    static_assert(kLanes == kWarp, "");
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const int left = packs - (rank - lane + (kPacks - 1) * kSize);
    const int last = left < 0 ? 0 : left < kWarp ? left : kWarp;
    return ((kPacks - 1) * kWarp + last) * N + (rank < kWarp ? extras : 0);
  }
  // Makes the compiler work out columns anew from here on, rather than keep them.
  __device__ __forceinline__ void Forget() { asm volatile("" : "+r"(first), "+r"(rank)); }
};

// A row per block of kThreads threads, or per cluster of kBlocks of them, held as values; a
// multiprocessor has room for kResident blocks.
template <int kPacks, int kThreads, int kBlocks, int kResident, class A>
__global__ void __launch_bounds__(kThreads, kResident)
    FusedOddValuesKernel(const __grid_constant__ A a, int64_t rows, int64_t cols) {
  using Blocks = FusedBlocks<A, kThreads, kBlocks>;
  extern __shared__ __align__(16) char odd_values_shared[];
  const int64_t row = internal::ClusterIndex();
  const int head = a.base.store.Head(row);
  const A beside = a.Beside(head);
  HeldValues<A, OddPacksOfShare<A::kPack, kPacks, kThreads, kBlocks>> held{
      {head, static_cast<int>(cols), Blocks::rank()}};
  Blocks::Run(beside, row, rows, held, odd_values_shared);
}

// The same, held as inputs (fused/wide.cuh), all operands in shared memory.
template <int kPacks, int kThreads, int kBlocks, int kResident, class A>
__global__ void __launch_bounds__(kThreads, kResident)
    FusedOddWideKernel(const __grid_constant__ A a, int64_t rows, int64_t cols) {
  using Blocks = FusedBlocks<A, kThreads, kBlocks>;
  extern __shared__ __align__(kFusedSharedAlignment) char odd_wide_shared[];
  static_assert(kPacks > 1, "every lane has the first");
  const int64_t row = internal::ClusterIndex();
  const int head = a.base.store.Head(row);
  const A beside = a.Beside(head);
  HeldInputs<A, OddPacksOfShare<A::kPack, kPacks, kThreads, kBlocks>, 0> held{
      {head, static_cast<int>(cols), Blocks::rank()}, beside, odd_wide_shared + Blocks::kBytes};
  Blocks::Run(beside, row, rows, held, odd_wide_shared);
}

}  // namespace oneflow_lite::cuda
