// SPDX-License-Identifier: Apache-2.0
//
// The row kernel of rows that are read as they lie, which is not as they are written: at another
// offset within 16 bytes. A row stays in the registers of a warp, of a block, or of the blocks of a
// cluster. Each lane loads aligned words of 16 bytes and takes what it lacks from the next lane.
// The first and the last whole pack count among the columns outside packs, so that all words that
// are loaded lie inside the row, and nothing is asked about its ends.
#pragma once

#include "primitive/cuda/chip/launch.cuh"
#include "primitive/cuda/rows/narrow.cuh"
#include "primitive/cuda/rows/registers.cuh"

namespace oneflow_lite::cuda {
namespace internal {

// What kLanes lanes do together: lane i holds word i + kLanes * k of kPacks * kLanes and lane 0 the
// one behind them; each becomes the 16 bytes that begin kSkip words and `bits` bits into it.
template <int kSkip, bool kBits, int kPacks, int kLanes = kWarp>
OFL_DEVICE void ShiftWords(uint32_t (&w)[kPacks + 1][4], unsigned bits) {
  constexpr int kNext = kSkip + (kBits ? 1 : 0);
  const int lane = threadIdx.x % kLanes;
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    uint32_t v[8];
#pragma unroll
    for (int i = 0; i < 4; ++i) v[i] = w[k][i];
#pragma unroll
    for (int i = 0; i < kNext; ++i) {
      const uint32_t first = lane == 0 ? w[k + 1][i] : w[k][i];
      v[4 + i] = __shfl_sync(0xffffffffu, first, lane + 1, kLanes);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      w[k][i] = kBits ? __funnelshift_r(v[kSkip + i], v[kSkip + i + 1], bits) : v[kSkip + i];
    }
  }
}

// Extras of a row: the columns outside packs, at most one a lane.
template <int N>
struct InnerSpan {
  int head, packs, cols;

  OFL_DEVICE InnerSpan(int first_boundary, int cols)
      : head(first_boundary + N), packs((cols - head) / N - 1), cols(cols) {}
  OFL_DEVICE int extras() const { return cols - packs * N; }
  OFL_DEVICE int Column(int e) const { return e < head ? e : e + packs * N; }
};

// The words of a lane's packs and the one behind them, for each input, shifted into place. col is
// that of the first pack; words from `end` on are not needed.
template <int kPacks, class A>
struct ShiftedWords {
  static constexpr int N = A::kPack, kInputs = A::kInputs;
  using Element = typename A::Element;
  uint32_t words[kInputs][kPacks + 1][4];
  unsigned past[kInputs];

  // kCount: of a row in the hands of one warp the word behind the last pack is another lane's.
  template <int kCount = kPacks + 1>
  OFL_DEVICE void Load(const A& a, int64_t row, int64_t col, const Places& places, int end) {
    const uint4* from[kInputs];
#pragma unroll
    for (int i = 0; i < kInputs; ++i) {
      const WordFrame frame = a.Frame(i, row, col);
      past[i] = frame.past;
      from[i] = frame.words;
    }
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
#pragma unroll
      for (int i = 0; i < kInputs; ++i) {
        if (places.at(k) <= end) {
          const uint4 word = from[i][k * kWarp];
          memcpy(words[i][k], &word, sizeof(word));
        }
      }
    }
  }
  OFL_DEVICE void Shift() {
#pragma unroll
    for (int i = 0; i < kInputs; ++i) {
      VisitWordShift<Element>(past[i], [&](auto skip) {
        ShiftWords<decltype(skip)::value, (sizeof(Element) < 4), kPacks>(words[i], past[i] % 4 * 8);
      });
    }
  }
  OFL_DEVICE typename A::template Raw<N> Get(int k) const {
    typename A::template Raw<N> raw;
#pragma unroll
    for (int i = 0; i < kInputs; ++i) memcpy(&raw.input[i], words[i][k], sizeof(words[i][k]));
    return raw;
  }
};

