// SPDX-License-Identifier: Apache-2.0
//
// Row kernels whose row stays in registers, of a group of lanes, of a block, or of the blocks of a
// cluster. What is computed is an algorithm's (see rows/row.cuh) matter.
#pragma once

#include "primitive/cuda/chip/cluster_exchange.cuh"
#include "primitive/cuda/rows/load.cuh"
#include "primitive/cuda/rows/policy.h"

namespace oneflow_lite::cuda {
namespace internal {

// Threads whose row is whole: the rounds leave nothing to merge.
template <class Group>
struct Alone {
  static constexpr bool kInParts = false, kClustered = false;
  static constexpr int kLanes = Group::kLanes < kWarp ? Group::kLanes : kWarp;  // side by side
  Group group;

  template <class... Scratch>
  OFL_DEVICE explicit Alone(Scratch*... scratch) : group(scratch...) {}
  OFL_DEVICE int rank() const { return group.rank(); }
  OFL_DEVICE int size() const { return group.size(); }
  template <class T, class Op>
  OFL_DEVICE T Reduce(const T& v, Op op, const T& identity) {
    return group.Reduce(v, op, identity);
  }
};

// The warps of a block, or of a cluster of blocks, each with a part of the row: the rounds stay
// within a warp, and one exchange merges what the warps found.
template <bool kCluster>
struct Warps {
  static constexpr bool kInParts = true, kClustered = kCluster;
  static constexpr int kLanes = kWarp;
  static constexpr int kScratchBytes =
      Block::kScratchBytes + (kCluster ? ClusterExchange::kScratchBytes : 0);
  Block block;
  ClusterExchange cluster;

  OFL_DEVICE explicit Warps(char* scratch) : block(scratch) {
    if constexpr (kCluster) cluster.Start(scratch + Block::kScratchBytes);
  }
  OFL_DEVICE int parts() const { return kCluster ? cluster.size() : 1; }
  OFL_DEVICE int rank() const {
    return kCluster ? cluster.rank() * block.size() + block.rank() : block.rank();
  }
  OFL_DEVICE int size() const { return parts() * block.size(); }
  template <class T, class Op>
  OFL_DEVICE T Reduce(const T& v, Op op, const T&) {
    return ReduceLanes<kWarp>(v, op);
  }
  template <class T, class Op>
  OFL_DEVICE T Merge(const T& v, Op op) {
    const T merged = block.ReduceWarps(v, op, T{});
    if constexpr (!kCluster) return merged;
    return cluster.Reduce(merged, op, T{});
  }
};

// A thread's part of a row: kPacks packs and kExtras single columns, as the algorithm's values.
template <class A, int kPacks, int kExtras>
struct RowPart {
  typename A::template Value<A::kPack> pack[kPacks];
  typename A::template Value<1> extra[kExtras];
  bool seen[kExtras];

