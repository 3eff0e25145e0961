// SPDX-License-Identifier: Apache-2.0
//
// The row kernel of narrow rows that lie anyhow: read and written column by column, a row per group
// of lanes. A group may have two rows at once, so that their loads and reductions overlap.
#pragma once

#include "primitive/cuda/chip/launch.cuh"
#include "primitive/cuda/rows/load.cuh"
#include "primitive/cuda/rows/policy.h"

namespace oneflow_lite::cuda {

namespace internal {

// What a thread's columns have in all rows, where the algorithm says so.
template <int kLanes, int kColumns, class A, bool = Offers<A, RowOffers::kColumnConstants>>
struct OfColumns {
  OFL_DEVICE void Ask(const A&, int) {}
  OFL_DEVICE void Take(const A&) {}
  template <class Value, class Total>
  OFL_DEVICE void Store(const A& a, int64_t row, int col, int k, const Value& value,
                        const Total& total) const {
    a.template Store<1>(row, col + k * kLanes, value, total);
  }
};
template <int kLanes, int kColumns, class A>
struct OfColumns<kLanes, kColumns, A, true> {
  typename A::template ColumnConstants<kColumns> constants;
  OFL_DEVICE void Ask(const A& a, int col) { a.template Ask<kLanes>(col, constants); }
  OFL_DEVICE void Take(const A& a) { a.Take(constants); }
  template <class Value, class Total>
  OFL_DEVICE void Store(const A& a, int64_t row, int col, int k, const Value& value,
                        const Total& total) const {
    a.StoreColumn(row, col + k * kLanes, value, total, constants, k);
  }
};

template <int kRound, int kTogether, int kColumns, class A, class Value, class Group, class Total>
OFL_DEVICE void RunColumnRounds(const A& a, Value (&value)[kTogether][kColumns], int cols,
                                Group& group, Total (&total)[kTogether]) {
  if constexpr (kRound < A::kRounds) {
    const JoinOf<kRound, A> join;
    const auto identity = IdentityOf<kRound, A>();
    auto found = a.template Visit<kRound>(value[0][0], false, total[0]);
    decltype(found) sum[kTogether];
#pragma unroll
    for (int r = 0; r < kTogether; ++r) {
      sum[r] = identity;
#pragma unroll
      for (int k = 0; k < kColumns; ++k) {
        const bool present = group.rank() + k * Group::kLanes < cols;
        sum[r] = join(sum[r], a.template Visit<kRound>(value[r][k], present, total[r]));
      }
    }
#pragma unroll
    for (int r = 0; r < kTogether; ++r) sum[r] = group.Reduce(sum[r], join, identity);
#pragma unroll
    for (int r = 0; r < kTogether; ++r) a.template Finish<kRound>(sum[r], total[r]);
    RunColumnRounds<kRound + 1>(a, value, cols, group, total);
  }
}

}  // namespace internal

// kTogether rows at once per group of kLanes lanes. The grid covers all rows; cols <= kLanes *
// kColumns.
template <int kLanes, int kColumns, int kTogether, class A>
__global__ void __launch_bounds__(RowPolicy::kGroupThreads)
    RowColumnsKernel(A every, int64_t rows, int cols) {
  constexpr int kGroups = RowPolicy::kGroupThreads / kLanes;
  LaneGroup<kLanes> group;
  const int64_t first = int64_t{blockIdx.x} * (kGroups * kTogether) + threadIdx.x / kLanes;
  const int col = group.rank();
  typename A::template Raw<1> raw[kTogether][kColumns];
  internal::OfColumns<kLanes, kColumns, A> of_columns;
  typename A::Total total[kTogether];
#pragma unroll
  for (int r = 0; r < kTogether; ++r) {
    const int64_t row = first + r * kGroups;
    if (row >= rows) continue;
    const A a = AtRow(every, row);
    total[r] = a.Begin(row);
#pragma unroll
    for (int k = 0; k < kColumns; ++k) {
      if (col + k * kLanes < cols) {
        raw[r][k] = a.template Load<Access::kAny, 1>(row, col + k * kLanes);
      }
    }
  }
  of_columns.Ask(every, col);
  typename A::template Value<1> value[kTogether][kColumns];
#pragma unroll
  for (int r = 0; r < kTogether; ++r) {
#pragma unroll
    for (int k = 0; k < kColumns; ++k) {
      value[r][k] =
          every.template Open<1>(raw[r][k], col + k * kLanes < cols, col + k * kLanes, total[r]);
    }
  }
  internal::RunColumnRounds<0>(every, value, cols, group, total);
  of_columns.Take(every);
#pragma unroll
  for (int r = 0; r < kTogether; ++r) {
    const int64_t row = first + r * kGroups;
    if (row >= rows) continue;
    const A a = AtRow(every, row);
#pragma unroll
    for (int k = 0; k < kColumns; ++k) {
      if (col + k * kLanes < cols) of_columns.Store(a, row, col, k, value[r][k], total[r]);
    }
    if (col == 0) a.End(row, total[r]);
  }
}

// The most columns of a row here: kMostColumns where rows lie otherwise when read than when
// written, kFewColumns where they lie alike.
inline constexpr int kMostColumns = 128, kFewColumns = 40;

namespace internal {

// The algorithm that serves rows column by column.
template <class A>
auto NarrowOf(const A& a) {
  if constexpr (Offers<A, RowOffers::kNarrow>) {
    return a.Narrow();
  } else {
    return a;
  }
}

// kTogether rows per group of kLanes lanes.
template <int kLanes, int kTogether = 1, class... Params, class... Args>
cudaError_t LaunchRowGroups(void (*kernel)(Params...), const RowCall& call, const Args&... args) {
  constexpr int kThreads = RowPolicy::kGroupThreads, kRows = kThreads / kLanes * kTogether;
  return Launch(kernel, CeilDiv(call.rows, kRows), kThreads, 0, call.stream, args...);
}
template <int kLanes, int kColumns, int kTogether, class A>
cudaError_t LaunchColumnsOf(const A& a, const RowCall& call) {
  return LaunchRowGroups<kLanes, kTogether>(RowColumnsKernel<kLanes, kColumns, kTogether, A>, call,
                                            a, call.rows, static_cast<int>(call.cols));
}
// Precondition: cols <= kFewColumns; kMostColumns. By the measurements in
// docs/lab/40-tuning-narrow-rows.md.
template <class A>
cudaError_t LaunchFewestColumns(const A& a, const RowCall& call) {
  return LaunchColumnsOf<8, 5, (Offers<A, RowOffers::kColumnConstants> ? 1 : 2)>(a, call);
}
template <class A>
cudaError_t LaunchColumns(const A& a, const RowCall& call) {
  if (call.cols <= kFewColumns) return LaunchFewestColumns(a, call);
  if (call.cols <= 64) return LaunchColumnsOf<16, 4, 2>(a, call);
  return LaunchColumnsOf<16, 8, (Offers<A, RowOffers::kColumnConstants> ? 2 : 1)>(a, call);
}

// The row kernel of narrow rows that lie otherwise when read than when written: a row per group of
// lanes, which move words of 4 bytes, of one element or two. Words lie as the output does; where an
// input lies otherwise by one element, a lane takes the second half of each word from the next
// lane. Columns that a word has outside the row hold A::Nothing(), so that nothing is asked about
// them afterwards. Nothing behind a row is read; before it, what else its first word of 4 bytes
// holds.

// How a row lies in words: `before` elements of its first word are another row's; `limit` elements
// from there on end it.
struct WordSpan {
  int lane, before, limit;
};

// A lane's words of a row, kLanes apart. All but the last are known to be full, but for `before`.
template <int kLanes, int kWords, class A>
struct RowWords {
  using Element = typename A::Element;
  static constexpr int kInputs = A::kInputs;
  static constexpr int N = sizeof(Element) < 4 ? 2 : 1;  // elements of a word
  static constexpr int kLoaded = kWords + N - 1;         // with the one behind the group's last
  uint32_t word[kInputs][kLoaded];

