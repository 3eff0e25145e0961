// SPDX-License-Identifier: Apache-2.0
//
// The launch of a row algorithm: y = f(row) for every row of a matrix, at any width and alignment,
// by the tier that rows/policy.h chooses. softmax and the norms are algorithms.
//
// An algorithm A is a small struct, copied to the device, with
//   Element, Output, C, kPack the types kept on chip, written, computed in; kPackSize<Output>
//   kInputs; Raw<N>           tensors that are read; N neighbouring columns as loaded: Raw<N> has
//                             `Pack<Element, N> input[kInputs]`
//   Value<N>                  the same as a thread holds them in registers
//   Total                     what is known of a row: default-constructible, complete in the end
//   int Head(row)             columns before the first boundary of 16 bytes of the output
//   bool IsAligned(row, head)  see rows/io.cuh; Raw<N> Load<kAccess, N>(row, col)
//   Total Begin(row); void Look(row, Total&); void End(row, const Total&)
//                             before the row is loaded; once its loads are under way; one thread,
//                             after the row is written
// for rows in registers, kRounds visits of all values, each followed by a reduction: to the largest
// in the first kMaxima of them, to the sum in the others:
//   Value<N> Open<N>(Raw<N>, bool present, col, const Total&)    once all loads are under way; raw
//                             is undefined where it is not present
//   auto Visit<r>(Value<N>&, bool present, const Total&)   what the values add to round r
//   void Finish<r>(sum, Total&)
//   void Store<N>(row, col, const Value<N>&, const Total&)
//   kClusterRegisters         whether parts of a row may run the rounds on their own: each warp of
//                             a block or cluster for its columns, which one exchange then merges:
//                             Statistics Gathered(const Total&) of the part,
//                             void Rebase(Statistics of the row, Total& of the part)
// for streamed rows, one reading that gathers Statistics, and one that writes:
//   Statistics (default: no columns; at most kReduceSlotBytes), Merge (a functor, symmetric)
//   void Add(const Raw<N>&, col, const Total& start, Statistics&)
//   void Conclude(Statistics, Total&)
//   void StoreRaw<N>(row, col, const Raw<N>&, const Total&)
//   kOffers                   what it has of the following, each only where it helps: RowOffers
//                             (rows/algorithm.h) has a flag for each, which is checked
//   A At(row)                 the algorithm for that row alone, its addresses worked out
//   int64_t Seen(row, cols)   columns that are read: raw is undefined in packs behind them
//   LoadPacks(col, places, stowed)   instead of Load<kPack> for rows in registers: sets all packs
//                             of a thread, the first of which begins at column col
//   bool IsAlignedEverywhere()   on the host: whether IsAligned is known to hold for every row
//   bool IsWhole(cols)        on the host: whether all rows are whole packs and start at one; with
//                             two inputs kFewOperations says that no exponentials are taken
//   Kept, Kept Keep()         on the host: the same algorithm with values that take more registers
//                             and fewer instructions, for whole rows; who has it is served by the
//                             kernels of rows/whole_policy.h where C is not double
//   WordFrame Frame(input, row, col)    rows that lie differently: see rows/io.cuh. Then
//                             rows/shifted.cuh holds them in registers, and asks besides for
//     Narrow()                on the host: the algorithm for a row read column by column
//                             (rows/narrow.cuh), which may have ColumnConstants<n>, what n columns
//                             of a thread have in all rows: Ask<step>(col, constants) for them with
//                             the row, Take(constants) once its sums are known, and instead of
//                             Store StoreColumn(row, col, value, total, constants, k)
//     Nothing(); Only(value, last)   an element that changes no row, and the Value<1> of a word's
//                             first or last one: then rows/narrow.cuh serves narrow rows
//     InRegisters<kWide>()    on the host: the algorithm it uses instead of this one, and
//     bool LiesAlike()        whether IsAligned is known to hold for every row
//     SetColumns(n, Total&)   once rows are in parts: this one has n columns
//     StorePacks<kPacks>(row, col, count, values, total)   instead of Store<kPack>: a lane's packs
// Of two inputs with IsWhole and Frame, one round, rows/parked.cuh holds what lies alike.
#pragma once

#include "primitive/cuda/chip/launch.cuh"
#include "primitive/cuda/rows/narrow_launch.cuh"
#include "primitive/cuda/rows/parked.cuh"
#include "primitive/cuda/rows/registers.cuh"
#include "primitive/cuda/rows/shifted.cuh"
#include "primitive/cuda/rows/streamed.cuh"

