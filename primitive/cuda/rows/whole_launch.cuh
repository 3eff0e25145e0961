// SPDX-License-Identifier: Apache-2.0
//
// The launch of rows of whole packs (rows/whole.cuh).
#pragma once

#include "primitive/cuda/chip/launch.cuh"
#include "primitive/cuda/rows/whole.cuh"

namespace oneflow_lite {
namespace cuda {
namespace internal {

// Whether whole rows wider than 4 packs a lane have kernels of their own.
template <class A>
inline constexpr bool HasWholeBlocks = (Offers<A, RowOffers::kWhole> &&
                                        Offers<A, RowOffers::kKeep> && sizeof(typename A::C) < 8);

// Whether Keep() gives another algorithm.
template <class A>
inline constexpr bool KeepsMore =
    Offers<A, RowOffers::kKeep> && !std::is_same_v<typename KeptOf<A>::type, A>;

// A group of lanes per row, or for two, which costs as many instructions and half the blocks.
// Doubles have more to compute: 12288 x 64 0.87 of a copy, 0.81 by twos. Exponentials that are kept
// cost rows by the ten thousand up to 1 % (16384 x 1024 of half 17.9 us, 18.0 taken twice) and save
// others up to 10 % (4096 x 1024 7.6 us, 8.3).
template <int kLanes, int kPacks, class A>
cudaError_t LaunchWholeGroups(const A& a, int64_t rows, int64_t cols, cudaStream_t stream) {
  constexpr int kThreads = RowPolicy::kGroupThreads;
  constexpr bool kKeep = Offers<A, RowOffers::kKeep> && kPacks <= 4;
  constexpr int kRows = kKeep && kPacks == 2 && sizeof(typename A::C) < 8 ? 2 : 1;
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

// Whether gradients have a kernel for a block: exponentials take the registers that it is faster
// by.
template <class A>
constexpr bool HasPairBlocks() {
  if constexpr (A::kInputs == 2) {
    return A::kFewOperations && A::kPack > 2;
  } else {
    return false;
  }
}
// Packs of a lane where a group of lanes has a whole row. From 129 packs on blocks are as fast.
template <class A>
inline constexpr int MostWholePacks = HasWholeBlocks<A> || (A::kPack == 8 && HasPairBlocks<A>())
                                          ? RowPolicy::kGroupPacks / 2
                                          : RowPolicy::kGroupPacks;

// Whether whole rows of doubles have kernels of their own.
template <class A>
inline constexpr bool HasDoubleBlocks = (Offers<A, RowOffers::kWhole> && A::kInputs == 1 &&
                                         sizeof(typename A::C) == 8);

template <class A>
WholePlan WholePlanOf(int64_t rows, int64_t packs, const DeviceLimits& limits) {
  const bool clusters = limits.clusters && packs > 2 * RowPolicy::kFewPacks;
  const auto most = [&](auto shape) {
    using Shape = decltype(shape);
    return MaxClusterBlocks<RowWholeBlockKernel<A, Shape>>(Shape::kThreads, 0, limits);
  };
  return ChooseWholePlan({1, A::kPack, true, rows, packs}, limits, [&](WholeKernel kernel) {
    if (!clusters) return 1;
    if constexpr (HasWholeBlocks<A>) {
      if (kernel == WholeKernel::kWide) return most(WholeWide{});
      if (kernel == WholeKernel::kFew) return most(WholeFew{});
    } else {
      if (kernel == WholeKernel::kHeavy) return most(WholeHeavy{});
      if (kernel == WholeKernel::kHeaviest) return most(WholeHeaviest{});
    }
    return 1;
  });
}

// Rows of whole packs, if one of the kernels for them serves these.
template <class A>
bool LaunchWholeBlocks(const A& a, int64_t rows, int64_t cols, const DeviceLimits& limits,
                       cudaStream_t stream, cudaError_t* error) {
  using K = typename KeptOf<A>::type;
  const int64_t packs = cols / A::kPack;
  const WholePlan plan = WholePlanOf<A>(rows, packs, limits);
  if (plan.kernel == WholeKernel::kNone || rows > kMaxBlocks / plan.blocks_per_row) return false;
  const auto launch = [&](auto kernel, const auto& algorithm) {
    const int share = static_cast<int>(CeilDiv(packs, plan.blocks_per_row));
    *error = LaunchAs({plan.blocks_per_row}, kernel, rows * plan.blocks_per_row, plan.threads, 0,
                      stream, algorithm, static_cast<int>(packs), share);
    return true;
  };
  if constexpr (HasWholeBlocks<A>) {
    using Four = WholeFour<A::kPack>;
    if (plan.kernel == WholeKernel::kTwo) return launch(RowWholeBlockKernel<K, WholeTwo>, Kept(a));
    if (plan.kernel == WholeKernel::kFour) return launch(RowWholeBlockKernel<K, Four>, Kept(a));
    if constexpr (A::kPack == 4) {
      if (plan.kernel == WholeKernel::kThree) {
        return launch(RowWholeBlockKernel<K, WholeThree>, Kept(a));
      }
      if (plan.kernel == WholeKernel::kEight) {
        return launch(RowWholeBlockKernel<K, WholeEight>, Kept(a));
      }
    }
    if (plan.kernel == WholeKernel::kFew) return launch(RowWholeBlockKernel<A, WholeFew>, a);
    return launch(RowWholeBlockKernel<A, WholeWide>, a);
  } else {
    if (plan.kernel == WholeKernel::kLone) return launch(RowWholeBlockKernel<A, WholeLone>, a);
    if (plan.kernel == WholeKernel::kHeavy) return launch(RowWholeBlockKernel<A, WholeHeavy>, a);
    return launch(RowWholeBlockKernel<A, WholeHeaviest>, a);
  }
}

// Only those that clusters serve.
template <class A>
bool LaunchWholeClusters(const A& a, int64_t rows, int64_t cols, const DeviceLimits& limits,
                         cudaStream_t stream, cudaError_t* error) {
  constexpr auto kernel = RowWholeBlockKernel<A, WholeWide>;
  const int64_t packs = cols / A::kPack;
  const WholePlan plan =
      ChooseWholePlan({1, A::kPack, true, rows, packs}, limits, [&](WholeKernel k) {
        return k == WholeKernel::kWide ? MaxClusterBlocks<kernel>(WholeWide::kThreads, 0, limits)
                                       : 1;
      });
  const int64_t blocks = plan.blocks_per_row;
  if (plan.kernel != WholeKernel::kWide || rows > kMaxBlocks / blocks) return false;
  *error = LaunchAs({plan.blocks_per_row}, kernel, rows * blocks, plan.threads, 0, stream, a,
                    static_cast<int>(packs), static_cast<int>(CeilDiv(packs, blocks)));
  return true;
}

}  // namespace internal
}  // namespace cuda
}  // namespace oneflow_lite
