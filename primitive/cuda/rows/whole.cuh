// SPDX-License-Identifier: Apache-2.0
//
// The row kernels of rows of whole packs: every row of every tensor starts at a multiple of 16
// bytes and ends at one. Nothing is asked per row then, and the code is short. Narrow rows run for
// a few microseconds, of which fetching instructions is a good part; wide ones get by with so few
// registers that more of them are under way (rows/whole_policy.h).
#pragma once

#include "primitive/cuda/chip/warp_exchange.cuh"
#include "primitive/cuda/rows/registers.cuh"
#include "primitive/cuda/rows/whole_policy.h"

namespace oneflow_lite::cuda {
namespace internal {

// The algorithm as the kernels with registers to spare run it (rows/row.cuh); kKeep: if they have.
template <bool kKeep = true, class A>
auto Kept(const A& a) {
  if constexpr (kKeep && Offers<A, RowOffers::kKeep>) {
    return a.Keep();
  } else {
    return a;
  }
}
template <class A>
using KeptOf = decltype(Kept(std::declval<const A&>()));

// The warps of a block, each with a part of the row, which meet in one exchange.
template <class A, class Shape>
struct BlockTeam {
  static constexpr bool kInParts = true, kClustered = false;
  static constexpr int kWarps = Shape::kThreads / kWarp;
  using Statistics = typename A::Statistics;
  static constexpr int kScratchBytes = static_cast<int>(sizeof(Statistics)) * kWarps;
  Statistics* slots;

  OFL_DEVICE explicit BlockTeam(char* scratch) : slots(reinterpret_cast<Statistics*>(scratch)) {}
  OFL_DEVICE static int part() { return 0; }
  OFL_DEVICE static int64_t row() { return blockIdx.x; }
  OFL_DEVICE static int size() { return static_cast<int>(blockDim.x); }
  template <class T, class Op>
  OFL_DEVICE static T Reduce(const T& v, Op op, const T&) {
    return ReduceLanes<kWarp>(v, op);
  }
  template <class Op>
  OFL_DEVICE Statistics Merge(const Statistics& v, Op op) {
    const int lane = threadIdx.x % kWarp;
    if (lane == 0) slots[threadIdx.x / kWarp] = v;
    __syncthreads();
    Statistics other;
    if (lane < size() / kWarp) other = slots[lane];
    return ReduceLanes<kWarp>(other, op);
  }
};

// The same of the blocks of a cluster, where each warp sends its part to every block.
template <class A, class Shape>
struct ClusterTeam {
  static constexpr bool kInParts = true, kClustered = true;
  using Statistics = typename A::Statistics;
  struct alignas(16) Slot {
    Statistics statistics;
  };
  using Exchange = WarpExchange<Slot>;
  static constexpr int kScratchBytes =
      static_cast<int>(Exchange::Bytes(kMaxClusterBlocks, Shape::kThreads));
  Exchange exchange;

  OFL_DEVICE explicit ClusterTeam(char* scratch) : exchange(scratch) {}
  OFL_DEVICE static int part() { return Exchange::block(); }
  OFL_DEVICE static int64_t row() { return internal::ClusterIndex(); }
  // A constant, so that all packs of a thread share one address register.
  OFL_DEVICE static constexpr int size() { return Shape::kThreads; }
  template <class T, class Op>
  OFL_DEVICE static T Reduce(const T& v, Op op, const T&) {
    return ReduceLanes<kWarp>(v, op);
  }
  template <class Op>
  OFL_DEVICE Statistics Merge(const Statistics& v, Op op) {
    exchange.Send(Slot{v});
    const Slot* all = exchange.Receive();
    const int values = exchange.values();
    Statistics merged;
    for (int i = threadIdx.x % kWarp; i < values; i += kWarp) {
      merged = op(merged, all[i].statistics);
    }
    return ReduceLanes<kWarp>(merged, op);
  }
};

// The algorithm for one row alone where part of a row may not be read (Seen). Elsewhere addresses
// take so few instructions that to work them out in advance gains nothing.
template <class A>
OFL_DEVICE A WholeRowAt(const A& a, int64_t row) {
  if constexpr (Offers<A, RowOffers::kSeen>) {
    return AtRow(a, row);
  } else {
    return a;
  }
}
template <class A>
OFL_DEVICE int WholePacksSeen(const A& a, int64_t row, int packs) {
  if constexpr (Offers<A, RowOffers::kSeen>) {
    const int64_t seen = (SeenOf(a, row, int64_t{packs} * A::kPack) + A::kPack - 1) / A::kPack;
    return seen < 0 ? 0 : seen < packs ? static_cast<int>(seen) : packs;
  } else {
    return packs;
  }
}

// Where packs begin in a row that is whole.
template <int N>
struct WholeSpan {
  OFL_DEVICE static int PackColumn(int p) { return p * N; }
};

// One row, from its loads to its stores; `places` are those of this thread.
template <int kPacks, class A, class Team>
struct StowedRow {
  static constexpr int N = A::kPack;
  StowedRaw<A> stowed[kPacks];
  Places places;
  typename A::Total total;