  template <class Team, class Total>
  OFL_DEVICE void Run(const A& a, const Places& places, Team& team, Total& total) {
    RunRounds<0>(a, team, total, [&](const auto& visit) {
#pragma unroll
      for (int k = 0; k < kExtras; ++k) visit(extra[k], seen[k]);
#pragma unroll
      for (int k = 0; k < kPacks; ++k) visit(pack[k], places.Reads(k));
    });
  }
};

template <int kPacks, int kExtras, bool kAligned, class A, class Index, class Team>
OFL_DEVICE void RowInRegisters(const A& every, int64_t row, bool active, Index cols, Team& team) {
  constexpr int N = A::kPack;
  const A a = AtRow(every, row);
  using Span = RowSpan<N, Index>;
  const Span span = active ? Span(a.Head(row), cols) : Span();
  const Index seen = active ? static_cast<Index>(SeenOf(a, row, cols)) : 0;
  const int rank = team.rank(), size = team.size();
  auto total = active ? a.Begin(row) : typename A::Total{};
  RowPart<A, kPacks, kExtras> part;
  StowedRaw<A> stowed[kPacks];
  Places places{rank, size, static_cast<int>(PacksSeen(span, seen)), static_cast<int>(span.packs)};
  typename A::template Raw<1> extra[kExtras] = {};
  const auto load_extras = [&] {
#pragma unroll
    for (int k = 0; k < kExtras; ++k) {
      const int e = rank + k * size;
      part.seen[k] = e < span.extras() && span.Column(e) < seen;
      if (part.seen[k]) extra[k] = a.template Load<Access::kAny, 1>(row, span.Column(e));
    }
  };
  if (kLoadsTwoWays<A, Team>) load_extras();
  LoadRow<kAligned>(a, row, span, team, places, stowed);
  if (!kLoadsTwoWays<A, Team>) load_extras();
#pragma unroll
  for (int k = 0; k < kExtras; ++k) {
    part.extra[k] = a.template Open<1>(extra[k], part.seen[k], span.Column(rank + k * size), total);
  }
  const int64_t col = span.PackColumn(places.first);  // 64 bits: one address for all packs
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    part.pack[k] =
        a.template Open<N>(stowed[k].Get(), places.Reads(k), col + k * places.step * N, total);
  }
  if (active) a.Look(row, total);
  part.Run(a, places, team, total);
  if constexpr (Team::kInParts) a.Rebase(team.Merge(a.Gathered(total), typename A::Merge{}), total);
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    if (places.Writes(k)) {
      a.template Store<N>(row, col + k * places.step * N, part.pack[k], total);
    }
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
// inputs and two reductions over the block all take registers of their own. kAligned: every row
// that is read lies as the one that is written does.
template <class A, bool kAligned_ = false>
struct BlockShape : BlockBounds<typename A::C> {
  static constexpr bool kAligned = kAligned_;
  static constexpr bool kLean = A::kClusterRegisters && A::kInputs == 1 &&
                                sizeof(typename A::template Value<A::kPack>) <= kPackBytes &&
                                sizeof(typename A::template Raw<A::kPack>) <= kPackBytes;
  static constexpr int kPacks = RowPolicy::kBlockPacks / (kLean ? 1 : 2);
};

// For rows that do not need so many packs a thread.
template <class Shape>
struct FewerPacks : Shape {
  static constexpr int kPacks = 4;
};

// Packs that a lane of a group holds, at most: shifting them into place takes registers.
template <class A, bool kAligned>
inline constexpr int GroupPacks = RowPolicy::kGroupPacks /
                                  (!kAligned && Offers<A, RowOffers::kShifts> ? 2 : 1);

// The algorithm with smaller packs, for rows so narrow that few lanes would have a whole one: fewer
// columns are left outside of packs. Its loads and stores must take such packs.
template <class A, int kPack_>
struct SmallPacks : A {
  static constexpr int kPack = kPack_;
  static constexpr unsigned kOffers = A::kOffers | RowOffers::kAt;
  __host__ OFL_DEVICE explicit SmallPacks(const A& a) : A(a) {}
  OFL_DEVICE SmallPacks At(int64_t row) const { return SmallPacks(A::At(row)); }
  OFL_DEVICE int Head(int64_t row) const { return A::Head(row) % kPack; }
};

// A row per group of kLanes lanes; the grid covers all rows.
template <int kLanes, int kPacks, class A, bool kAligned = false>
__global__ void __launch_bounds__(RowPolicy::kGroupThreads)
    RowGroupKernel(A a, int64_t rows, int64_t cols) {
  constexpr int kRows = RowPolicy::kGroupThreads / kLanes;
  internal::Alone<LaneGroup<kLanes>> group;
  const int64_t row = int64_t{blockIdx.x} * kRows + threadIdx.x / kLanes;
  internal::RowInRegisters<kPacks, ExtrasPerThread<A::kPack>(kLanes), kAligned>(
      a, row, row < rows, static_cast<int>(cols), group);
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
    internal::RowInRegisters<Shape::kPacks, 1, Shape::kAligned>(a, row, true, cols, team);
  }
}

}  // namespace oneflow_lite::cuda
