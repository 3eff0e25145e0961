// SPDX-License-Identifier: Apache-2.0
//
// The launch of narrow rows: a row per group of lanes (rows/registers.cuh, rows/columns.cuh,
// rows/whole.cuh).
#pragma once

#include "primitive/cuda/rows/columns.cuh"
#include "primitive/cuda/rows/whole_launch.cuh"

namespace oneflow_lite {
namespace cuda {
namespace internal {

// Calls f(GroupShape) for the plan's one of the seven instances of the group tier.
template <int kLanes, int kPacks>
struct GroupShape {
  static constexpr int lanes = kLanes, packs = kPacks;
};
template <class F>
cudaError_t VisitGroupShape(const RowPlan& plan, F&& f) {
  switch (plan.lanes * plan.packs) {
    case 4:
      return f(GroupShape<4, 1>{});
    case 8:
      return f(GroupShape<8, 1>{});
    case 16:
      return f(GroupShape<8, 2>{});
    case 32:
      return f(GroupShape<16, 2>{});
    case 64:
      return f(GroupShape<16, 4>{});
    case 128:
      return f(GroupShape<32, 4>{});
    default:
      return f(GroupShape<32, 8>{});
  }
}
static_assert(RowPolicy::kGroupPacks == 8, "VisitGroupShape lists the shapes");

// Packs of a lane. Blocks take over from 4 where they serve whole rows: others of 1025 to 2048
// columns of half are as fast in them (0.95 to 0.98), and a kernel is saved.
template <class A, bool kAligned>
inline constexpr int MostGroupPacks = (kAligned && HasWholeBlocks<A> && A::kPack == 8)
                                          ? RowPolicy::kGroupPacks / 2
                                          : GroupPacks<A, kAligned>;

// A row per group of lanes, in packs of N elements.
template <int kLanes, int kPacks, int N, class A>
cudaError_t LaunchSmallPacks(const A& a, int64_t rows, int64_t cols, cudaStream_t stream) {
  constexpr int kThreads = RowPolicy::kGroupThreads;
  return Launch(RowGroupKernel<kLanes, kPacks, SmallPacks<A, N>, true>,
                CeilDiv(rows, kThreads / kLanes), kThreads, 0, stream, SmallPacks<A, N>(a), rows,
                cols);
}
// Rows of so few columns that are read as they are written have kernels for pairs and fours of
// elements, or for single columns. Shares of a copy or addition of 49152 rows of half: 11 columns
// 0.79 in pairs, 0.67 column by column, 25 columns 0.96, 0.81, 42 columns 0.89, 0.75 in whole
// packs; the gradient of 33 columns 0.91 by fours, 0.84 column by column. Whole packs serve
// gradients of float32 as well, and doubles, which have more to compute.
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
cudaError_t LaunchFewColumns(const A& a, int64_t rows, int64_t cols, cudaStream_t stream) {
  using Few = FewColumns<A>;
  if (cols <= Few::kByFour) return LaunchSmallPacks<4, 3, 2>(NarrowOf(a), rows, cols, stream);
  if constexpr (Few::kPair) {
    return LaunchSmallPacks<8, 2, 4>(a, rows, cols, stream);
  } else {
    if constexpr (Few::kShort) {
      if (cols > 32) return LaunchSmallPacks<8, 3, 2>(NarrowOf(a), rows, cols, stream);
    }
    return LaunchFewestColumns(NarrowOf(a), rows, cols, stream);
  }
}

// Whole rows of the plan's shape, but for two kinds: doubles of 33 to 64 columns are faster in
// fewer lanes (12288 x 48 6.5 us, 7.1 in 16), and 16-bit softmax of 65 to 96 packs with one pack
// less (1024 x 768 4.7 us, 4.9; its gradient 5.0, 5.2).
template <int kLanes, int kPacks, class A>
cudaError_t LaunchWholeShape(const A& a, int64_t rows, int64_t cols, cudaStream_t stream) {
  constexpr bool kLong = kLanes == 32 && kPacks == 4 && sizeof(typename A::Element) == 2;
  if constexpr (sizeof(typename A::C) == 8 && A::kInputs == 1 && kLanes == 16 && kPacks == 2) {
    return LaunchWholeGroups<8, 4>(a, rows, cols, stream);
  } else {
    if constexpr (kLong && (HasPairBlocks<A>() || KeepsMore<A>)) {
      if (cols <= 3 * kWarp * A::kPack) return LaunchWholeGroups<32, 3>(a, rows, cols, stream);
    }
    return LaunchWholeGroups<kLanes, kPacks>(a, rows, cols, stream);
  }
}

// A row per group of lanes, by the plan; not whole and at most FewColumns<A>::kMost columns: above.
template <bool kAligned, class A>
cudaError_t LaunchGroups(const RowPlan& plan, const A& a, int64_t rows, int64_t cols,
                         cudaStream_t stream) {
  if constexpr (kAligned && FewColumns<A>::kServed) {
    if (cols <= FewColumns<A>::kMost && !a.IsWhole(cols)) {
      return LaunchFewColumns(a, rows, cols, stream);
    }
  }
  return VisitGroupShape(plan, [&](auto shape) {
    using Shape = decltype(shape);
    constexpr int kThreads = RowPolicy::kGroupThreads, kMost = MostGroupPacks<A, kAligned>;
    constexpr int kPacks = Shape::packs < kMost ? Shape::packs : kMost;
    if constexpr (Offers<A, RowOffers::kWhole>) {
      if constexpr (Shape::packs < 8 || MostWholePacks<A> == 8) {
        if (a.IsWhole(cols)) {
          return LaunchWholeShape<Shape::lanes, Shape::packs>(a, rows, cols, stream);
        }
      }
    }
    const auto launch = [&](const auto& algorithm) {
      return Launch(
          RowGroupKernel<Shape::lanes, kPacks, std::decay_t<decltype(algorithm)>, kAligned>,
          CeilDiv(rows, kThreads / Shape::lanes), kThreads, 0, stream, algorithm, rows, cols);
    };
    // 49152 x 201 of half: 0.91 of a copy, 0.83 with the exponentials taken twice.
    constexpr bool kHeld = sizeof(typename A::Element) == sizeof(typename A::C);
    constexpr int kMostFew = kAligned ? FewColumns<A>::kMost : 0;
    if constexpr (Shape::lanes * Shape::packs < kMostFew / A::kPack) {
      return LaunchFewColumns(a, rows, cols, stream);  // all rows of this shape have gone there
    } else if constexpr (kAligned && (kHeld || kPacks <= 4)) {
      return launch(NarrowOf(a));
    } else {
      return launch(a);
    }
  });
}

// Narrow rows that lie alike, of an algorithm that has another one for registers because its
// weights do not: 49152 x 301 of half, rms_norm 0.79 of a copy, 0.65 with a row per warp.
template <class A>
bool IsAlikeGroup(const A& a, int64_t cols) {
  const int64_t least = sizeof(typename A::Output) == 2 ? kMostColumns / 2 : kMostColumns;
  return cols > least && cols / A::kPack <= 64 && a.LiesAlike();
}
template <class A>
cudaError_t LaunchAlikeGroups(const A& a, int64_t rows, int64_t cols, cudaStream_t stream) {
  const auto launch = [&](auto shape) {
    constexpr int kLanes = decltype(shape)::lanes, kThreads = RowPolicy::kGroupThreads;
    return Launch(RowGroupKernel<kLanes, decltype(shape)::packs, A, true>,
                  CeilDiv(rows, kThreads / kLanes), kThreads, 0, stream, a, rows, cols);
  };
  const int64_t packs = cols / A::kPack;
  if (packs <= 16) return launch(GroupShape<8, 2>{});
  if (packs <= 32) return launch(GroupShape<16, 2>{});
  return launch(GroupShape<16, 4>{});
}

}  // namespace internal
}  // namespace cuda
}  // namespace oneflow_lite
