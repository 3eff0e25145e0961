// SPDX-License-Identifier: Apache-2.0
//
// The launches of narrow rows: a row per group of lanes (rows/registers.cuh, rows/narrow.cuh,
// rows/whole.cuh).
#pragma once

#include "primitive/cuda/chip/launch.cuh"
#include "primitive/cuda/rows/narrow.cuh"
#include "primitive/cuda/rows/whole.cuh"

namespace oneflow_lite::cuda::internal {

// Whether whole rows wider than 4 packs a lane have kernels of their own.
template <class A>
inline constexpr bool HasWholeBlocks = (Offers<A, RowOffers::kWhole> &&
                                        Offers<A, RowOffers::kKeep> && sizeof(typename A::C) < 8);

// A group of lanes per row, or for two, which costs as many instructions and half the blocks.
// Doubles have more to compute, and exponentials that are kept cost rows by the ten thousand up to
// 1 % and save others up to 10 %. By the measurements in docs/lab/40-tuning-narrow-rows.md.
template <int kLanes, int kPacks, class A>
cudaError_t LaunchWholeGroups(const A& a, const RowCall& call) {
  constexpr int kRows = HasWholeBlocks<A> && kPacks == 2 ? 2 : 1;
  const auto k = Kept<(kPacks <= 4)>(a);
  const auto kernel = RowWholeKernel<kLanes, kPacks, std::decay_t<decltype(k)>, kRows>;
  return LaunchRowGroups<kLanes, kRows>(kernel, call, k, call.rows,
                                        static_cast<int>(call.cols / A::kPack));
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

// Calls f(GroupShape) for the plan's one of the seven instances of the group tier.
template <class F>
cudaError_t VisitGroupShape(const RowPlan& plan, F&& f) {
  return VisitShapes<GroupShape<4, 1>, GroupShape<8, 1>, GroupShape<8, 2>, GroupShape<16, 2>,
                     GroupShape<16, 4>, GroupShape<32, 4>, GroupShape<32, 8>>(
      plan.lanes * plan.packs, f);
}
static_assert(RowPolicy::kGroupPacks == 8, "VisitGroupShape lists the shapes");

// Packs of a lane. Blocks take over from 4 where they serve whole rows: others of 1025 to 2048
// columns of half are as fast in them (0.95 to 0.98), and a kernel is saved.
template <class A, bool kAligned>
inline constexpr int MostGroupPacks = (kAligned && HasWholeBlocks<A> && A::kPack == 8)
                                          ? RowPolicy::kGroupPacks / 2
                                          : GroupPacks<A, kAligned>;

// A row per group of lanes.
template <int kLanes, int kPacks, bool kAligned = true, class A>
cudaError_t LaunchGroupsOf(const A& a, const RowCall& call) {
  return LaunchRowGroups<kLanes>(RowGroupKernel<kLanes, kPacks, A, kAligned>, call, a, call.rows,
                                 call.cols);
}
// The same in packs of N elements.
template <int kLanes, int kPacks, int N, class A>
cudaError_t LaunchSmallPacks(const A& a, const RowCall& call) {
  return LaunchGroupsOf<kLanes, kPacks>(SmallPacks<A, N>(a), call);
}
// Rows of so few columns that are read as they are written have kernels for pairs and fours of
// elements, or for single columns. Whole packs serve gradients of float32 as well, and doubles,
// which have more to compute.
template <class A>
struct FewColumns {
  static constexpr bool kShort = sizeof(typename A::Element) == 2, kPair = A::kInputs == 2;
  static constexpr bool kServed = Offers<A, RowOffers::kShifts> && Offers<A, RowOffers::kWhole> &&
                                  sizeof(typename A::C) < 8 && (kShort || !kPair);
  // What 4 or 8 lanes hold, with 3 pairs and a single column each.
  static constexpr int kByFour = 25, kByEight = 49;
  static constexpr int kMost = !kServed ? 0 : kPair ? 44 : kShort ? kByEight : kFewColumns;
};
// Precondition: cols <= FewColumns<A>::kMost.
template <class A>
cudaError_t LaunchFewColumns(const A& a, const RowCall& call) {
  using Few = FewColumns<A>;
  if (call.cols <= Few::kByFour) return LaunchSmallPacks<4, 3, 2>(NarrowOf(a), call);
  if constexpr (Few::kPair) {
    return LaunchSmallPacks<8, 2, 4>(a, call);
  } else {
    if constexpr (Few::kShort) {
      if (call.cols > 32) return LaunchSmallPacks<8, 3, 2>(NarrowOf(a), call);
    }
    return LaunchFewestColumns(NarrowOf(a), call);
  }
}

// Whole rows of the plan's shape, but for two kinds: doubles of 33 to 64 columns are faster in
// fewer lanes, and 16-bit softmax of 65 to 96 packs with one pack less.
template <int kLanes, int kPacks, class A>
cudaError_t LaunchWholeShape(const A& a, const RowCall& call) {
  constexpr bool kLong = kLanes == 32 && kPacks == 4 && sizeof(typename A::Element) == 2;
  if constexpr (sizeof(typename A::C) == 8 && A::kInputs == 1 && kLanes == 16 && kPacks == 2) {
    return LaunchWholeGroups<8, 4>(a, call);
  } else {
    if constexpr (kLong && (HasPairBlocks<A>() || !std::is_same_v<KeptOf<A>, A>)) {
      if (call.cols <= 3 * kWarp * A::kPack) return LaunchWholeGroups<32, 3>(a, call);
    }
    return LaunchWholeGroups<kLanes, kPacks>(a, call);
  }
}

// A row per group of lanes, by the plan; not whole and at most FewColumns<A>::kMost columns: above.
template <bool kAligned, class A>
cudaError_t LaunchGroups(const RowPlan& plan, const A& a, const RowCall& call) {
  if constexpr (kAligned && FewColumns<A>::kServed) {
    if (call.cols <= FewColumns<A>::kMost && !a.IsWhole(call.cols)) {
      return LaunchFewColumns(a, call);
    }
  }
  return VisitGroupShape(plan, [&](auto shape) {
    using Shape = decltype(shape);
    constexpr int kMost = MostGroupPacks<A, kAligned>;
    constexpr int kPacks = Shape::packs < kMost ? Shape::packs : kMost;
    if constexpr (Offers<A, RowOffers::kWhole>) {
      if constexpr (Shape::packs < 8 || MostWholePacks<A> == 8) {
        if (a.IsWhole(call.cols)) return LaunchWholeShape<Shape::lanes, Shape::packs>(a, call);
      }
    }
    constexpr bool kHeld = sizeof(typename A::Element) == sizeof(typename A::C);
    constexpr int kMostFew = kAligned ? FewColumns<A>::kMost : 0;
    if constexpr (Shape::lanes * Shape::packs < kMostFew / A::kPack) {
      return LaunchFewColumns(a, call);  // all rows of this shape have gone there
    } else if constexpr (kAligned && (kHeld || kPacks <= 4)) {
      return LaunchGroupsOf<Shape::lanes, kPacks, kAligned>(NarrowOf(a), call);
    } else {
      return LaunchGroupsOf<Shape::lanes, kPacks, kAligned>(a, call);
    }
  });
}

// Narrow rows that lie alike, of an algorithm that has another one for registers because its
// weights do not: of few rows that one is faster (docs/lab/61-which-tiers-earn-their-lines.md).
template <class A>
bool IsAlikeGroup(const A& a, const RowCall& call) {
  const int64_t least = sizeof(typename A::Output) == 2 ? kMostColumns / 2 : kMostColumns;
  const bool few = call.rows <= int64_t{32} * call.limits.multiprocessors;
  return (!few || call.cols < least + least / 8) && call.cols > least &&
         call.cols / A::kPack <= 64 && a.LiesAlike();
}
template <class A>
cudaError_t LaunchAlikeGroups(const A& a, const RowCall& call) {
  const auto launch = [&](auto shape) {
    return LaunchGroupsOf<decltype(shape)::lanes, decltype(shape)::packs>(a, call);
  };
  return VisitShapes<GroupShape<8, 2>, GroupShape<16, 2>, GroupShape<16, 4>>(call.cols / A::kPack,
                                                                             launch);
}

}  // namespace oneflow_lite::cuda::internal
