// SPDX-License-Identifier: Apache-2.0
//
// Row kernels whose row stays in registers, of a group of lanes or of a block. What is computed is
// an algorithm's (see row.cuh) matter.
#pragma once

#include "primitive/cuda/cluster.cuh"
#include "primitive/cuda/row_io.cuh"
#include "primitive/cuda/row_policy.h"

namespace oneflow_lite {
namespace cuda {
namespace internal {

// A cluster of nothing but the group itself.
struct Alone {
  static constexpr int kScratchBytes = 0;
  __device__ __forceinline__ explicit Alone(void* = nullptr) {}
  __device__ __forceinline__ static constexpr int rank() { return 0; }
  __device__ __forceinline__ static constexpr int size() { return 1; }
};

template <class A>
struct StowedRaw {
  StowedPack<typename A::Element, A::kPack> input[A::kInputs];

  __device__ __forceinline__ typename A::template Raw<A::kPack> Get() const {
    typename A::template Raw<A::kPack> raw;
#pragma unroll
    for (int i = 0; i < A::kInputs; ++i) raw.input[i] = input[i].Get();
    return raw;
  }
};

// A thread's part of a row: kPacks packs and kExtras single columns, as the algorithm's values.
template <class A, int kPacks, int kExtras>
struct RowPart {
  typename A::template Value<A::kPack> pack[kPacks];
  typename A::template Value<1> extra[kExtras];
};

// All loads first, so that they are in flight together.
template <bool kAligned, class A, int kPacks, class Span>
__device__ __forceinline__ void LoadPacks(const A& a, int64_t row, const Span& span, int rank,
                                          int size, StowedRaw<A> (&stowed)[kPacks]) {
  constexpr int N = A::kPack;
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    const int p = rank + k * size;
    if (p >= span.packs) continue;
    const auto raw = LoadPackOf<kAligned>(a, row, span, p);
#pragma unroll
    for (int i = 0; i < A::kInputs; ++i) {
      stowed[k].input[i] = StowedPack<typename A::Element, N>::Of(raw.input[i]);
    }
  }
}

// The rounds: each visits every value, adds up what it finds, and leaves the sum in `total`.
template <int kRound, class A, int kPacks, int kExtras, class Span, class Group, class Total>
__device__ __forceinline__ void RunRounds(const A& a, RowPart<A, kPacks, kExtras>& part,
                                          const Span& span, int rank, int size, Group& group,
                                          Total& total) {
  if constexpr (kRound < A::kRounds) {
    const auto join = A::template Join<kRound>();
    const auto identity = A::template Identity<kRound>();
    auto sum = identity;
#pragma unroll
    for (int k = 0; k < kExtras; ++k) {
      const bool present = rank + k * size < span.extras();
      sum = join(sum, a.template Visit<kRound>(part.extra[k], present, total));
    }
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      const bool present = rank + k * size < span.packs;
      sum = join(sum, a.template Visit<kRound>(part.pack[k], present, total));
    }
    a.template Finish<kRound>(group.Reduce(sum, join, identity), total);
    RunRounds<kRound + 1>(a, part, span, rank, size, group, total);
  }
}

// `group` runs the rounds; where it is one of the blocks of `cluster`, each for its own part of the
// row, the blocks then merge what they found.
template <int kPacks, int kExtras, class A, class Group, class Cluster_>
__device__ __forceinline__ void RowInRegisters(const A& a, int64_t row, bool active, int64_t cols,
                                               Group& group, Cluster_& cluster) {
  constexpr int N = A::kPack;
  const RowSpan<N> span = active ? RowSpan<N>(a.Head(row), cols) : RowSpan<N>();
  const int rank = cluster.rank() * group.size() + group.rank();
  const int size = cluster.size() * group.size();
  auto total = active ? a.Begin(row) : typename A::Total{};
  RowPart<A, kPacks, kExtras> part;
  StowedRaw<A> stowed[kPacks];
  if (a.IsAligned(row, span.head)) {
    LoadPacks<true>(a, row, span, rank, size, stowed);
  } else {
    LoadPacks<false>(a, row, span, rank, size, stowed);
  }
#pragma unroll
  for (int k = 0; k < kExtras; ++k) {
    const int e = rank + k * size;
    typename A::template Raw<1> raw = {};
    if (e < span.extras()) raw = a.template Load<Access::kAny, 1>(row, span.Column(e));
    part.extra[k] = a.template Open<1>(raw, e < span.extras());
  }
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    part.pack[k] = a.template Open<N>(stowed[k].Get(), rank + k * size < span.packs);
  }
  RunRounds<0>(a, part, span, rank, size, group, total);
  if constexpr (std::is_same_v<Cluster_, Cluster>) {
    a.Rebase(cluster.Reduce(a.Gathered(total), typename A::Merge{}), total);
  }
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    const int p = rank + k * size;
    if (p < span.packs) a.template Store<N>(row, span.PackColumn(p), part.pack[k], total);
  }
#pragma unroll
  for (int k = 0; k < kExtras; ++k) {
    const int e = rank + k * size;
    if (e < span.extras()) a.template Store<1>(row, span.Column(e), part.extra[k], total);
  }
  if (active && rank == 0) a.End(row, total);
}

}  // namespace internal

// A row per group of kLanes lanes.
template <int kLanes, int kPacks, class A>
__global__ void __launch_bounds__(RowPolicy::kGroupThreads)
    RowGroupKernel(A a, int64_t rows, int64_t cols) {
  constexpr int kRows = RowPolicy::kGroupThreads / kLanes;
  LaneGroup<kLanes> group;
  internal::Alone alone;
  for (int64_t base = int64_t{blockIdx.x} * kRows; base < rows;
       base += int64_t{gridDim.x} * kRows) {
    const int64_t row = base + threadIdx.x / kLanes;
    internal::RowInRegisters<kPacks, ExtrasPerThread<A::kPack>(kLanes)>(a, row, row < rows, cols,
                                                                        group, alone);
  }
}

// A row per block, or per cluster of blocks.
template <bool kCluster, class A>
__global__ void __launch_bounds__(RowPolicy::kRegisterThreads, 2)
    RowBlockKernel(A a, int64_t rows, int64_t cols) {
  using Blocks = std::conditional_t<kCluster, Cluster, internal::Alone>;
  __shared__ __align__(16) char scratch[Block::kScratchBytes + Blocks::kScratchBytes];
  Block block(scratch);
  Blocks blocks(scratch + Block::kScratchBytes);
  const int parts = blocks.size();
  for (int64_t row = blockIdx.x / parts; row < rows; row += gridDim.x / parts) {
    internal::RowInRegisters<RowPolicy::kBlockPacks, 1>(a, row, true, cols, block, blocks);
  }
}

}  // namespace cuda
}  // namespace oneflow_lite
