// SPDX-License-Identifier: Apache-2.0
//
// A row that is overwritten, for own_columns.cuh: its words stay in registers as they lie, and are
// written so. Only what is added up is shifted to the row's own packs, and only while it is.
#pragma once

#include "primitive/cuda/rows/shifted.cuh"

namespace oneflow_lite {
namespace cuda {
namespace internal {

// Whether an algorithm of one input writes the rows that it reads.
template <class A>
inline constexpr bool kIsInPlace = false;

// What a lane has of a row, by aligned words: those that begin in the columns of its own packs.
template <int kPacks, bool kInParts, class A>
struct WordsInPlace {
  static constexpr int N = A::kPack;
  using Element = typename A::Element;
  InnerSpan<N> span;
  Places places;         // of own packs; a word has the number of the pack that begins in it
  int begin, end, stop;  // of the warp's packs; where the next warp's begin
  int64_t col;           // of the lane's first pack
  ShiftedWords<kPacks, A> words;

  __device__ __forceinline__ WordsInPlace(const A& a, int64_t row, int cols, int each, int rank)
      : span(0, cols), begin(rank / kWarp * kWarp * each), stop(begin + kWarp * each) {
    const int lane = threadIdx.x % kWarp;
    end = stop < span.packs ? stop : span.packs;
    places = {begin + lane, kWarp, end, end};
    col = span.head + int64_t{places.first} * N;
    words.template Load<(kInParts ? kPacks + 1 : kPacks)>(a, row, col, places, end);
  }
  __device__ __forceinline__ unsigned past() const { return words.past[0]; }
  __device__ __forceinline__ int before() const {
    return static_cast<int>(past() / sizeof(Element));
  }
  // The row's words that lie between its first and last columns outside packs.
  __device__ __forceinline__ int count() const { return span.packs + (past() > 0 ? 1 : 0); }
  __device__ __forceinline__ bool Writes(int k) const {
    return places.at(k) < stop && places.at(k) < count();
  }
  __device__ __forceinline__ int64_t Column(int k) const { return col - before() + k * kWarp * N; }
  // Whether no word has a column outside packs.
  __device__ __forceinline__ bool IsOutside(int column) const {
    const int first = span.head - before();
    return column < first || column >= first + count() * N;
  }
  // A column of the warp's first or last pack, one for each of so many lanes; -1 for the others.
  __device__ __forceinline__ int EdgeColumn() const {
    const int lane = threadIdx.x % kWarp;
    if (lane >= 2 * N || begin >= end) return -1;
    return span.head + (lane < N ? begin : end - 2) * N + lane;
  }
  // Whether word k lies within the warp's packs, of whose first and last one the edges know.
  __device__ __forceinline__ bool IsInner(int k) const {
    return places.at(k) > begin && places.at(k) < end;
  }
  // f(words) with the words that own packs are.
  template <class F>
  __device__ __forceinline__ void WithPacks(const F& f) const {
    if (past() == 0) f(words);
    VisitWordShift<Element>(past(), [&](auto skip) {
      ShiftedWords<kPacks, A> moved = words;
      ShiftWords<decltype(skip)::value, (sizeof(Element) < 4), kPacks>(moved.words[0],
                                                                       past() % 4 * 8);
      f(moved);
    });
  }
};

// Rounds: the maximum, a sum, and maybe another sum.
template <int kPacks, class A, class Team>
__device__ __forceinline__ void RowInPlace(const A& every, int64_t row, int cols, int each,
                                           Team& team) {
  using C = typename A::C;
  constexpr int N = A::kPack;
  constexpr bool kTwoSums = A::kRounds == 3;
  static_assert(A::kInputs == 1 && A::kMaxima == 1 && (A::kRounds == 2 || kTwoSums));
  const auto a = AtRow(every, row);
  auto total = a.Begin(row);
  const WordsInPlace<kPacks, Team::kInParts, A> part(a, row, cols, each, team.rank());
  // Of a column: its value, where it is `there`.
  const auto ask = [&](int column, bool there) {
    typename A::template Raw<1> raw = {};
    if (there) raw = a.template Load<Access::kAny, 1>(row, column);
    return raw;
  };
  const int extra_col = part.span.Column(team.rank());
  const bool seen = team.rank() < part.span.extras();
  const auto extra_raw = ask(extra_col, seen);
  const int edge_col = Team::kInParts ? part.EdgeColumn() : -1;
  const auto edge_raw = ask(edge_col, edge_col >= 0);
  auto extra = a.template Open<1>(extra_raw, seen, extra_col, total);
  auto edge = a.template Open<1>(edge_raw, edge_col >= 0, edge_col, total);
  a.Look(row, total);

  // A word may reach over the part's packs, not over the row.
  C max = a.template Visit<0, 1>(extra, seen, total);
  if constexpr (Team::kInParts) {
    max = Larger{}(max, a.template Visit<0, 1>(edge, edge_col >= 0, total));
  }
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    auto value = a.template Open<N>(part.words.Get(k), true, part.col, total);
    const bool counts = Team::kInParts ? part.IsInner(k) : part.places.at(k) <= part.end;
    max = Larger{}(max, a.template Visit<0, N>(value, counts, total));
  }
  a.template Finish<0>(team.Reduce(max, Larger{}, MinusInfinity<C>()), total);
  C sum = a.template Visit<1, 1>(extra, seen, total), other = 0;
  if constexpr (kTwoSums) other = a.template Visit<2, 1>(extra, seen, total);
  part.WithPacks([&](const auto& packs) {
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      auto value = a.template Open<N>(packs.Get(k), true, part.col, total);
      sum += a.template Visit<1, N>(value, part.places.Reads(k), total);
      if constexpr (kTwoSums) other += a.template Visit<2, N>(value, part.places.Reads(k), total);
    }
  });
  a.template Finish<1>(team.Reduce(sum, Plus{}, C(0)), total);
  if constexpr (kTwoSums) a.template Finish<2>(team.Reduce(other, Plus{}, C(0)), total);
  if constexpr (Team::kInParts) a.Rebase(team.Merge(a.Gathered(total), typename A::Merge{}), total);

#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    if (!part.Writes(k)) continue;
    const auto value = a.template Open<N>(part.words.Get(k), true, part.col, total);
    a.template Store<N>(row, part.Column(k), value, total);
  }
  if (seen && part.IsOutside(extra_col)) a.template Store<1>(row, extra_col, extra, total);
  if (team.rank() == 0) a.End(row, total);
}

}  // namespace internal
}  // namespace cuda
}  // namespace oneflow_lite
