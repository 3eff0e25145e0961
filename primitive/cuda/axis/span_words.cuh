// SPDX-License-Identifier: Apache-2.0
//
// The columns of several slices on chip (axis/span.cuh), of 16-bit elements, by threads that read
// words of two, anew for each visit. Where a row is no whole number of words, a turn goes over two
// rows, so that a thread's words have the same columns in all turns; a column then belongs to two
// words of a turn. What the threads of a column found is merged once, in fixed order.
#pragma once

#include "primitive/cuda/axis/span_policy.h"
#include "primitive/cuda/chip/group.cuh"
#include "primitive/cuda/chip/pack.cuh"
#include "primitive/cuda/chip/packs_on_chip.cuh"

namespace oneflow_lite::cuda {

// What a block has of the tensors, on chip: `slices`, and in each `more_rows` more than
// s.ways * s.rows.
template <class T, int kInputs>
struct SpanShare {
  int slices, more_rows;
  T* at[kInputs];
};

// Which words are thread t's, of those that all slices need: it begins `first` elements behind the
// slice's beginning, or one before it, and has the `slot`-th element of a turn.
template <int N>
struct SpanMember {
  int slice, way, slot, before, first;

  // before: elements of another slice in the slice's first word.
  static OFL_DEVICE int Before(const AxisSpan& s, int past, int slice) {
    return (past + slice * s.slice_pitch) & (N - 1);
  }
  OFL_DEVICE SpanMember(const AxisSpan& s, int past, int t) {
    slice = s.SliceOf(t);
    const int member = t - slice * s.ways * s.words;
    way = s.WayOf(member);
    slot = (member - way * s.words) * N;
    before = Before(s, past, slice);
    first = way * s.turn + slot - before;
  }
  // Of the turn's slots, in those that all slices have of a block.
  OFL_DEVICE int Slot(const AxisSpan& s) const { return (slice * s.ways + way) * s.turn + slot; }
  OFL_DEVICE int Column(const AxisSpan& s, int i) const {
    int column = slot + i - before;
    if (column < 0) column += s.turn;
    return column < s.columns ? column : column - s.columns;
  }
};

// A thread's words of a slice.
template <class A>
class SpanWords {
 public:
  static constexpr int N = A::N, kInputs = A::kInputs, kBatch = kSpanWordBatch;
  static_assert(N == 2);
  using T = typename A::T;
  using Raw = typename A::Raw;

  OFL_DEVICE SpanWords(const AxisSpan& s, const SpanShare<T, kInputs>& share,
                       const SpanMember<N>& me)
      : step_(s.ways * s.turn) {
#pragma unroll
    for (int i = 0; i < kInputs; ++i) {
      at_[i] = share.at[i] + (me.slice * s.slice_pitch + me.first);
    }
    const int left = s.axis * s.columns - me.first;
    count_ = left > 0 ? s.TurnOf(left - 1) + 1 : 0;
    begin_ = me.first < 0 ? 1 : 0;
    end_ = count_ > 0 && left - (count_ - 1) * step_ < N ? count_ - 1 : count_;
  }
  OFL_DEVICE void Wait() const {}
  // f(Raw&) for every word, along the axis; what is no element of the slice is A::Nothing().
  template <bool kWrite, class F>
  OFL_DEVICE void Visit(F f) const {
    static_assert(!kWrite, "nothing is kept in the words");
    VisitBatches(
        f, [](int, const Raw&) {}, [](int, const Raw&) {});
  }
  // result(Raw) in each word's place.
  template <class F>
  OFL_DEVICE void Replace(F result) const {
    VisitBatches([](Raw&) {}, [&](int k, const Raw& raw) { Store(k, result(raw)); },
                 [&](int k, const Raw& raw) { StoreSome(k, result(raw)); });
  }

 private:
  using Word = OnChipPack<T, N>;

  // f(raw), then whole(k, raw) in batches of words that are all inside, some(k, raw) in others.
  template <class F, class Whole, class Some>
  OFL_DEVICE void VisitBatches(F f, Whole whole, Some some) const {
#pragma unroll 1
    for (int k = 0; k < count_; k += kBatch) {
      Raw raw[kBatch];
      if (k >= begin_ && k + kBatch <= end_) {
#pragma unroll
        for (int u = 0; u < kBatch; ++u) raw[u] = Load(k + u);
#pragma unroll
        for (int u = 0; u < kBatch; ++u) {
          f(raw[u]);
          whole(k + u, raw[u]);
        }
      } else {
#pragma unroll
        for (int u = 0; u < kBatch; ++u) raw[u] = LoadSome(k + u);
#pragma unroll
        for (int u = 0; u < kBatch; ++u) {
          f(raw[u]);
          some(k + u, raw[u]);
        }
      }
    }
  }
  // Of words that lie across the slice's beginning or end, the one element inside.
  OFL_DEVICE int Inside(int k) const { return k < begin_ ? 1 : 0; }
  OFL_DEVICE Raw Load(int k) const {
    Raw raw;
#pragma unroll
    for (int i = 0; i < kInputs; ++i) {
      raw.input[i] = StowedPack<T, N>::Of(reinterpret_cast<const Word*>(at_[i] + k * step_)->Get());
    }
    return raw;
  }
  OFL_DEVICE Raw LoadSome(int k) const {
    if (k >= begin_ && k < end_) return Load(k);
    Raw raw;
#pragma unroll
    for (int i = 0; i < kInputs; ++i) {
      Pack<T, N> pack{{A::Nothing(), A::Nothing()}};
      if (k < count_) {
        const T inside = at_[i][k * step_ + Inside(k)];
        pack.v[0] = k < begin_ ? pack.v[0] : inside;
        pack.v[1] = k < begin_ ? inside : pack.v[1];
      }
      raw.input[i] = StowedPack<T, N>::Of(pack);
    }
    return raw;
  }
  OFL_DEVICE void Store(int k, const Pack<T, N>& pack) const {
    reinterpret_cast<Word*>(at_[kInputs - 1] + k * step_)->Put(pack);
  }
  OFL_DEVICE void StoreSome(int k, const Pack<T, N>& pack) const {
    if (k >= begin_ && k < end_) {
      Store(k, pack);
    } else if (k < count_) {
      at_[kInputs - 1][k * step_ + Inside(k)] = k < begin_ ? pack.v[1] : pack.v[0];
    }
  }

