// SPDX-License-Identifier: Apache-2.0
//
// The row kernel of gradients wider than the registers of a cluster have room for, whose inputs and
// output lie alike: what registers do not hold waits in shared memory, where asynchronous copies
// bring it, so that three blocks per multiprocessor load, wait and store at different times.
#pragma once

#include "primitive/cuda/chip/async_copy.cuh"
#include "primitive/cuda/chip/launch.cuh"
#include "primitive/cuda/chip/packs_on_chip.cuh"
#include "primitive/cuda/rows/narrow_launch.cuh"
#include "primitive/cuda/rows/whole.cuh"

namespace oneflow_lite::cuda {
namespace internal {

// A thread's packs that wait in shared memory; `first` is the first of them, `end` that of another.
template <class A, int kThreads>
struct ParkedPacks {
  static constexpr int N = A::kPack;
  using Slot = OnChipPack<typename A::Element, N>;
  Slot* slots;
  int first, end;

  __device__ __forceinline__ void Load(const A& a, int64_t row, int64_t col) const {
    const uint4* from[A::kInputs];
#pragma unroll
    for (int i = 0; i < A::kInputs; ++i) from[i] = a.Frame(i, row, col).words;
    Slot* slot = slots;
#pragma unroll 1  // as below: unrolled loops take the registers that packs are in
    for (int p = first; p < end; p += kThreads) {
#pragma unroll
      for (int i = 0; i < A::kInputs; ++i) {
        CopyAsync(slot, from[i], kPackBytes);
        from[i] += kThreads;
        slot += kThreads;
      }
    }
    CommitCopies();
  }
  // f(raw, k) for the k-th of them.
  template <class F>
  __device__ __forceinline__ void Visit(F f) const {
    const Slot* slot = slots;
    int k = 0;
#pragma unroll 1
    for (int p = first; p < end; p += kThreads, ++k) {
      typename A::template Raw<N> raw;
#pragma unroll
      for (int i = 0; i < A::kInputs; ++i) raw.input[i] = slot[i * kThreads].Get();
      slot += A::kInputs * kThreads;
      f(raw, k);
    }
  }
};

}  // namespace internal

// A row per cluster, `share` packs a block, of an algorithm of one round. Dynamic shared memory:
// ParkedScratch<A, Shape> bytes and A::kInputs packs for each that a thread has beyond
// Shape::kPacks.
template <class A, class Shape>
inline constexpr int ParkedScratch =
    (internal::ClusterTeam<A, Shape>::kScratchBytes + kPackBytes - 1) / kPackBytes* kPackBytes;

template <class A, class Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocks)
    RowParkedKernel(A every, int cols, int share) {
  using Team = internal::ClusterTeam<A, Shape>;
  using Parked = internal::ParkedPacks<A, Shape::kThreads>;
  using C = typename A::C;
  constexpr int N = A::kPack, kHeld = Shape::kPacks, kThreads = Shape::kThreads;
  static_assert(A::kRounds == 1);
  extern __shared__ __align__(16) char scratch[];
  const int64_t row = Team::row();
  const A a = AtRow(every, row);
  const RowSpan<N, int> span(a.Head(row), cols);
  const int rank = threadIdx.x, part = Team::part();
  const int begin = part * share, stop = begin + share, end = stop < span.packs ? stop : span.packs;
  const internal::Places places{begin + rank, kThreads, end, end};
  const int64_t col = span.PackColumn(places.first);  // 64 bits: one address for all packs

  auto* slots = reinterpret_cast<typename Parked::Slot*>(scratch + ParkedScratch<A, Shape>) + rank;
  const Parked parked{slots, places.at(kHeld), end};
  parked.Load(a, row, col + kHeld * kThreads * N);
  internal::StowedRaw<A> stowed[kHeld];
  internal::LoadAlignedPacks<Team>(a, row, span, places, stowed);
  const int e = part * kThreads + rank;
  const bool has_extra = e < span.extras();
  typename A::template Raw<1> raw = {};
  if (has_extra) raw = a.template Load<Access::kAny, 1>(row, span.Column(e));
  Team team(scratch);  // behind the loads, which are to be under way first

  auto total = a.Begin(row);
  auto extra = a.template Open<1>(raw, has_extra, span.Column(e), total);
  C sum = 0;
  if (has_extra) sum = a.template Visit<0>(extra, true, total);
  typename A::template Value<N> value[kHeld];
#pragma unroll
  for (int k = 0; k < kHeld; ++k) {
    value[k] = a.template Open<N>(stowed[k].Get(), places.Reads(k), places.at(k) * N, total);
    sum += a.template Visit<0>(value[k], places.Reads(k), total);
  }
  WaitForCopiesOf<0>();
  parked.Visit([&](const auto& raw, int) {
    auto v = a.template Open<N>(raw, true, 0, total);
    sum += a.template Visit<0>(v, true, total);
  });
  a.template Finish<0>(team.Reduce(sum, Plus{}, C(0)), total);
  a.Rebase(team.Merge(a.Gathered(total), typename A::Merge{}), total);
#pragma unroll
  for (int k = 0; k < kHeld; ++k) {
    if (places.Writes(k)) a.template Store<N>(row, col + k * kThreads * N, value[k], total);
  }
  parked.Visit([&](const auto& raw, int k) {
    a.template StoreRaw<N>(row, col + int64_t{kHeld + k} * (kThreads * N), raw, total);
  });
  if (has_extra) a.template Store<1>(row, span.Column(e), extra, total);
  if (e == 0) a.End(row, total);
}

