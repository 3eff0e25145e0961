// SPDX-License-Identifier: Apache-2.0
//
// The launch of a row algorithm (primitive/cuda/rows/row.cuh) whose results for a row depend on
// neither the number of rows nor where the row lies in memory: the kernel follows from the width
// and the dtype alone, and packs are counted from the row's own first column on. Aligned words of
// 16 bytes move, which begin anywhere in a pack: when a row is read, lanes take what they lack from
// the next lane (primitive/cuda/rows/shifted.cuh), and when it is written, from the one in front of
// them (own_words.cuh). A row that is overwritten stays as it lies (own_in_place.cuh).
#pragma once

#include "primitive/cuda/chip/launch.cuh"
#include "python/torch/invariant/column_rows.cuh"
#include "python/torch/invariant/own_in_place.cuh"
#include "python/torch/invariant/own_staged.cuh"
#include "python/torch/invariant/own_words.cuh"

namespace oneflow_lite {
namespace cuda {

namespace internal {

// The row by `team`; kAsked and ends, of the warp: see ByWords.
template <int kPacks, int kAsked, class A, class Team>
__device__ __forceinline__ void OwnRow(const A& a, int64_t row, int cols, int each, Team& team,
                                       uint4* ends) {
  if constexpr (KeepsPacks<A>::value) {
    const ByWords<kPacks, kAsked, A> by_words(a, team.rank(), cols, each, ends);
    RowShifted<kPacks>(by_words, row, cols, each, team);
  } else if constexpr (kIsInPlace<A>) {
    RowInPlace<kPacks>(a, row, cols, each, team);
  } else {
    RowShifted<kPacks>(a, row, cols, each, team);
  }
}

}  // namespace internal

// Blocks of a row per warp on a multiprocessor, for which the compiler leaves registers: 64, 72 or
// 80 a thread, and 96 with 8 packs. It takes more where it may: layer_norm of 16384 x 769 of
// bfloat16 20.4 us with 80 registers, 18.3 with 64; rms_norm of 1001 columns 23.9 with 96, 20.9
// with 72.
template <int kPacks, class A>
constexpr int OwnWarpBlocks() {
  if (A::kInputs == 2 || sizeof(typename A::C) == 8) return 1;
  constexpr bool kWide = sizeof(typename A::template Value<A::kPack>) > kPackBytes;
  if (kPacks <= 4) return kPacks <= 3 ? 8 : internal::HasWeights<A>::value && kWide ? 6 : 7;
  return 5;
}

// A row per warp.
template <int kPacks, class A>
__global__ void __launch_bounds__(RowPolicy::kGroupThreads, OwnWarpBlocks<kPacks, A>())
    OwnColumnsWarpKernel(A a, int64_t rows, int cols, int each) {
  constexpr int kWarps = RowPolicy::kGroupThreads / kWarp;
  __shared__ uint4 ends[kWarps][2];
  const int at = threadIdx.x / kWarp;
  const int64_t row = int64_t{blockIdx.x} * kWarps + at;
  if (row >= rows) return;
  internal::Alone<LaneGroup<kWarp>> warp;
  constexpr int kAsked = sizeof(typename A::Output) == 2 ? 2 : 0;
  internal::OwnRow<kPacks, kAsked>(a, row, cols, each, warp, ends[at]);
}

// A block: packs of a thread, at most, and for how many threads and blocks per multiprocessor the
// compiler leaves registers.
template <int kPacks_, int kThreads_, int kBlocks_>
struct OwnShape {
  static constexpr int kPacks = kPacks_, kThreads = kThreads_, kBlocks = kBlocks_;
};

// Threads of a block, as the compiler is told: rows of one input have 64 registers a thread so,
// which is more threads on a multiprocessor.
template <class A>
inline constexpr int kOwnThreads = A::kInputs == 1 && sizeof(typename A::C) == 4
                                       ? 512
                                       : ShiftedShape<A, false>::kThreads;
template <class A>
using OwnShapeOf =
    OwnShape<ShiftedShape<A, false>::kPacks, kOwnThreads<A>, ShiftedShape<A, false>::kBlocks>;

// The shape of a block with a row of up to kMost packs, more than kAbove. OwnShapeOf has warps of 6
// packs a thread with 64 registers for these, 11 or 12 of which are twice on a multiprocessor; 8
// warps of 8 packs with 80 registers are three times, with as many packs again on their way. Two
// inputs would need a cluster. Values that take more registers than memory keep OwnShapeOf.
template <class A>
struct OwnTopShape {
  static constexpr bool kPair = A::kInputs == 2;
  static constexpr bool kServes =
      sizeof(typename A::C) == 4 &&
      sizeof(typename A::template Value<A::kPack>) <= A::kInputs * kPackBytes;
  using Shape = std::conditional_t<kPair, OwnShape<4, 512, 2>, OwnShape<8, 256, 3>>;
  static constexpr int64_t kAbove = kPair ? 1536 : 900, kMost = Shape::kPacks * Shape::kThreads;
};

// Whether rows of up to kShiftedNarrowPacks stay in the type in memory as wider ones do, with 4
// packs a thread.
template <class A>
inline constexpr bool kOwnPacked = false;

// The widest rows, in packs, that a warp holds: at most 8 packs a lane.
template <class A>
inline constexpr int kMostOfWarp = 128;

// A row per block.
template <class A, class Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocks)
    OwnColumnsBlockKernel(A a, int cols, int each) {
  using Team = internal::Warps<false>;
  __shared__ __align__(16) char scratch[Team::kScratchBytes];
  __shared__ uint4 ends[Shape::kThreads / kWarp][2];
  Team team(scratch);
  const int warp = threadIdx.x / kWarp;
  internal::OwnRow<Shape::kPacks, 0>(a, blockIdx.x, cols, each, team, ends[warp]);
}

namespace internal {

template <int kPacks, class A>
cudaError_t LaunchOwnWarps(const A& a, int64_t rows, int64_t cols, cudaStream_t stream) {
  constexpr int kThreads = RowPolicy::kGroupThreads;
  const int64_t blocks = CeilDiv(rows, kThreads / kWarp);
  if (blocks > kMaxBlocks) return cudaErrorInvalidConfiguration;
  return Launch(OwnColumnsWarpKernel<kPacks, A>, blocks, kThreads, 0, stream, a, rows,
                static_cast<int>(cols), static_cast<int>(CeilDiv(cols / A::kPack, kWarp)));
}
template <class A, class Shape = OwnShapeOf<A>>
cudaError_t LaunchOwnBlocks(const A& a, int64_t rows, int64_t cols, cudaStream_t stream) {
  const int64_t warps = CeilDiv(cols / A::kPack, kWarp * Shape::kPacks);
  const int threads = static_cast<int>(warps) * kWarp;
  const int each = static_cast<int>(CeilDiv(cols / A::kPack, threads));
  return Launch(OwnColumnsBlockKernel<A, Shape>, rows, threads, 0, stream, a,
                static_cast<int>(cols), each);
}

// The widest rows of A's blocks.
template <class A>
constexpr int64_t MostOwnPacks() {
  using Shape = ShiftedShape<A, false>;
  return int64_t{Shape::kThreads} * Shape::kPacks;
}

}  // namespace internal

// Rows of any width and alignment, of an algorithm that offers Frame, and whose Store functor,
// where it has one, is a KeepingStore; `staged`: the same for own_staged.cuh, for rows wider than a
// block holds; `by_columns`: the same that stores as it likes, for narrow rows, for those wider
// than a cluster holds, and for all that wide where there are no clusters. Neither allocates nor
// synchronises.
template <class A, class Staged, class Columns>
cudaError_t LaunchOwnColumns(const A& a, const Staged& staged, const Columns& by_columns,
                             int64_t rows, int64_t cols, const DeviceLimits& limits,
                             cudaStream_t stream) {
  using Wide = internal::InRegistersOf<true, A>;
  if (rows <= 0 || cols <= 0) return cudaSuccess;
  const int64_t packs = cols / A::kPack;
  if (cols <= kMostGroupColumns) return LaunchByColumns(by_columns, rows, cols, stream);
  const auto held = internal::RegistersOf<kOwnPacked<A>>(a);
  if constexpr (!Offers<A, RowOffers::kOnlyWide>) {
    if (packs <= 4 * kWarp) {
      const auto narrow = internal::NarrowOf(held);
      if (packs <= 2 * kWarp) return internal::LaunchOwnWarps<2>(narrow, rows, cols, stream);
      if (packs <= 3 * kWarp) return internal::LaunchOwnWarps<3>(narrow, rows, cols, stream);
      return internal::LaunchOwnWarps<4>(narrow, rows, cols, stream);
    }
    if constexpr (kMostOfWarp < A >> 4 * kWarp) {
      const auto narrow = internal::NarrowOf(held);
      if constexpr (sizeof(typename A::Element) == 2) {
        if (packs <= 5 * kWarp) return internal::LaunchOwnWarps<5>(narrow, rows, cols, stream);
        if (packs <= 6 * kWarp) return internal::LaunchOwnWarps<6>(narrow, rows, cols, stream);
      }
      if constexpr (kMostOfWarp<A> != 6 * kWarp) {
        if (packs <= kMostOfWarp<A>) {
          return internal::LaunchOwnWarps<8>(narrow, rows, cols, stream);
        }
      }
    }
  }
  if (packs <= internal::kShiftedNarrowPacks) {
    using Held = std::remove_const_t<decltype(held)>;
    using Shape = std::conditional_t<kOwnPacked<A>, OwnShape<4, 512, 2>, OwnShapeOf<Held>>;
    return internal::LaunchOwnBlocks<Held, Shape>(held, rows, cols, stream);
  }
  if (packs > kStagedAbove<Staged>) {
    const cudaError_t error = LaunchStaged(staged, rows, cols, limits, stream);
    if (error != kNotServed) return error;
  }
  if constexpr (OwnTopShape<Wide>::kServes) {
    using Top = OwnTopShape<Wide>;
    if (packs > Top::kAbove && packs <= Top::kMost) {
      const auto wide = internal::RegistersOf<true>(a);
      return internal::LaunchOwnBlocks<Wide, typename Top::Shape>(wide, rows, cols, stream);
    }
  }
  if (packs <= internal::MostOwnPacks<Wide>()) {
    return internal::LaunchOwnBlocks(internal::RegistersOf<true>(a), rows, cols, stream);
  }
  const cudaError_t error = LaunchStaged(staged, rows, cols, limits, stream);
  if (error != kNotServed) return error;
  return LaunchByColumns(by_columns, rows, cols, stream);
}

}  // namespace cuda
}  // namespace oneflow_lite
