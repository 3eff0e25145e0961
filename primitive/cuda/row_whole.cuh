// SPDX-License-Identifier: Apache-2.0
//
// The row kernel of narrow rows of whole packs: every row of every tensor starts at a multiple of
// 16 bytes and ends at one. Nothing is asked per row then, and the code is short: such kernels run
// for a few microseconds, of which fetching their instructions is a good part.
#pragma once

#include "primitive/cuda/row_registers.cuh"

namespace oneflow_lite {
namespace cuda {
namespace internal {

template <class A, class = void>
struct MayBeWhole : std::false_type {};
template <class A>
struct MayBeWhole<A, std::void_t<decltype(&A::IsWhole)>> : std::true_type {};

template <int kRound, class A, int kPacks, int kLanes, class Total>
__device__ __forceinline__ void RunWholeRounds(
    const A& a, typename A::template Value<A::kPack> (&value)[kPacks], int packs,
    LaneGroup<kLanes>& group, Total& total) {
  if constexpr (kRound < A::kRounds) {
    const auto join = A::template Join<kRound>();
    const auto identity = A::template Identity<kRound>();
    auto sum = identity;
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      const bool present = group.rank() + k * kLanes < packs;
      sum = join(sum, a.template Visit<kRound>(value[k], present, total));
    }
    a.template Finish<kRound>(group.Reduce(sum, join, identity), total);
    RunWholeRounds<kRound + 1>(a, value, packs, group, total);
  }
}

// Where part of a row is not read, its addresses are worked out once; elsewhere they are short.
template <class A>
__device__ __forceinline__ A WholeRowAt(const A& a, int64_t row) {
  if constexpr (HasSeen<A>::value) {
    return AtRow(a, row);
  } else {
    return a;
  }
}
template <class A>
__device__ __forceinline__ int WholePacksSeen(const A& a, int64_t row, int packs) {
  if constexpr (HasSeen<A>::value) {
    const int64_t seen = (SeenOf(a, row, int64_t{packs} * A::kPack) + A::kPack - 1) / A::kPack;
    return seen < 0 ? 0 : seen < packs ? static_cast<int>(seen) : packs;
  } else {
    return packs;
  }
}

}  // namespace internal

// A row per group of kLanes lanes; the grid covers all rows.
template <int kLanes, int kPacks, class A>
__global__ void __launch_bounds__(RowPolicy::kGroupThreads)
    RowWholeKernel(A every, int64_t rows, int packs) {
  constexpr int N = A::kPack, kRows = RowPolicy::kGroupThreads / kLanes;
  LaneGroup<kLanes> group;
  const int64_t row = int64_t{blockIdx.x} * kRows + threadIdx.x / kLanes;
  const A a = internal::WholeRowAt(every, row);
  if (row >= rows) packs = 0;  // the lanes still take part in the reductions of their warp
  const int read = internal::WholePacksSeen(a, row, packs);
  auto total = row < rows ? a.Begin(row) : typename A::Total{};
  internal::StowedRaw<A> stowed[kPacks];
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    const int p = group.rank() + k * kLanes;
    if (p >= read) continue;
    stowed[k] = internal::StowedRaw<A>::Of(a.template Load<Access::kAligned, N>(row, p * N));
  }
  typename A::template Value<N> value[kPacks];
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    const int p = group.rank() + k * kLanes;
    value[k] = a.template Open<N>(stowed[k].Get(), p < read, p * N, total);
  }
  if (row < rows) a.Look(row, total);
  internal::RunWholeRounds<0>(a, value, read, group, total);
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    const int p = group.rank() + k * kLanes;
    if (p < packs) a.template Store<N>(row, p * N, value[k], total);
  }
  if (row < rows && group.rank() == 0) a.End(row, total);
}

}  // namespace cuda
}  // namespace oneflow_lite