template <int kPacks, class A, class Team>
OFL_DEVICE void RowShifted(const A& every, int64_t row, int cols, int each, Team& team) {
  constexpr int N = A::kPack;
  static_assert(4 * N - 2 <= kWarp, "an extra column a lane");
  const A a = AtRow(every, row);
  const InnerSpan<N> span(a.Head(row), cols);
  const int lane = threadIdx.x % kWarp, rank = team.rank();
  const int begin = rank / kWarp * kWarp * each;
  const int stop = begin + kWarp * each, end = stop < span.packs ? stop : span.packs;
  const Places places{begin + lane, kWarp, end, end};
  const int64_t col = span.head + places.first * N;  // 64 bits: then k * kWarp * N is an immediate
  auto total = a.Begin(row);
  if constexpr (Team::kInParts && Offers<A, RowOffers::kSetColumns>) {
    a.SetColumns((begin < end ? end - begin : 0) * N + (rank < kWarp ? span.extras() : 0), total);
  }

  ShiftedWords<kPacks, A> words;
  words.Load(a, row, col, places, end);
  RowPart<A, kPacks, 1> part;
  typename A::template Raw<1> extra = {};
  const int extra_col = span.Column(rank);
  part.seen[0] = rank < span.extras();
  if (part.seen[0]) extra = a.template Load<Access::kAny, 1>(row, extra_col);
  words.Shift();
  part.extra[0] = a.template Open<1>(extra, part.seen[0], extra_col, total);
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    part.pack[k] = a.template Open<N>(words.Get(k), places.Reads(k), col + k * kWarp * N, total);
  }
  a.Look(row, total);
  part.Run(a, places, team, total);
  if constexpr (Team::kInParts) a.Rebase(team.Merge(a.Gathered(total), typename A::Merge{}), total);
  if constexpr (Offers<A, RowOffers::kStorePacks>) {
    const int count = (end - places.first + kWarp - 1) / kWarp;
    a.template StorePacks<kPacks>(row, col, count, part.pack, total);
  } else {
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (places.Writes(k)) {
        a.template Store<N>(row, col + k * kWarp * N, part.pack[k], total);
      }
    }
  }
  if (part.seen[0]) a.template Store<1>(row, extra_col, part.extra[0], total);
  if (rank == 0) a.End(row, total);
}

}  // namespace internal

// Blocks, by measurement (docs/lab/40-tuning-narrow-rows.md). The backward spills with 6 packs a
// thread. Blocks of a cluster have few threads with many packs, whose registers nothing else takes.
template <class A, bool kCluster, class = void>
struct ShiftedShape {
  static constexpr bool kHeavy = A::kInputs > 1 || sizeof(typename A::C) == 8;
  static constexpr int kPacks = kCluster ? (kHeavy ? 8 : 16) : (kHeavy ? 4 : 6);
  static constexpr int kThreads = kCluster ? 256 : 384, kBlocks = 2;  // per SM
};
// The shape of a cluster for rows that ShiftedShape's blocks do not hold.
template <class A>
struct WidestShape : ShiftedShape<A, true> {};
template <class A>
inline constexpr bool kHasWidest = WidestShape<A>::kPacks > ShiftedShape<A, true>::kPacks;

// A row per warp. each: packs that a lane holds, at most kPacks.
template <int kPacks, class A>
__global__ void __launch_bounds__(RowPolicy::kGroupThreads)
    RowShiftedWarpKernel(A a, int64_t rows, int cols, int each) {
  const int64_t row = int64_t{blockIdx.x} * (blockDim.x / kWarp) + threadIdx.x / kWarp;
  if (row >= rows) return;
  internal::Alone<LaneGroup<kWarp>> warp;
  internal::RowShifted<kPacks>(a, row, cols, each, warp);
}