namespace oneflow_lite::cuda {

// Bytes of workspace, aligned to 16, that rows x cols can make use of; often none.
template <class A>
size_t RowWorkspaceBytes(int64_t rows, int64_t cols, const DeviceLimits& limits) {
  if (rows <= 0) return 0;
  const int chunks = GridChunks(rows, cols / A::kPack, limits);
  return chunks > 1 ? sizeof(typename A::Statistics) * rows * chunks : 0;
}

namespace internal {

// Whether rows in registers are rows/shifted.cuh's.
template <bool kAligned, class A>
inline constexpr bool kShifted = !kAligned && Offers<A, RowOffers::kShifts>;

// Whether clusters of RowBlockKernel hold rows; else rows/parked.cuh's do.
template <bool kAligned, class A>
inline constexpr bool kClustersInRegisters =
    A::kClusterRegisters && !(kAligned && HasParkedBlocks<A>);

// kAligned: whether every row is known to be read as it lies.
template <bool kAligned, class A>
cudaError_t TraitsOf(const RowCall& call, RowTraits* traits) {
  using P = RowPolicy;
  const DeviceLimits& limits = call.limits;
  const int64_t packs = call.cols / A::kPack;
  using Registers = std::conditional_t<kShifted<kAligned, A>, ShiftedBlockShape<true, A>,
                                       BlockShape<A, kAligned>>;
  traits->pack = A::kPack;
  traits->bytes_per_pack =
      A::kInputs * static_cast<int>(sizeof(Pack<typename A::Element, A::kPack>));
  traits->scratch_bytes = kRowScratchBytes;
  traits->group_packs = Offers<A, RowOffers::kOnlyWide> ? 0 : MostGroupPacks<A, kAligned>;
  traits->block_packs = Registers::kPacks;
  traits->block_threads = Registers::kThreads;
  traits->has_workspace = call.workspace != nullptr;
  traits->is_double = sizeof(typename A::C) == 8;
  traits->shifted = kShifted<kAligned, A>;
  if (kShifted<kAligned, A> && packs <= kShiftedNarrowPacks) {
    traits->block_packs = ShiftedBlockShape<false, A>::kPacks;
    traits->block_threads = ShiftedBlockShape<false, A>::kThreads;
  }
  if (!limits.clusters || call.cols <= 32 * traits->group_packs * A::kPack) return cudaSuccess;
  // First of all: the driver places no block with more shared memory than the kernel may use.
  const cudaError_t error = AllowAllShared<RowClusterKernel<A>>(limits);
  if (error != cudaSuccess) return error;
  traits->shared_cluster =
      MaxClusterBlocks<RowClusterKernel<A>>(P::kClusterThreads, limits.shared_per_block, limits);
  if constexpr (kShifted<kAligned, A>) {
    using Shifted = InRegistersOf<true, A>;
    const auto take = [&](auto shape) {
      using Shape = decltype(shape);
      traits->cluster_packs = Shape::kPacks;
      traits->cluster_threads = Shape::kThreads;
      traits->register_cluster =
          MaxClusterBlocks<RowShiftedBlockKernel<true, Shifted, Shape>>(Shape::kThreads, 0, limits);
      return int64_t{traits->register_cluster} * Shape::kPacks * Shape::kThreads;
    };
    const int64_t most = take(ShiftedShape<Shifted, true>{});
    if constexpr (kHasWidest<Shifted>) {
      if (most < packs) take(WidestShape<Shifted>{});
    }
  } else if constexpr (kClustersInRegisters<kAligned, A>) {
    traits->register_cluster =
        MaxClusterBlocks<RowBlockKernel<true, A, Registers>>(Registers::kThreads, 0, limits);
  }
  return cudaSuccess;
}

template <bool kAligned, class A>
cudaError_t LaunchBlocks(const RowPlan& plan, const A& a, const RowCall& call) {
  using Shape = BlockShape<A, kAligned>;
  const auto launch = [&](auto kernel) {
    return LaunchAs({plan.blocks_per_row}, kernel, call.rows * plan.blocks_per_row, plan.threads, 0,
                    call.stream, a, call.rows, call.cols);
  };
  const bool clustered = plan.blocks_per_row > 1;
  if constexpr (Shape::kPacks > 4) {
    // Rows of packs of 8 that would take 4 a thread are whole ones, or hardly any; so are few rows.
    if constexpr (!HasWholeBlocks<A> || A::kPack < 8) {
      if (plan.packs <= 4 && !clustered) return launch(RowBlockKernel<false, A, FewerPacks<Shape>>);
    }
    // Clusters of more than 8 blocks would have to be asked for.
    if constexpr (kClustersInRegisters<kAligned, A> && !HasWholeBlocks<A>) {
      if (plan.packs <= 4 && plan.blocks_per_row <= 8 && clustered) {
        return launch(RowBlockKernel<true, A, FewerPacks<Shape>>);
      }
    }
  }
  if constexpr (kClustersInRegisters<kAligned, A>) {
    if (clustered) return launch(RowBlockKernel<true, A, Shape>);
  }
  return launch(RowBlockKernel<false, A, Shape>);
}

// Rows that are read twice, each by one block.
template <class A>
cudaError_t LaunchWide(const A& a, const RowCall& call) {
  return Launch(RowStreamedKernel<false, A>, call.rows, RowPolicy::kWideThreads, kRowScratchBytes,
                call.stream, a, call.rows, call.cols);
}

template <bool kAligned, class A>
cudaError_t LaunchRowsAs(const A& a, const RowCall& call) {
  if constexpr (kAligned && (HasWholeBlocks<A> || HasDoubleBlocks<A> || HasParkedBlocks<A>)) {
    const bool whole = a.IsWhole(call.cols);
    if (call.cols > kWarp * MostWholePacks<A> * A::kPack && (whole || HasParkedBlocks<A>)) {
      const auto launched = LaunchWholeBlocks(a, whole, call);
      if (launched != kNotServed) return launched;
    }
  }
  RowTraits traits;
  const cudaError_t error = TraitsOf<kAligned, A>(call, &traits);
  if (error != cudaSuccess) return error;
  const RowPlan plan = ChooseRowPlan(call.rows, call.cols, traits, call.limits);
  const int64_t blocks = call.rows * plan.blocks_per_row;
  switch (plan.tier) {
    case RowTier::kGroup:
      if constexpr (Offers<A, RowOffers::kOnlyWide>) {
        break;
      } else if constexpr (kShifted<kAligned, A>) {
        if constexpr (Offers<A, RowOffers::kInRegisters>) {
          if (IsAlikeGroup(a, call)) return LaunchAlikeGroups(a, call);
        }
        return LaunchShiftedGroups(RegistersOf<false>(a), call);
      } else {
        return LaunchGroups<kAligned>(plan, a, call);
      }
    case RowTier::kBlock:
      if constexpr (kShifted<kAligned, A>) {
        return LaunchShiftedBlocks(plan, a, call);
      } else {
        return LaunchBlocks<kAligned>(plan, a, call);
      }
    case RowTier::kShared:
      if (plan.blocks_per_row > 1) {
        return LaunchAs({plan.blocks_per_row}, RowClusterKernel<A>, blocks, plan.threads,
                        plan.shared, call.stream, a, call.rows, call.cols, plan.kept);
      }
      return LaunchLarge<RowStreamedKernel<true, A>>({}, blocks, plan.threads, plan.shared, call, a,
                                                     call.rows, call.cols);
    case RowTier::kGrid:
      return LaunchLarge<RowGridKernel<A>>({1, true}, blocks, plan.threads, plan.shared, call, a,
                                           call.cols, plan.blocks_per_row, plan.kept,
                                           static_cast<typename A::Statistics*>(call.workspace));
    case RowTier::kWide:
      break;
  }
  return LaunchWide(a, call);
}

}  // namespace internal

// Neither allocates nor synchronises; may be captured into a graph.
template <class A>
cudaError_t LaunchRows(const A& a, int64_t rows, int64_t cols, const DeviceLimits& limits,
                       cudaStream_t stream, void* workspace = nullptr) {
  if (rows <= 0 || cols <= 0) return cudaSuccess;
  const RowCall call{{limits, stream, workspace}, rows, cols};
  // Rows that are known to be aligned have kernels of their own. Where the output has elements of
  // another size, no row is.
  constexpr bool kMayLieAlike = sizeof(typename A::Element) == sizeof(typename A::Output);
  if constexpr (Offers<A, RowOffers::kAlignedEverywhere> && kMayLieAlike) {
    if (a.IsAlignedEverywhere()) return internal::LaunchRowsAs<true>(a, call);
  }
  return internal::LaunchRowsAs<false>(a, call);
}

}  // namespace oneflow_lite::cuda