namespace internal {

template <class A>
inline constexpr bool HasParkedBlocks = (Offers<A, RowOffers::kWhole> && A::kInputs == 2 &&
                                         Offers<A, RowOffers::kShifts> &&
                                         !Offers<A, RowOffers::kSeen>);

// Whether whole rows have clusters of their own. float32 with exponentials spills in them: 100000
// columns 0.94 of an addition, 0.99 parked.
template <class A>
inline constexpr bool HasHeavyClusters = A::kPack == 8 || (A::kPack == 4 && A::kFewOperations);

template <class A>
cudaError_t LaunchParkedBlocks(const A& a, int64_t rows, int64_t cols, const DeviceLimits& limits,
                               cudaStream_t stream) {
  using Shape = Parked<A::kPack>;
  constexpr bool kPair = HasPairBlocks<A>(), kHeavy = HasHeavyClusters<A>;
  const int64_t packs = cols / A::kPack;
  int parked_blocks = 1;
  if (limits.clusters && packs > 2 * RowPolicy::kFewPacks) {
    const size_t most = limits.shared_per_block;
    const cudaError_t error = AllowAllShared<RowParkedKernel<A, Shape>>(limits);
    if (error != cudaSuccess) return error;
    parked_blocks = MaxClusterBlocks<RowParkedKernel<A, Shape>>(Shape::kThreads, most, limits);
  }
  const auto most_blocks = [&](WholeKernel kernel) {
    if (kernel == WholeKernel::kPair) return kPair ? 1 : 0;
    if (kernel == WholeKernel::kParked) return parked_blocks;
    if constexpr (kHeavy) {
      constexpr int kThreads = WholeHeavy::kThreads;
      return MaxClusterBlocks<RowWholeBlockKernel<A, WholeHeavy>>(kThreads, 0, limits);
    }
    return 1;
  };
  const WholePlan plan =
      ChooseWholePlan({2, A::kPack, a.IsWhole(cols), rows, packs}, limits, most_blocks);
  const int64_t blocks = plan.blocks_per_row;
  if (plan.kernel == WholeKernel::kNone || rows > kMaxBlocks / blocks) return kNotServed;
  const auto launch = [&](auto kernel, int64_t length, int64_t shared) {
    return LaunchAs({plan.blocks_per_row}, kernel, rows * blocks, plan.threads, shared, stream, a,
                    static_cast<int>(length), static_cast<int>(CeilDiv(packs, blocks)));
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
                ParkedScratch<A, Shape> + ParkedBytes(A::kPack, packs, plan.blocks_per_row));
}

}  // namespace internal
}  // namespace oneflow_lite::cuda
