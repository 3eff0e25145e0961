// SPDX-License-Identifier: Apache-2.0
//
// The launch of rows of whole packs in blocks and clusters, and the row kernel of gradients wider
// than the registers of a cluster have room for, whose inputs and output lie alike: what registers
// do not hold waits in shared memory, where asynchronous copies bring it, so that three blocks per
// multiprocessor load, wait and store at different times.
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

  OFL_DEVICE void Load(const A& a, int64_t row, int64_t col) const {
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
  OFL_DEVICE void Visit(F f) const {
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

// Whether whole rows of gradients have clusters of their own. float32 with exponentials spills in
// them: 100000 columns 0.94 of an addition, 0.99 parked.
template <class A>
inline constexpr bool HasHeavyClusters = A::kInputs == 2 && (A::kPack == 8 || HasPairBlocks<A>());

// Calls f(shape, algorithm) for the kernel of whole_policy.h's table; `none` where A has no such.
template <class A, class R, class F>
R VisitWhole(WholeKernel kernel, const A& a, R none, const F& f) {
  using W = WholeKernel;
  constexpr bool kWhole = HasWholeBlocks<A>, kFloat = A::kPack == 4, kDouble = HasDoubleBlocks<A>;
  R result = none;
  const auto serve = [&](auto served, W of, auto shape, const auto& algorithm) {
    if constexpr (decltype(served)::value) {
      if (kernel == of) result = f(shape, algorithm);
    }
  };
  serve(std::bool_constant<kWhole>{}, W::kTwo, WholeTwo{}, Kept(a));
  serve(std::bool_constant<kWhole>{}, W::kFour, WholeFour<A::kPack>{}, Kept(a));
  serve(std::bool_constant < kWhole && kFloat > {}, W::kThree, WholeThree{}, Kept(a));
  serve(std::bool_constant < kWhole && kFloat > {}, W::kEight, WholeEight{}, Kept(a));
  serve(std::bool_constant<kWhole>{}, W::kFew, WholeFew{}, a);
  serve(std::bool_constant<(A::kInputs == 1 && A::kPack > 2)>{}, W::kWide, WholeWide{}, a);
  serve(std::bool_constant<HasPairBlocks<A>()>{}, W::kPair, WholePair<A::kPack>{}, a);
  serve(std::bool_constant < kDouble || HasHeavyClusters < A >> {}, W::kHeavy, WholeHeavy{}, a);
  serve(std::bool_constant<kDouble>{}, W::kLone, WholeLone{}, a);
  serve(std::bool_constant<kDouble>{}, W::kHeaviest, WholeHeaviest{}, a);
  return result;
}

// Rows of whole packs, and gradients that lie alike, if one of the kernels for them serves these.
template <class A>
cudaError_t LaunchWholeBlocks(const A& a, bool whole, const RowCall& call) {
  using ParkedShape = Parked<A::kPack>;
  const DeviceLimits& limits = call.limits;
  const int64_t rows = call.rows, packs = call.cols / A::kPack;
  const bool clusters = limits.clusters && packs > 2 * RowPolicy::kFewPacks;
  int parked_blocks = 1;
  if constexpr (HasParkedBlocks<A>) {
    if (clusters) {
      const cudaError_t error = AllowAllShared<RowParkedKernel<A, ParkedShape>>(limits);
      if (error != cudaSuccess) return error;
      parked_blocks = MaxClusterBlocks<RowParkedKernel<A, ParkedShape>>(
          ParkedShape::kThreads, limits.shared_per_block, limits);
    }
  }
  const auto most_blocks = [&](WholeKernel kernel) {
    if (kernel == WholeKernel::kParked) return parked_blocks;
    const int none = kernel == WholeKernel::kPair ? 0 : 1;
    return VisitWhole(kernel, a, none, [&](auto shape, const auto& k) {
      using Shape = decltype(shape);
      using K = std::decay_t<decltype(k)>;
      if constexpr (Shape::kCluster) {
        if (clusters) {
          return MaxClusterBlocks<RowWholeBlockKernel<K, Shape>>(Shape::kThreads, 0, limits);
        }
      }
      return 1;
    });
  };
  const WholePlan plan =
      ChooseWholePlan({A::kInputs, A::kPack, whole, rows, packs}, limits, most_blocks);
  const int64_t blocks = plan.blocks_per_row;
  if (plan.kernel == WholeKernel::kNone || rows > kMaxBlocks / blocks) return kNotServed;
  const auto launch = [&](auto kernel, const auto& k, int64_t length, int64_t shared) {
    return LaunchAs({plan.blocks_per_row}, kernel, rows * blocks, plan.threads, shared, call.stream,
                    k, static_cast<int>(length), static_cast<int>(CeilDiv(packs, blocks)));
  };
  if constexpr (HasParkedBlocks<A>) {
    if (plan.kernel == WholeKernel::kParked) {
      return launch(RowParkedKernel<A, ParkedShape>, a, call.cols,
                    ParkedScratch<A, ParkedShape> + ParkedBytes(A::kPack, packs, blocks));
    }
  }
  return VisitWhole(plan.kernel, a, kNotServed, [&](auto shape, const auto& k) {
    return launch(RowWholeBlockKernel<std::decay_t<decltype(k)>, decltype(shape)>, k, packs, 0);
  });
}

}  // namespace internal
}  // namespace oneflow_lite::cuda
