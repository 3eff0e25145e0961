// SPDX-License-Identifier: Apache-2.0
//
// The launch of gradients, rows of two inputs, that lie alike and are wider than a group of lanes
// (row_whole.cuh, row_parked.cuh).
#pragma once

#include "primitive/cuda/row_parked.cuh"
#include "primitive/cuda/row_whole_launch.cuh"

namespace oneflow_lite {
namespace cuda {
namespace internal {

template <class A>
inline constexpr bool HasParkedBlocks = (MayBeWhole<A>::value && A::kInputs == 2 &&
                                         Shifts<A>::value && !HasSeen<A>::value);

// Whether whole rows have clusters of their own. float32 with exponentials spills in them: 100000
// columns 0.94 of an addition, 0.99 parked.
template <class A>
inline constexpr bool HasHeavyClusters = A::kPack == 8 || (A::kPack == 4 && A::kFewOperations);

// False where none of these kernels serves the rows.
template <class A>
bool LaunchParkedBlocks(const A& a, int64_t rows, int64_t cols, const DeviceLimits& limits,
                        cudaStream_t stream, cudaError_t* error) {
  using Shape = Parked<A::kPack>;
  constexpr bool kPair = HasPairBlocks<A>(), kHeavy = HasHeavyClusters<A>;
  const bool whole = a.IsWhole(cols);
  const int64_t packs = cols / A::kPack;
  int heavy_blocks = 1, parked_blocks = 1;
  if (limits.clusters && packs > 2 * RowPolicy::kFewPacks) {
    const size_t most = limits.shared_per_block;
    if ((*error = AllowAllShared<RowParkedKernel<A, Shape>>(limits)) != cudaSuccess) return true;
    parked_blocks = MaxClusterBlocks<RowParkedKernel<A, Shape>>(Shape::kThreads, most, limits);
    if constexpr (kHeavy) {
      constexpr int kThreads = WholeHeavy::kThreads;
      heavy_blocks = MaxClusterBlocks<RowWholeBlockKernel<A, WholeHeavy>>(kThreads, 0, limits);
    }
  }
  const WholePlan plan =
      ChoosePairPlan<A::kPack>(rows, packs, whole, kPair, heavy_blocks, parked_blocks, limits);
  const int64_t blocks = plan.blocks_per_row;
  if (plan.kernel == WholeKernel::kNone || rows > kMaxBlocks / blocks) return false;
  const auto launch = [&](auto kernel, int64_t length, int64_t shared) {
    *error = LaunchAs({plan.blocks_per_row}, kernel, rows * blocks, plan.threads, shared, stream, a,
                      static_cast<int>(length), static_cast<int>(CeilDiv(packs, blocks)));
    return true;
  };
  if constexpr (kPair) {
    if (plan.kernel == WholeKernel::kPair) {
      return launch(RowWholeBlockKernel<A, WholePair<A::kPack>>, packs, 0);
    }
  }
  if constexpr (kHeavy) {
    if (plan.kernel == WholeKernel::kHeavy) {
      return launch(RowWholeBlockKernel<A, WholeHeavy>, packs, 0);
    }
  }
  return launch(RowParkedKernel<A, Shape>, cols,
                ParkedScratch<A, Shape> + ParkedBytes<A::kPack>(packs, plan.blocks_per_row));
}

}  // namespace internal
}  // namespace cuda
}  // namespace oneflow_lite
