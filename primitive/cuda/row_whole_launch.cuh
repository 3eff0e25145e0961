// SPDX-License-Identifier: Apache-2.0
//
// The launch of rows of whole packs (row_whole.cuh).
#pragma once

#include "primitive/cuda/launch.cuh"
#include "primitive/cuda/row_whole.cuh"

namespace oneflow_lite {
namespace cuda {
namespace internal {

// Whether whole rows wider than 4 packs a lane have kernels of their own.
template <class A>
inline constexpr bool HasWholeBlocks = MayBeWhole<A>::value&& HasKept<A>::value &&
                                       sizeof(typename A::C) < 8;

// A group of lanes per row, or for two, which costs as many instructions and half the blocks.
template <int kLanes, int kPacks, class A>
cudaError_t LaunchWholeGroups(const A& a, int64_t rows, int64_t cols, cudaStream_t stream) {
  constexpr int kThreads = RowPolicy::kGroupThreads;
  constexpr bool kKeep = HasKept<A>::value && kPacks <= 2;
  constexpr int kRows = kKeep && kPacks == 2 ? 2 : 1;
  using K = std::conditional_t<kKeep, typename KeptOf<A>::type, A>;
  const auto launch = [&](const K& algorithm) {
    return Launch(RowWholeKernel<kLanes, kPacks, K, kRows>,
                  CeilDiv(rows, kThreads / kLanes * kRows), kThreads, 0, stream, algorithm, rows,
                  static_cast<int>(cols / A::kPack));
  };
  if constexpr (kKeep) {
    return launch(Kept(a));
  } else {
    return launch(a);
  }
}

// Rows of whole packs, if one of the kernels for them serves these.
template <class A>
bool LaunchWholeBlocks(const A& a, int64_t rows, int64_t cols, const DeviceLimits& limits,
                       cudaStream_t stream, cudaError_t* error) {
  using K = typename KeptOf<A>::type;
  using Four = WholeFour<A::kPack>;
  const int64_t packs = cols / A::kPack;
  int wide = 1, few = 1;
  if (limits.clusters && packs > 2 * RowPolicy::kFewPacks) {
    wide = MaxClusterBlocks<RowWholeBlockKernel<A, WholeWide>>(WholeWide::kThreads, 0, limits);
    few = MaxClusterBlocks<RowWholeBlockKernel<A, WholeFew>>(WholeFew::kThreads, 0, limits);
  }
  const WholePlan plan = ChooseWholePlan(rows, packs, A::kPack, wide, few, limits);
  if (plan.kernel == WholeKernel::kNone || rows > kMaxBlocks / plan.blocks_per_row) return false;
  const auto launch = [&](auto kernel, const auto& algorithm) {
    const int share = static_cast<int>(CeilDiv(packs, plan.blocks_per_row));
    *error = LaunchAs({plan.blocks_per_row}, kernel, rows * plan.blocks_per_row, plan.threads, 0,
                      stream, algorithm, static_cast<int>(packs), share);
    return true;
  };
  if (plan.kernel == WholeKernel::kTwo) return launch(RowWholeBlockKernel<K, WholeTwo>, Kept(a));
  if (plan.kernel == WholeKernel::kFour) return launch(RowWholeBlockKernel<K, Four>, Kept(a));
  if (plan.kernel == WholeKernel::kFew) return launch(RowWholeBlockKernel<A, WholeFew>, a);
  return launch(RowWholeBlockKernel<A, WholeWide>, a);
}

// Only those that clusters serve.
template <class A>
bool LaunchWholeClusters(const A& a, int64_t rows, int64_t cols, const DeviceLimits& limits,
                         cudaStream_t stream, cudaError_t* error) {
  constexpr auto kernel = RowWholeBlockKernel<A, WholeWide>;
  const int64_t packs = cols / A::kPack;
  const int most =
      MaxClusterBlocks<RowWholeBlockKernel<A, WholeWide>>(WholeWide::kThreads, 0, limits);
  const WholePlan plan = ChooseWholePlan(rows, packs, A::kPack, most, /*few_blocks=*/1, limits);
  const int64_t blocks = plan.blocks_per_row;
  if (plan.kernel != WholeKernel::kWide || rows > kMaxBlocks / blocks) return false;
  *error = LaunchAs({plan.blocks_per_row}, kernel, rows * blocks, plan.threads, 0, stream, a,
                    static_cast<int>(packs), static_cast<int>(CeilDiv(packs, blocks)));
  return true;
}

}  // namespace internal
}  // namespace cuda
}  // namespace oneflow_lite
