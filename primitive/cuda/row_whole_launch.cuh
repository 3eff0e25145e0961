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
  const WholePlan plan = ChooseWholePlan(rows, packs, A::kPack, limits);
  if (plan.kernel == WholeKernel::kNone || rows > kMaxBlocks) return false;
  const auto kernel = plan.kernel == WholeKernel::kTwo ? RowWholeBlockKernel<K, WholeTwo>
                                                       : RowWholeBlockKernel<K, Four>;
  *error = Launch(kernel, rows, plan.threads, 0, stream, Kept(a), static_cast<int>(packs));
  return true;
}

}  // namespace internal
}  // namespace cuda
}  // namespace oneflow_lite
