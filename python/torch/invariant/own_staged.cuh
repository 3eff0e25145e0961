// SPDX-License-Identifier: Apache-2.0
//
// Rows too wide for the registers of a block, whose results depend on no other row: a row lies in
// the shared memory of the blocks of a cluster (staged_part.cuh). It takes no registers there, so
// that three or four blocks per multiprocessor load, compute and store at different times.
#pragma once

#include "primitive/cuda/rows/streamed.cuh"
#include "python/torch/invariant/staged_part.cuh"

namespace oneflow_lite {
namespace cuda {

// Shared memory of a block in front of its warps' parts: what its threads and the cluster's blocks
// exchange, and a barrier of each warp.
inline constexpr int kStagedScratchBytes = kRowScratchBytes + kMaxWarps * ClusterBarrier::kBytes;

// A row per cluster, `share` own packs a warp. Dynamic shared memory: kStagedScratchBytes, and
// StagedPart<A>::Bytes(share) for each warp.
template <class A, class Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocks)
    OwnStagedKernel(A every, int cols, int share) {
  using Part = internal::StagedPart<A>;
  using Statistics = typename A::Statistics;
  constexpr int N = A::kPack;
  extern __shared__ __align__(16) char memory[];
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = threadIdx.x % kWarp;
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  const bool clustered = internal::ClusterSize() > 1;
  const int64_t row = internal::ClusterIndex();
  const int at = static_cast<int>(internal::ClusterRank()) * warps + warp;
  const ClusterBarrier barrier(memory + kRowScratchBytes, warp);
  const A a = AtRow(every, row);
  Part part(cols, at * share, share, memory + kStagedScratchBytes + warp * Part::Bytes(share));
  part.Load(a, row, cols, barrier);
  const int rank = at * kWarp + lane, extra_col = cols / N * N + rank;
  typename A::template Raw<1> extra = {};
  if (extra_col < cols) extra = a.template Load<Access::kAny, 1>(row, extra_col);
  Block block(memory);
  ClusterExchange cluster;
  if (clustered) cluster.Start(memory + Block::kScratchBytes);

  auto total = a.Begin(row);
  Statistics statistics;
  typename A::C single = 0;  // the value of the extra column
  internal::AskedPacks<A> asked;
  asked.Ask(a, part, lane);
  barrier.AwaitBlock(0);
  if constexpr (internal::kKeepsValues<A>) {
    auto value = a.template Open<1>(extra, extra_col < cols, extra_col, total);
    statistics = internal::GatherValues(a, part, asked, value, extra_col < cols, total);
    single = value.v[0];
    a.Look(row, total);
    statistics = block.ReduceWarps(statistics, typename A::Merge{}, Statistics{});
  } else {
    internal::GatherStaged(a, part, asked, total, statistics);
    if (extra_col < cols) a.Add(extra, extra_col, total, statistics);
    a.Look(row, total);
    statistics = block.Reduce(statistics, typename A::Merge{}, Statistics{});
  }
  if (clustered) statistics = cluster.Reduce(statistics, typename A::Merge{}, Statistics{});
  if constexpr (internal::kKeepsValues<A>) {
    a.Rebase(statistics, total);
    if (extra_col < cols) a.template Store<1>(row, extra_col, {{single}}, total);
  } else {
    a.Conclude(statistics, total);
    if constexpr (internal::Writes<A>::value) {
      if (extra_col < cols) a.template StoreRaw<1>(row, extra_col, extra, total);
    }
  }
  if constexpr (internal::HasImage<A>::value) {
    internal::WriteThroughImage(a, row, part, total);
  } else if constexpr (internal::Writes<A>::value) {
    internal::WriteStaged(a, row, part, total);
  }
  if (rank == 0) a.End(row, total);
}

// Threads of a block, and for how many blocks per multiprocessor the compiler leaves registers.
template <int kThreads_, int kBlocks_>
struct StagedShape {
  static constexpr int kThreads = kThreads_, kBlocks = kBlocks_;
};

namespace internal {

// The first of these that has room for a row serves it: shared memory of a block, of which a
// multiprocessor has 228 KB, and blocks of a cluster, at most. A block alone costs less than two:
// losses of bfloat16 at 32001 columns 72 us, with two blocks of 56 KB 89 us.
struct StagedTier {
  int bytes, blocks;
};
inline constexpr StagedTier kStagedTiers[] = {{56 << 10, 1}, {75 << 10, 1},  {56 << 10, 8},
                                              {75 << 10, 8}, {113 << 10, 8}, {227 << 10, 8}};
// One block of 512 threads, where operands belong to the columns: layer_norm of bfloat16 at 50257
// columns 192 us, a cluster of two blocks 205 us.
inline constexpr StagedTier kStagedAlone = {113 << 10, 1};
// One block of fewer threads: see SmallStaged.
inline constexpr StagedTier kStagedSmall = {27 << 10, 1};

// Blocks of a cluster, and own packs of each of their warps; 0 blocks: there is no room.
struct StagedPlan {
  int blocks = 0, share = 0;
};
inline StagedPlan PlanOf(const StagedTier& tier, int64_t packs, int warps, int inputs,
                         const DeviceLimits& limits) {
  if (!limits.clusters || tier.bytes > limits.shared_per_block) return {};
  const int64_t each = (tier.bytes - kStagedScratchBytes) / (warps * inputs * kPackBytes) - 1;
  const int64_t blocks = CeilDiv(packs, each * warps);
  if (blocks > tier.blocks) return {};
  return {static_cast<int>(blocks), static_cast<int>(CeilDiv(packs, blocks * warps))};
}

template <class Shape, class A>
cudaError_t LaunchStagedAs(const StagedPlan& plan, const A& a, int64_t rows, int64_t cols,
                           const DeviceLimits& limits, cudaStream_t stream) {
  if (rows > kMaxBlocks / plan.blocks) return cudaErrorInvalidConfiguration;
  const cudaError_t error = AllowAllShared<OwnStagedKernel<A, Shape>>(limits);
  if (error != cudaSuccess) return error;
  const int bytes =
      kStagedScratchBytes + Shape::kThreads / kWarp * StagedPart<A>::Bytes(plan.share);
  return LaunchAs({plan.blocks}, OwnStagedKernel<A, Shape>, rows * plan.blocks, Shape::kThreads,
                  bytes, stream, a, static_cast<int>(cols), plan.share);
}

}  // namespace internal

// Algorithms that serve rows of more packs than this better than registers of a block do.
template <class A>
inline constexpr int64_t kStagedAbove = INT64_MAX;

// The blocks of rows with room in kStagedSmall. Losses of bfloat16 at 8191 columns take 76 us so,
// by 256 threads 102 us.
template <class A>
struct SmallStaged {
  static constexpr bool kServes = false;
};

// kNotServed where the blocks of a cluster have no room for a row, or there are no clusters.
template <class A>
cudaError_t LaunchStaged(const A& a, int64_t rows, int64_t cols, const DeviceLimits& limits,
                         cudaStream_t stream) {
  constexpr bool kDouble = sizeof(typename A::C) == 8;
  using Shape = StagedShape<256, kDouble ? 2 : 4>;
  const int64_t packs = cols / A::kPack;
  if constexpr (SmallStaged<A>::kServes) {
    using Small = typename SmallStaged<A>::Shape;
    const auto small = internal::PlanOf(internal::kStagedSmall, packs, Small::kThreads / kWarp,
                                        A::kInputs, limits);
    if (small.blocks == 1) {
      return internal::LaunchStagedAs<Small>(small, a, rows, cols, limits, stream);
    }
  }
  for (const internal::StagedTier& tier : internal::kStagedTiers) {
    const auto plan = internal::PlanOf(tier, packs, Shape::kThreads / kWarp, A::kInputs, limits);
    if (plan.blocks == 0) continue;
    if constexpr (internal::HasOperands<A>::value) {
      using Alone = StagedShape<512, Shape::kBlocks / 2>;
      const auto alone = internal::PlanOf(internal::kStagedAlone, packs, Alone::kThreads / kWarp,
                                          A::kInputs, limits);
      if (plan.blocks > 1 && alone.blocks == 1) {
        return internal::LaunchStagedAs<Alone>(alone, a, rows, cols, limits, stream);
      }
    }
    return internal::LaunchStagedAs<Shape>(plan, a, rows, cols, limits, stream);
  }
  return kNotServed;
}

}  // namespace cuda
}  // namespace oneflow_lite
