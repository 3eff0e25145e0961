// SPDX-License-Identifier: Apache-2.0
//
// Row kernels whose row stays in registers, of a group of lanes, of a block, or of the blocks of a
// cluster. What is computed is an algorithm's (see row.cuh) matter.
#pragma once

#include "primitive/cuda/cluster_exchange.cuh"
#include "primitive/cuda/row_io.cuh"
#include "primitive/cuda/row_policy.h"

namespace oneflow_lite {
namespace cuda {
namespace internal {

// Threads whose row is whole: the rounds leave nothing to merge.
template <class Group>
struct Alone {
  static constexpr bool kInParts = false;
  Group group;

  template <class... Scratch>
  __device__ __forceinline__ explicit Alone(Scratch*... scratch) : group(scratch...) {}
  __device__ __forceinline__ int rank() const { return group.rank(); }
  __device__ __forceinline__ int size() const { return group.size(); }
  template <class T, class Op>
  __device__ __forceinline__ T Reduce(const T& v, Op op, const T& identity) {
    return group.Reduce(v, op, identity);
  }
};

// The warps of a block, or of a cluster of blocks, each with a part of the row: the rounds stay
// within a warp, and one exchange merges what the warps found.
template <bool kCluster>
struct Warps {
  static constexpr bool kInParts = true;
  static constexpr int kScratchBytes =
      Block::kScratchBytes + (kCluster ? ClusterExchange::kScratchBytes : 0);
  Block block;
  ClusterExchange cluster;

  __device__ __forceinline__ explicit Warps(char* scratch) : block(scratch) {
    if constexpr (kCluster) cluster.Start(scratch + Block::kScratchBytes);
  }
  __device__ __forceinline__ int parts() const { return kCluster ? cluster.size() : 1; }
  __device__ __forceinline__ int rank() const {
    return kCluster ? cluster.rank() * block.size() + block.rank() : block.rank();
  }
  __device__ __forceinline__ int size() const { return parts() * block.size(); }
  template <class T, class Op>
  __device__ __forceinline__ T Reduce(const T& v, Op op, const T&) {
    return ReduceLanes<kWarp>(v, op);
  }
  template <class T, class Op>
  __device__ __forceinline__ T Merge(const T& v, Op op) {
    const T merged = block.ReduceWarps(v, op, T{});
    if constexpr (!kCluster) return merged;
    return cluster.Reduce(merged, op, T{});
  }
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
    if (p >= static_cast<int>(span.packs)) continue;
    const auto raw = LoadPackOf<kAligned>(a, row, span, p);
#pragma unroll
    for (int i = 0; i < A::kInputs; ++i) {
      stowed[k].input[i] = StowedPack<typename A::Element, N>::Of(raw.input[i]);
    }
  }
}

// The rounds: each visits every value, adds up what it finds, and leaves the sum in `total`.
template <int kRound, class A, int kPacks, int kExtras, class Span, class Team, class Total>
__device__ __forceinline__ void RunRounds(const A& a, RowPart<A, kPacks, kExtras>& part,
                                          const Span& span, int rank, int size, Team& team,
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
      const bool present = rank + k * size < static_cast<int>(span.packs);
      sum = join(sum, a.template Visit<kRound>(part.pack[k], present, total));
    }
    a.template Finish<kRound>(team.Reduce(sum, join, identity), total);
    RunRounds<kRound + 1>(a, part, span, rank, size, team, total);
  }
}

template <int kPacks, int kExtras, class A, class Team>
__device__ __forceinline__ void RowInRegisters(const A& a, int64_t row, bool active, int64_t cols,
                                               Team& team) {
  constexpr int N = A::kPack;
  const RowSpan<N> span = active ? RowSpan<N>(a.Head(row), cols) : RowSpan<N>();
  const int rank = team.rank(), size = team.size();
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
    part.extra[k] = a.template Open<1>(raw, e < span.extras(), span.Column(e), total);
  }
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    const int p = rank + k * size;
    part.pack[k] = a.template Open<N>(stowed[k].Get(), p < static_cast<int>(span.packs),
                                      span.PackColumn(p), total);
  }
  if (active) a.Look(row, total);
  RunRounds<0>(a, part, span, rank, size, team, total);
  if constexpr (Team::kInParts) a.Rebase(team.Merge(a.Gathered(total), typename A::Merge{}), total);
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    const int p = rank + k * size;
    if (p < static_cast<int>(span.packs))
      a.template Store<N>(row, span.PackColumn(p), part.pack[k], total);
  }
#pragma unroll
  for (int k = 0; k < kExtras; ++k) {
    const int e = rank + k * size;
    if (e < span.extras()) a.template Store<1>(row, span.Column(e), part.extra[k], total);
  }
  if (active && rank == 0) a.End(row, total);
}

}  // namespace internal

// A block that holds a row, or its share of one, in registers. Values wider than a pack, several
// inputs, and two reductions over the block all take registers of their own.
template <class A>
struct BlockShape : BlockBounds<typename A::C> {
  static constexpr bool kLean = A::kClusterRegisters && A::kInputs == 1 &&
                                sizeof(typename A::template Value<A::kPack>) <= kPackBytes &&
                                sizeof(typename A::template Raw<A::kPack>) <= kPackBytes;
  static constexpr int kPacks = RowPolicy::kBlockPacks / (kLean ? 1 : 2);
};

// A row per group of kLanes lanes.
template <int kLanes, int kPacks, class A>
__global__ void __launch_bounds__(RowPolicy::kGroupThreads)
    RowGroupKernel(A a, int64_t rows, int64_t cols) {
  constexpr int kRows = RowPolicy::kGroupThreads / kLanes;
  internal::Alone<LaneGroup<kLanes>> group;
  for (int64_t base = int64_t{blockIdx.x} * kRows; base < rows;
       base += int64_t{gridDim.x} * kRows) {
    const int64_t row = base + threadIdx.x / kLanes;
    internal::RowInRegisters<kPacks, ExtrasPerThread<A::kPack>(kLanes)>(a, row, row < rows, cols,
                                                                        group);
  }
}

// A row per block, or per cluster of blocks.
template <bool kCluster, class A, class Shape = BlockShape<A>>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocks)
    RowBlockKernel(A a, int64_t rows, int64_t cols) {
  using Team =
      std::conditional_t<A::kClusterRegisters, internal::Warps<kCluster>, internal::Alone<Block>>;
  __shared__ __align__(16) char scratch[internal::Warps<kCluster>::kScratchBytes];
  Team team(scratch);
  int parts = 1;
  if constexpr (A::kClusterRegisters) parts = team.parts();
  for (int64_t row = blockIdx.x / parts; row < rows; row += gridDim.x / parts) {
    internal::RowInRegisters<Shape::kPacks, 1>(a, row, true, cols, team);
  }
}

}  // namespace cuda
}  // namespace oneflow_lite