  OFL_DEVICE void Load(const A& a, int64_t row, const WordSpan& s) {
    unsigned past[kInputs];
    const uint32_t* from[kInputs];
    int elements[kInputs];  // from the first word on
#pragma unroll
    for (int i = 0; i < kInputs; ++i) {
      const WordFrame frame = a.Frame(i, row, 0);
      const auto* p = reinterpret_cast<const char*>(frame.words) + frame.past;
      p += (s.lane * N - s.before) * static_cast<int>(sizeof(Element));
      past[i] = N == 2 ? static_cast<unsigned>(reinterpret_cast<uintptr_t>(p)) & 2 : 0;
      from[i] = reinterpret_cast<const uint32_t*>(p - past[i]);
      elements[i] = s.limit + static_cast<int>(past[i] / sizeof(Element));
    }
#pragma unroll
    for (int k = 0; k < kLoaded; ++k) {
#pragma unroll
      for (int i = 0; i < kInputs; ++i) {
        const int at = (s.lane + k * kLanes) * N;
        bool there = k + 1 < kWords || at < elements[i];
        if (k == 0 && N == 2) there = there && (s.lane > 0 || s.before == 0 || past[i] == 0);
        if (k == kWords) there = there && s.lane == 0;
        word[i][k] = 0;
        if (N == 2 && k + 1 >= kWords && at + 1 == elements[i]) {  // the second is not the row's
          word[i][k] = *reinterpret_cast<const uint16_t*>(from[i] + k * kLanes);
        } else if (there) {
          word[i][k] = from[i][k * kLanes];
        }
      }
    }
    if constexpr (N == 2) {
#pragma unroll
      for (int i = 0; i < kInputs; ++i) {
#pragma unroll
        for (int k = 0; k < kWords; ++k) {
          const uint32_t own = s.lane == 0 ? word[i][k + 1] : word[i][k];
          const uint32_t next = __shfl_sync(0xffffffffu, own, s.lane + 1, kLanes);
          word[i][k] = __funnelshift_r(word[i][k], next, past[i] * 8);
        }
      }
    }
  }
  // What is outside the row becomes nothing.
  OFL_DEVICE void Mask(const WordSpan& s) {
    const Element nothing = A::Nothing();
    uint32_t none = 0;
    memcpy(&none, &nothing, sizeof(nothing));
    if constexpr (N == 2) none |= none << 16;
    const int left = s.limit - (s.lane + (kWords - 1) * kLanes) * N;
#pragma unroll
    for (int i = 0; i < kInputs; ++i) {
      uint32_t& last = word[i][kWords - 1];
      if (N == 2 && left == 1) last = __byte_perm(last, none, 0x5410);
      if (left <= 0) last = none;
      if (N == 2 && s.lane == 0 && s.before != 0) {
        word[i][0] = __byte_perm(word[i][0], none, 0x3254);
      }
    }
  }
  OFL_DEVICE typename A::template Raw<N> Get(int k) const {
    typename A::template Raw<N> raw;
#pragma unroll
    for (int i = 0; i < kInputs; ++i) memcpy(&raw.input[i], &word[i][k], sizeof(uint32_t));
    return raw;
  }
};

template <int kRound, class A, class Value, int kWords, class Group, class Total>
OFL_DEVICE void RunWordRounds(const A& a, Value (&value)[kWords], Group& group, Total& total) {
  if constexpr (kRound < A::kRounds) {
    const JoinOf<kRound, A> join;
    auto sum = a.template Visit<kRound>(value[0], true, total);
#pragma unroll
    for (int k = 1; k < kWords; ++k) {
      sum = join(sum, a.template Visit<kRound>(value[k], true, total));
    }
    a.template Finish<kRound>(group.Reduce(sum, join, IdentityOf<kRound, A>()), total);
    RunWordRounds<kRound + 1>(a, value, group, total);
  }
}

// The row, which is `active` but for groups that have none and only take part in their warp's work.
template <int kLanes, int kWords, class A>
OFL_DEVICE void RowInWords(const A& a, int64_t row, bool active, const WordSpan& s) {
  using Words = RowWords<kLanes, kWords, A>;
  constexpr int N = Words::N;
  const int64_t col = s.lane * N - s.before;  // 64 bits: then k * kLanes * N is an immediate
  LaneGroup<kLanes> group;
  auto total = a.Begin(row);
  Words words;
  words.Load(a, row, s);
  words.Mask(s);
  typename A::template Value<N> value[kWords];
#pragma unroll
  for (int k = 0; k < kWords; ++k) {
    value[k] = a.template Open<N>(words.Get(k), true, col + k * kLanes * N, total);
  }
  a.Look(row, total);
  RunWordRounds<0>(a, value, group, total);
  if (!active) return;
#pragma unroll
  for (int k = 0; k < kWords; ++k) {
    const int left = s.limit - (s.lane + k * kLanes) * N;
    const bool second = N == 2 && k == 0 && s.lane == 0 && s.before != 0;  // only that is the row's
    if ((k + 1 < kWords || left >= N) && !second) {
      a.template Store<N>(row, col + k * kLanes * N, value[k], total);
    } else if (N == 2 && left > 0) {
      a.template Store<1>(row, col + k * kLanes * N + second, A::Only(value[k], second), total);
    }
  }
  if (s.lane == 0) a.End(row, total);
}

// By so many words a lane as `words` says: a kernel for each would be many.
template <int kLanes, int kWords, int kMost, class A>
OFL_DEVICE void VisitRowWords(const A& a, int64_t row, bool active, int words, const WordSpan& s) {
  if constexpr (kWords < kMost) {
    if (words > kWords) return VisitRowWords<kLanes, kWords + 1, kMost>(a, row, active, words, s);
  }
  RowInWords<kLanes, kWords>(a, row, active, s);
}

}  // namespace internal

// The grid covers all rows, each of `words` times kLanes words at most, and of no fewer than one
// less, kLeast to kMost.
template <int kLanes, int kLeast, int kMost, class A>
__global__ void __launch_bounds__(RowPolicy::kGroupThreads)
    RowWordsKernel(A every, int64_t rows, int cols, int words) {
  constexpr int N = internal::RowWords<kLanes, kLeast, A>::N;
  const int64_t at =
      int64_t{blockIdx.x} * (RowPolicy::kGroupThreads / kLanes) + threadIdx.x / kLanes;
  const int64_t row = at < rows ? at : rows - 1;
  const A a = AtRow(every, row);
  const int before = a.Head(row) % N;
  internal::VisitRowWords<kLanes, kLeast, kMost>(
      a, row, at < rows, words, {static_cast<int>(threadIdx.x % kLanes), before, cols + before});
}

namespace internal {

// As many columns of float32 take twice the lanes. More words a lane take registers that narrower
// rows would pay for. By the measurements in docs/lab/40-tuning-narrow-rows.md.
template <class A>
struct WordsPolicy {
  static constexpr int N = sizeof(typename A::Element) < 4 ? 2 : 1;
  static constexpr bool kPair = A::kInputs == 2;
  static constexpr int kNarrowLanes = 16 / N, kWideLanes = 32 / N;
  // Of a lane.
  static constexpr int kLeastWords = kPair || N == 1 ? 5 : 3;
  static constexpr int kNarrowWords = kPair ? 6 : 9;
  static constexpr int kWideWords = kPair && N == 2 ? 7 : 12;