  T* at_[kInputs];
  int step_, count_, begin_, end_;  // whole words from begin_ to end_
};

// How the threads of a column merge what they found, in shared memory.
template <class A>
class WordsExchange {
 public:
  static constexpr int N = A::N;
  using Stat = typename A::Stat;

  OFL_DEVICE WordsExchange(char* scratch, const AxisSpan& s)
      : result_(reinterpret_cast<Stat*>(scratch + kSpanBarrierBytes)),
        own_(result_ + s.slices * s.columns) {}
  OFL_DEVICE Stat* Own(const AxisSpan& s, const SpanMember<N>& me) const {
    return own_ + me.Slot(s);
  }
  OFL_DEVICE const Stat& Result(const AxisSpan& s, const SpanMember<N>& me, int i) const {
    return result_[me.slice * s.columns + me.Column(s, i)];
  }
  // What the threads left in Own becomes Result, a column by `members` neighbouring lanes.
  OFL_DEVICE void Merge(const A& a, const AxisSpan& s, int slices, int past) const {
    __syncthreads();
    const int columns = slices * s.columns, threads = static_cast<int>(blockDim.x);
    const bool two = s.turn != s.columns;  // words of a turn have a column
    const int rows = two ? 2 * s.ways : s.ways;
    int members = 1;
    while (members < rows && members < kWarp && columns * members * 2 <= threads) members *= 2;
    const int member = static_cast<int>(threadIdx.x) & (members - 1);
    const int first = static_cast<int>(threadIdx.x) / members;
#pragma unroll 1
    for (int base = 0; base < columns; base += threads / members) {
      const int at = base + first;  // whole warps stay together for the shuffles
      Stat merged = Stat();
      if (at < columns) {
        const int slice = at / s.columns, column = at - slice * s.columns;
        const int slot = column + SpanMember<N>::Before(s, past, slice);
        const Stat* const own = own_ + slice * s.ways * s.turn;
#pragma unroll 1
        for (int r = member; r < rows; r += members) {
          int of = two && r % 2 == 1 ? slot + s.columns : slot;
          if (of >= s.turn) of -= s.turn;
          merged = typename A::Merge{}(merged, own[(two ? r / 2 : r) * s.turn + of]);
        }
      }
#pragma unroll 1
      for (int mask = members / 2; mask > 0; mask /= 2) {
        merged = typename A::Merge{}(merged, ShuffleXor(merged, mask));
      }
      if (at < columns && member == 0) result_[at] = a.Conclude(merged);
    }
    __syncthreads();
  }

 private:
  Stat *result_, *own_;
};

// The results of a share in the place of its last input. past: elements before the first in its
// word, of every input alike.
template <class A>
OFL_DEVICE void VisitSpanWords(const A& a, const AxisSpan& s,
                               const SpanShare<typename A::T, A::kInputs>& share, char* scratch,
                               int past) {
  const WordsExchange<A> exchange(scratch, s);
  using Member = SpanMember<A::N>;
  using Stat = typename A::Stat;
  const int members = share.slices * s.ways * s.words;
  for (int t = threadIdx.x; t < members; t += blockDim.x) {
    const Member me(s, past, t);
    SpanWords<A> words(s, share, me);
    Stat stat[A::N];
    a.Gather(words, 1, 1, stat);
#pragma unroll
    for (int i = 0; i < A::N; ++i) exchange.Own(s, me)[i] = stat[i];
  }
  exchange.Merge(a, s, share.slices, past);
  for (int t = threadIdx.x; t < members; t += blockDim.x) {
    const Member me(s, past, t);
    SpanWords<A> words(s, share, me);
    Stat stat[A::N];
#pragma unroll
    for (int i = 0; i < A::N; ++i) {
      stat[i] = exchange.Result(s, me, i);
      a.Rebase(exchange.Own(s, me)[i], stat[i]);
    }
    words.Replace([&](const typename A::Raw& raw) { return a.template Result<true>(raw, stat); });
  }
}

}  // namespace oneflow_lite::cuda