  OFL_DEVICE void Load(const A& a, int64_t row, bool active, const Places& at) {
    places = at;
    total = active ? a.Begin(row) : typename A::Total{};
    LoadAlignedPacks<Team>(a, row, WholeSpan<N>{}, places, stowed);
  }
  OFL_DEVICE void Finish(const A& a, int64_t row, bool active, bool first, Team& team) {
    typename A::template Value<N> value[kPacks];
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      value[k] = a.template Open<N>(stowed[k].Get(), places.Reads(k), places.at(k) * N, total);
    }
    if (active) a.Look(row, total);
    RunRounds<0>(a, team, total, [&](const auto& visit) {
#pragma unroll
      for (int k = 0; k < kPacks; ++k) visit(value[k], places.Reads(k));
    });
    if constexpr (Team::kInParts) {
      a.Rebase(team.Merge(a.Gathered(total), typename A::Merge{}), total);
    }
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (places.Writes(k)) a.template Store<N>(row, places.at(k) * N, value[k], total);
    }
    if (active && first) a.End(row, total);
  }
};

}  // namespace internal

// kRows rows per group of kLanes lanes, which are loaded together; the grid covers all rows.
template <int kLanes, int kPacks, class A, int kRows = 1>
__global__ void __launch_bounds__(RowPolicy::kGroupThreads)
    RowWholeKernel(A every, int64_t rows, int packs) {
  using Team = internal::Alone<LaneGroup<kLanes>>;
  constexpr int kGroups = RowPolicy::kGroupThreads / kLanes;
  Team team;
  internal::StowedRow<kPacks, A, Team> at[kRows];
  const int64_t first = int64_t{blockIdx.x} * (kGroups * kRows) + threadIdx.x / kLanes;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const int64_t row = first + r * kGroups;
    const bool active = row < rows;  // else the lanes still take part in their warp's reductions
    const A a = internal::WholeRowAt(every, row);
    const int written = active ? packs : 0;
    at[r].Load(a, row, active,
               {team.rank(), kLanes, internal::WholePacksSeen(a, row, written), written});
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const int64_t row = first + r * kGroups;
    at[r].Finish(internal::WholeRowAt(every, row), row, row < rows, team.rank() == 0, team);
  }
}

// A row per block, or per cluster whose blocks have `share` packs each.
template <class A, class Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocks)
    RowWholeBlockKernel(A every, int packs, int share) {
  using Team = std::conditional_t<Shape::kCluster, internal::ClusterTeam<A, Shape>,
                                  internal::BlockTeam<A, Shape>>;
  __shared__ __align__(16) char scratch[Team::kScratchBytes];
  const int64_t row = Team::row();
  const A a = AtRow(every, row);
  const int rank = threadIdx.x, part = Team::part();
  const int begin = part * share, end = begin + share < packs ? begin + share : packs;
  const int read = internal::WholePacksSeen(a, row, packs);
  internal::StowedRow<Shape::kPacks, A, Team> whole;
  whole.Load(a, row, true, {begin + rank, Team::size(), read < end ? read : end, end});
  Team team(scratch);  // behind the loads, which are to be under way first
  whole.Finish(a, row, true, part == 0 && rank == 0, team);
}

}  // namespace oneflow_lite::cuda
