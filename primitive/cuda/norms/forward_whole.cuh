// SPDX-License-Identifier: Apache-2.0
//
// The norms' forward where every row of every tensor is whole packs of 16 bytes, held in registers:
// of a group of lanes, of a block, or of the blocks of a cluster. At the speed of memory a
// multiprocessor has some 28 instructions for an element of half precision, reductions and all.
//
// layer_norm: a warp centres its own columns about their mean; one exchange merges what the warps
// found (Chan, Golub and LeVeque; see norms/sums.cuh).
#pragma once

#include "primitive/cuda/chip/warp_exchange.cuh"
#include "primitive/cuda/norms/whole_row.cuh"

namespace oneflow_lite::cuda {

// The squares that the warps of a block found in a row, in shared memory.
template <class C, int kWarps>
struct WarpSquares {
  alignas(16) C squares[kWarps];  // 0 where there is no warp

  OFL_DEVICE void Put(C found) {
    const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
    const int at = warp + lane * (static_cast<int>(blockDim.x) / kWarp);
    if (at < kWarps) squares[at] = lane == 0 ? found : C(0);
  }
  // After a barrier. For a few warps this is less than shuffles.
  OFL_DEVICE C Sum() const {
    C sum = 0;
#pragma unroll
    for (const C& square : squares) sum += square;
    return sum;
  }
};

// The type of weights, as a value.
template <class W>
struct WeightsAre {
  using type = W;
};
// run(full, weights), as std::bool_constant and WeightsAre: see NormWholeRow. What is run most
// comes first: rows that take a few microseconds wait for every jump in the code.
template <bool kMayBeFull, bool kMayBeMixed, class T, class Run>
OFL_DEVICE void RunWhole(bool full, const NormWhole<T>& p, Run&& run) {
  const auto run_with = [&](auto weights) {
    if (__builtin_expect(kMayBeFull && full, true)) {
      run(std::bool_constant<kMayBeFull>{}, weights);
    } else {
      run(std::false_type{}, weights);
    }
  };
  if (__builtin_expect(p.plain, true)) {
    run_with(WeightsAre<T>{});
  } else {
    if constexpr (kMayBeMixed) {
      if (p.mixed) return run_with(WeightsAre<float>{});
    }
    run(std::false_type{}, WeightsAre<void>{});
  }
}

// A row per kTeam lanes; the grid covers all rows. kBytes: of a pack.
template <class T, bool kCentre, bool kResidual, int kTeam, int kPacks, int kBytes = kPackBytes>
__global__ void __launch_bounds__(NormWholePolicy::kLaneThreads,
                                  NormWholePolicy::LaneBlocks<T>(kPacks, kResidual))
    NormLanesKernel(const __grid_constant__ NormWhole<T> p) {
  constexpr int kRows = NormWholePolicy::kLaneThreads / kTeam;  // of a block
  const int64_t first = int64_t{blockIdx.x} * kRows, row = first + threadIdx.x / kTeam;
  constexpr bool kMayBeFull = kCentre && kHoldsValues<T, kTeam, kResidual, kPacks>;
  // Of a warp, not of the block: where the compiler cannot tell that lanes stay together, it leaves
  // the loads of weights where they are, before the first sum.
  const int64_t last = first + threadIdx.x / kWarp * (kWarp / kTeam) + kWarp / kTeam;
  const bool full = p.packs == kTeam * kPacks && last <= p.a.rows;
  constexpr bool kMayBeMixed = sizeof(T) == 2 && !kResidual && kTeam == kWarp && kPacks > 2;
  RunWhole<kMayBeFull, kMayBeMixed>(full, p, [&](auto full, auto weights) {
    using W = typename decltype(weights)::type;
    constexpr int kParts = kIsMixed<T, W> ? 2 : 1;  // of a pack of 16 bytes
    NormWholeRow<T, kCentre, kResidual, kTeam, kPacks * kParts, kPacks, decltype(full)::value, W,
                 kBytes / kParts>
        part(p, row, row < p.a.rows ? p.packs * kParts : 0, threadIdx.x % kTeam, kTeam);
    part.Load();
    part.AskForWeights();
    if (!kMayBeFull) part.FinishAsking();
    part.Conclude(part.Gather());
    part.StoreStatistics();
    part.Store();
  });
}

// A row per block.
template <class T, bool kCentre, bool kResidual, int kPacks>
__global__ void __launch_bounds__(NormWholePolicy::kWholeThreads<T>,
                                  NormWholePolicy::RowBlocks<T, kCentre, kResidual>(kPacks))
    NormRowKernel(const __grid_constant__ NormWhole<T> p) {
  using C = ComputeType<T>;
  constexpr int kWarps = NormWholePolicy::kWholeThreads<T> / kWarp;
  constexpr bool kMayBeFull = kCentre && kHoldsValues<T, 0, kResidual, kPacks>;
  __shared__ NormPart<C> parts[kCentre ? kWarps : 1];
  __shared__ WarpSquares<C, kCentre ? 1 : kWarps> squares;
  const int size = static_cast<int>(blockDim.x);
  // With more packs the plain rows of layer_norm lose by it.
  constexpr bool kMayBeMixed =
      sizeof(T) == 2 && !kResidual && kPacks <= NormWholePolicy::kBlockManyPacks;
  RunWhole<kMayBeFull, kMayBeMixed>(p.packs == size * kPacks, p, [&](auto full, auto weights) {
    using W = typename decltype(weights)::type;
    constexpr int kParts = kIsMixed<T, W> ? 2 : 1;  // of a pack
    constexpr int kAhead = NormWholePolicy::kLoneWeightsAhead<T, kCentre, kPacks>;
    NormWholeRow<T, kCentre, kResidual, 0, kPacks * kParts, kAhead, decltype(full)::value, W,
                 kPackBytes / kParts>
        part(p, blockIdx.x, p.packs * kParts, threadIdx.x, size);
    part.Load();
    part.AskForWeights();
    part.FinishAsking();
    const NormPart<C> mine = part.Gather();
    if constexpr (kCentre) {
      if (threadIdx.x % kWarp == 0) parts[threadIdx.x / kWarp] = mine;
      __syncthreads();
      part.Conclude(MergeParts<true>(parts, size / kWarp, p.share));
    } else {
      squares.Put(mine.squares);
      __syncthreads();
      NormPart<C> row;
      row.squares = squares.Sum();
      part.Conclude(row);
    }
    part.StoreStatistics();
    part.Store();
  });
}

// A row per cluster of blocks.
template <class T, bool kCentre, bool kResidual, int kPacks>
__global__ void __launch_bounds__(NormWholePolicy::kWholeThreads<T>,
                                  NormWholePolicy::kWholeBlocks<T>)
    NormBlockKernel(const __grid_constant__ NormWhole<T> p) {
  using Exchange = WarpExchange<NormPart<ComputeType<T>>>;
  constexpr int kAhead = NormWholePolicy::kWeightsAhead<T, kCentre, kPacks>;
  extern __shared__ __align__(16) char shared[];
  Exchange exchange(shared);
  const int size = Exchange::blocks() * static_cast<int>(blockDim.x);
  const int rank = Exchange::block() * static_cast<int>(blockDim.x) + threadIdx.x;
  const bool full = p.packs == size * kPacks;
  RunWhole<kHoldsValues<T, 0, kResidual, kPacks>, false>(full, p, [&](auto full, auto weights) {
    NormWholeRow<T, kCentre, kResidual, 0, kPacks, kAhead, decltype(full)::value,
                 typename decltype(weights)::type>
        part(p, internal::ClusterIndex(), p.packs, rank, size);
    constexpr bool kWithRow = kPacks <= NormWholePolicy::kEarlyPacks;
    part.Load();
    if (kWithRow) part.AskForWeights();
    exchange.Send(part.Gather());
    if (!kWithRow) part.AskForWeights();
    part.Conclude(MergeParts<kCentre>(exchange.Receive(), Exchange::values(), p.share));
    part.StoreStatistics();
    part.Store();
  });
}

}  // namespace oneflow_lite::cuda
