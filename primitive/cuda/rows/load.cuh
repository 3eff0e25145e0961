// SPDX-License-Identifier: Apache-2.0
//
// How the threads that hold a row in registers load it: all packs first, so that they are in flight
// together, by the way that the row's alignment allows. And how a round reduces what it finds.
#pragma once

#include "primitive/cuda/chip/group.cuh"
#include "primitive/cuda/rows/algorithm.h"
#include "primitive/cuda/rows/io.cuh"

namespace oneflow_lite::cuda::internal {

template <int kRound, class A>
using JoinOf = std::conditional_t < kRound<A::kMaxima, Larger, Plus>;
// What a round finds where nothing is present.
template <int kRound, class A>
OFL_DEVICE auto IdentityOf() {
  using C = typename A::C;
  if constexpr (kRound < A::kMaxima) {
    return -static_cast<C>(__int_as_float(0x7f800000));
  } else {
    using Value = typename A::template Value<A::kPack>;
    using Total = typename A::Total;
    return decltype(std::declval<const A&>().template Visit<kRound>(
        std::declval<Value&>(), false, std::declval<const Total&>())){};
  }
}

// The rounds: each visits every value, adds up what it finds, and leaves the sum in `total`.
// each(f) calls f(value, present) for all of a thread's values.
template <int kRound, class A, class Team, class Total, class Each>
OFL_DEVICE void RunRounds(const A& a, Team& team, Total& total, const Each& each) {
  if constexpr (kRound < A::kRounds) {
    const JoinOf<kRound, A> join;
    const auto identity = IdentityOf<kRound, A>();
    auto sum = identity;
    each([&](auto& value, bool present) {
      sum = join(sum, a.template Visit<kRound>(value, present, total));
    });
    a.template Finish<kRound>(team.Reduce(sum, join, identity), total);
    RunRounds<kRound + 1>(a, team, total, each);
  }
}

template <class A>
OFL_DEVICE int64_t SeenOf(const A& a, int64_t row, int64_t cols) {
  if constexpr (Offers<A, RowOffers::kSeen>) return a.Seen(row, cols);
  return cols;
}
// Of a row's packs, those that hold columns before `seen`.
template <int N, class Index>
OFL_DEVICE Index PacksSeen(const RowSpan<N, Index>& span, Index seen) {
  const Index packs = seen <= span.head ? 0 : (seen - span.head + N - 1) / N;
  return packs < span.packs ? packs : span.packs;
}

// Which packs of a row a thread holds, and where they are: pack k is at(k).
struct Places {
  int first, step;
  int read, written;  // packs before these are
  OFL_DEVICE int at(int k) const { return first + k * step; }
  OFL_DEVICE bool Reads(int k) const { return at(k) < read; }
  OFL_DEVICE bool Writes(int k) const { return at(k) < written; }
};

template <class A>
struct StowedRaw {
  StowedPack<typename A::Element, A::kPack> input[A::kInputs];

  OFL_DEVICE static StowedRaw Of(const typename A::template Raw<A::kPack>& raw) {
    StowedRaw stowed;
#pragma unroll
    for (int i = 0; i < A::kInputs; ++i) {
      stowed.input[i] = StowedPack<typename A::Element, A::kPack>::Of(raw.input[i]);
    }
    return stowed;
  }
  // Of an algorithm with one input.
  OFL_DEVICE void Set(const Pack<typename A::Element, A::kPack>& pack) {
    input[0] = StowedPack<typename A::Element, A::kPack>::Of(pack);
  }
  OFL_DEVICE void Pin() {
#pragma unroll
    for (auto& pack : input) pack.Pin();
  }
  OFL_DEVICE typename A::template Raw<A::kPack> Get() const {
    typename A::template Raw<A::kPack> raw;
#pragma unroll
    for (int i = 0; i < A::kInputs; ++i) raw.input[i] = input[i].Get();
    return raw;
  }
};

template <bool kAligned, bool kAll, class A, int kPacks, class Span>
OFL_DEVICE void LoadEachPack(const A& a, int64_t row, const Span& span, const Places& places,
                             StowedRaw<A> (&stowed)[kPacks]) {
  constexpr int N = A::kPack;
  const int64_t col = span.PackColumn(places.first);
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    if (!kAll && !places.Reads(k)) continue;
    if constexpr (kAligned) {
      stowed[k] =
          StowedRaw<A>::Of(a.template Load<Access::kAligned, N>(row, col + k * places.step * N));
    } else {
      stowed[k] = StowedRaw<A>::Of(LoadPackOf<false>(a, row, span, places.at(k)));
    }
  }
}

// The compiler mixes predicated loads of wide elements with the first uses of packs, each of which
// then waits. Two ways keep the loads in blocks of their own. Elsewhere they only take registers.
template <class A, class Team>
inline constexpr bool kLoadsTwoWays = sizeof(typename A::C) == 8 ||
                                      (Team::kClustered && A::kInputs == 1 &&
                                       sizeof(typename A::Element) == 4);
template <class Team, class A, int kPacks, class Span>
OFL_DEVICE void LoadAlignedPacks(const A& a, int64_t row, const Span& span, const Places& places,
                                 StowedRaw<A> (&stowed)[kPacks]) {
  if constexpr (Offers<A, RowOffers::kLoadsPacks>) {
    a.LoadPacks(span.PackColumn(places.first), places, stowed);
  } else if (kLoadsTwoWays<A, Team> && places.Reads(kPacks - 1)) {
    LoadEachPack<true, true>(a, row, span, places, stowed);
  } else {
    LoadEachPack<true, false>(a, row, span, places, stowed);
  }
  if constexpr (kLoadsTwoWays<A, Team>) {
#pragma unroll
    for (auto& pack : stowed) pack.Pin();
  }
}

// Loads what `places` says, by the way that the row's alignment allows.
template <bool kAlwaysAligned, class A, class Team, int kPacks, class Span>
OFL_DEVICE void LoadRow(const A& a, int64_t row, const Span& span, const Team&,
                        const Places& places, StowedRaw<A> (&stowed)[kPacks]) {
  if constexpr (kAlwaysAligned || Offers<A, RowOffers::kLoadsPacks>) {
    LoadAlignedPacks<Team>(a, row, span, places, stowed);
  } else if (a.IsAligned(row, span.head)) {
    LoadEachPack<true, false>(a, row, span, places, stowed);
  } else {
    LoadEachPack<false, false>(a, row, span, places, stowed);
  }
}

}  // namespace oneflow_lite::cuda::internal