  // Columns that so many words of a lane hold, wherever the row begins.
  static constexpr int Columns(int lanes, int words) { return lanes * words * N - (N - 1); }
  static constexpr int kLeast = kLeastWords > 3 ? 64 : kFewColumns;  // column by column
  static constexpr int kNarrow = Columns(kNarrowLanes, kNarrowWords);
  static constexpr int kMost = Columns(kWideLanes, kWideWords);
};
// The most columns that LaunchWords serves; 0: none.
template <class A>
inline constexpr int MostWordColumns = Offers<A, RowOffers::kWords> &&
                                               sizeof(typename A::Element) <= 4
                                           ? WordsPolicy<A>::kMost
                                           : 0;
template <int kLanes, int kLeast, int kMost, class A>
cudaError_t LaunchWordsOf(const A& a, const RowCall& call) {
  constexpr int N = WordsPolicy<A>::N;
  const auto words = static_cast<int>(CeilDiv(call.cols + N - 1, kLanes * N));
  return LaunchRowGroups<kLanes>(RowWordsKernel<kLanes, kLeast, kMost, A>, call, a, call.rows,
                                 static_cast<int>(call.cols), words);
}
// Precondition: cols <= WordsPolicy<A>::kMost.
template <class A>
cudaError_t LaunchWords(const A& a, const RowCall& call) {
  using P = WordsPolicy<A>;
  if (call.cols <= kFewColumns) return LaunchFewestColumns(a, call);
  if constexpr (P::kLeast > kFewColumns) {
    if (call.cols <= P::kLeast) return LaunchColumnsOf<16, 4, 2>(a, call);
  }
  if (call.cols <= P::kNarrow) {
    return LaunchWordsOf<P::kNarrowLanes, P::kLeastWords, P::kNarrowWords>(a, call);
  }
  constexpr int kLeastWide = (P::kNarrow + P::N - 1) / (P::kWideLanes * P::N) + 1;
  return LaunchWordsOf<P::kWideLanes, kLeastWide, P::kWideWords>(a, call);
}

}  // namespace internal
}  // namespace oneflow_lite::cuda