// A row per block, or per cluster of blocks.
template <bool kCluster, class A, class Shape = ShiftedShape<A, kCluster>>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocks)
    RowShiftedBlockKernel(A a, int cols, int each) {
  using Team = internal::Warps<kCluster>;
  __shared__ __align__(16) char scratch[Team::kScratchBytes];
  Team team(scratch);
  const int64_t row = kCluster ? internal::ClusterIndex() : blockIdx.x;
  internal::RowShifted<Shape::kPacks>(a, row, cols, each, team);
}

namespace internal {

// The algorithm that serves rows in registers; kWide: of more packs than kShiftedNarrowPacks.
template <bool kWide, class A>
auto RegistersOf(const A& a) {
  if constexpr (Offers<A, RowOffers::kInRegisters>) {
    return a.template InRegisters<kWide>();
  } else {
    return a;
  }
}
template <bool kWide, class A>
using InRegistersOf = decltype(RegistersOf<kWide>(std::declval<const A&>()));
inline constexpr int64_t kShiftedNarrowPacks = 512;
// The shape of one block with the row.
template <bool kWide, class A>
using ShiftedBlockShape = ShiftedShape<InRegistersOf<kWide, A>, false>;

// A row per warp.
template <int kPacks, class A>
cudaError_t LaunchShiftedWarps(const A& a, const RowCall& call) {
  const auto each = static_cast<int>(CeilDiv(call.cols / A::kPack, kWarp));
  return LaunchRowGroups<kWarp>(RowShiftedWarpKernel<kPacks, A>, call, a, call.rows,
                                static_cast<int>(call.cols), each);
}
template <class A>
cudaError_t LaunchShiftedGroups(const A& a, const RowCall& call) {
  using Narrow = decltype(NarrowOf(a));
  constexpr int kMostWords = MostWordColumns<Narrow>;
  if constexpr (kMostWords > 0) {
    if (call.cols <= kMostWords) return LaunchWords(NarrowOf(a), call);
  } else {
    if (call.cols <= kMostColumns) return LaunchColumns(NarrowOf(a), call);
  }
  const int64_t packs = call.cols / A::kPack;
  if constexpr (Offers<A, RowOffers::kWhole>) {
    // softmax keeps its exponentials: 300 columns of half 0.83 of a copy, 0.74.
    if constexpr (kMostWords < 2 * kWarp * A::kPack) {
      if (packs <= 2 * kWarp) return LaunchShiftedWarps<2>(NarrowOf(a), call);
    }
    return LaunchShiftedWarps<4>(NarrowOf(a), call);
  } else {
    if (packs <= kWarp) return LaunchShiftedWarps<1>(a, call);
    if (packs <= 2 * kWarp) return LaunchShiftedWarps<2>(a, call);
    return LaunchShiftedWarps<4>(a, call);
  }
}
template <class A>
cudaError_t LaunchShiftedBlocks(const RowPlan& plan, const A& a, const RowCall& call) {
  const auto launch = [&](auto kernel, const auto& held) {
    return LaunchAs({plan.blocks_per_row}, kernel, call.rows * plan.blocks_per_row, plan.threads, 0,
                    call.stream, held, static_cast<int>(call.cols), plan.packs);
  };
  if (plan.blocks_per_row > 1) {
    using Held = InRegistersOf<true, A>;
    if constexpr (kHasWidest<Held>) {
      if (plan.packs > ShiftedShape<Held, true>::kPacks) {
        return launch(RowShiftedBlockKernel<true, Held, WidestShape<Held>>, RegistersOf<true>(a));
      }
    }
    return launch(RowShiftedBlockKernel<true, Held>, RegistersOf<true>(a));
  }
  if (Offers<A, RowOffers::kInRegisters> && call.cols / A::kPack <= kShiftedNarrowPacks) {
    return launch(RowShiftedBlockKernel<false, InRegistersOf<false, A>>, RegistersOf<false>(a));
  }
  return launch(RowShiftedBlockKernel<false, InRegistersOf<true, A>>, RegistersOf<true>(a));
}

}  // namespace internal
}  // namespace oneflow_lite::cuda
