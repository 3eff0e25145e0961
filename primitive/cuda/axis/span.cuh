// SPDX-License-Identifier: Apache-2.0
//
// Work along the middle axis of outer x axis x inner where rows are no whole packs. A block copies
// what is its share to shared memory in words of 16 bytes, as it lies in memory; each thread takes
// elements of one column from there; the results, in the elements' places, leave in words again.
// So memory sees one read and one write of whole words, whatever inner is. A share is one of
//   some whole slices (outer), which are one segment of memory without gaps, or one each where
//     they would lie in the same banks
//   a tile of columns of one slice: a segment per row
//   of either, for one slice, the rows of one block of a cluster
//
// The threads of a slice lie along its elements: thread t has column t % columns, and of that the
// rows t / columns + ways * k, so that neighbours touch neighbouring elements. What the threads of
// a column found they merge once, in fixed order. Longer columns of several slices are read in
// words (axis/span_words.cuh).
//
// See axis/slab.cuh for the algorithm A, here of packs of one element of the compute type, or of
// words.
#pragma once

#include "primitive/cuda/axis/span_copies.cuh"
#include "primitive/cuda/axis/span_words.cuh"

namespace oneflow_lite::cuda {

// The elements of a column that are a thread's: rows [0, rows) at at[i][row * step].
template <class A, class T>
struct SpanColumn {
  using C = typename A::T;
  using Raw = typename A::Raw;
  static constexpr int kInputs = A::kInputs;
  T* at[kInputs];
  int rows, step;

  OFL_DEVICE Raw Load(int row) const {
    Raw raw;
#pragma unroll
    for (int i = 0; i < kInputs; ++i) raw.input[i].held.v[0] = ConvertTo<C>(at[i][row * step]);
    return raw;
  }
  OFL_DEVICE Raw LoadIf(bool there, int row) const {
    if (there) return Load(row);
    Raw raw;
#pragma unroll
    for (int i = 0; i < kInputs; ++i) raw.input[i].held.v[0] = A::Nothing();
    return raw;
  }
  OFL_DEVICE void Store(int row, const Pack<C, 1>& result) const {
    at[kInputs - 1][row * step] = ConvertTo<T>(result.v[0]);
  }
};

// A column's rows in registers: kWhole, which all columns have, and up to kMore behind them.
template <class A, class T, int kWhole, int kMore>
class HeldColumn {
 public:
  using Raw = typename A::Raw;
  OFL_DEVICE explicit HeldColumn(const SpanColumn<A, T>& column) : column_(column) {
#pragma unroll
    for (int k = 0; k < kWhole; ++k) held_[k] = column_.Load(k);
#pragma unroll
    for (int k = kWhole; k < kWhole + kMore; ++k) {
      held_[k] = column_.LoadIf(k < column_.rows, k);
    }
  }
  OFL_DEVICE void Wait() const {}
  template <bool kWrite, class F>
  OFL_DEVICE void Visit(F f) {
#pragma unroll
    for (Raw& raw : held_) f(raw);
  }
  template <class Stat>
  OFL_DEVICE void Gather(const A& a, Stat (&stat)[1]) {
    a.Gather(*this, 1, 1, stat);
  }
  template <class Stat>
  OFL_DEVICE void Write(const A& a, const Stat& own, Stat (&stat)[1]) {
    a.Rebase(own, stat[0]);
#pragma unroll
    for (int k = 0; k < kWhole + kMore; ++k) {
      if (k < kWhole || k < column_.rows) {
        column_.Store(k, a.template Result<true>(held_[k], stat));
      }
    }
  }

 private:
  const SpanColumn<A, T>& column_;
  Raw held_[kWhole + kMore];
};

// Any number of rows, read anew for the results.
template <class A, class T>
class ReadColumn {
 public:
  using Raw = typename A::Raw;
  OFL_DEVICE explicit ReadColumn(const SpanColumn<A, T>& column) : column_(column) {}
  template <class Stat>
  OFL_DEVICE void Gather(const A& a, Stat (&stat)[1]) {
    stat[0] = Stat();
    Visit([&](int, const Raw(&raw)[kSpanReadBatch]) { a.AddBatch(raw, kSpanReadBatch, stat); });
  }
  template <class Stat>
  OFL_DEVICE void Write(const A& a, const Stat&, Stat (&stat)[1]) {
    Visit([&](int row, const Raw(&raw)[kSpanReadBatch]) {
#pragma unroll
      for (int u = 0; u < kSpanReadBatch; ++u) {
        if (row + u < column_.rows) column_.Store(row + u, a.template Result<false>(raw[u], stat));
      }
    });
  }

 private:
  template <class F>
  OFL_DEVICE void Visit(F f) const {
    Raw raw[kSpanReadBatch];
    int row = 0;
    for (; row + kSpanReadBatch <= column_.rows; row += kSpanReadBatch) {
#pragma unroll
      for (int u = 0; u < kSpanReadBatch; ++u) raw[u] = column_.Load(row + u);
      f(row, raw);
    }
    if (row == column_.rows) return;
#pragma unroll
    for (int u = 0; u < kSpanReadBatch; ++u) {
      raw[u] = column_.LoadIf(row + u < column_.rows, row + u);
    }
    f(row, raw);
  }
  const SpanColumn<A, T>& column_;
};

// How the threads of a column merge what they found, in shared memory.
template <class A>
class SpanExchange {
 public:
  using Stat = typename A::Stat;
  using Merge = typename A::Merge;

  OFL_DEVICE SpanExchange(char* scratch, const AxisSpan& s)
      : barrier_(scratch),
        incoming_(reinterpret_cast<Stat*>(scratch + kSpanBarrierBytes)),
        slots_(incoming_ + (s.parts > 1 ? s.parts * s.columns : 0)),
        s_(s) {}
  // Before the blocks of a cluster merge, early.
  OFL_DEVICE void Open() const {
    if (s_.parts == 1) return;
    if (threadIdx.x == 0) {
      barrier_.Init();
      ClusterBarrier::Publish();
    }
    internal::ClusterArriveRelaxed();
  }
  // For all threads of all blocks, once; but where a column is a single thread's, which needs none.
  // Those that are not `present` have no column.
  OFL_DEVICE void operator()(Stat& stat, bool present, int way, int column) const {
    MergeWays(stat, present, way);
    if (s_.parts > 1) MergeParts(stat, present && way == 0, column);
  }

 private:
  OFL_DEVICE void MergeWays(Stat& stat, bool present, int way) const {
    Stat* const mine = slots_ + (present ? threadIdx.x : 0);
    if (present) *mine = stat;
    __syncthreads();
    int apart = 1;  // ways between those that are not merged yet
#pragma unroll 1
    for (; apart * kSpanFan < s_.ways; apart *= kSpanFan) {
      if (present && way % (apart * kSpanFan) == 0) {
        Stat merged = *mine;
#pragma unroll 1
        for (int i = 1; i < kSpanFan && way + i * apart < s_.ways; ++i) {
          merged = Merge{}(merged, mine[i * apart * s_.columns]);
        }
        *mine = merged;
      }
      __syncthreads();
    }
    const Stat* const first = mine - way * s_.columns;
    stat = *first;
#pragma unroll 1
    for (int i = apart; i < s_.ways; i += apart) stat = Merge{}(stat, first[i * s_.columns]);
  }
  OFL_DEVICE void MergeParts(Stat& stat, bool sends, int column) const {
    const int rank = static_cast<int>(internal::ClusterRank());
    internal::ClusterWait();  // the others' barriers are there
    if (threadIdx.x == 0) {
      barrier_.Expect(s_.parts * s_.columns * static_cast<int>(sizeof(Stat)));
    }
    if (sends) {
      for (int r = 0; r < s_.parts; ++r) {
        barrier_.Send(incoming_ + rank * s_.columns + column, r, stat);
      }
    }
    barrier_.Await(0);
    stat = incoming_[column];
#pragma unroll 1
    for (int r = 1; r < s_.parts; ++r) {
      stat = Merge{}(stat, incoming_[r * s_.columns + column]);
    }
  }
  ClusterBarrier barrier_;
  Stat *incoming_, *slots_;
  const AxisSpan& s_;
};

// Thread t of those of all slices, by way and column. merge(stat, way, column) comes between what
// it found and what it writes; it writes only where it is `present`.
template <class Column, class A, class T, class F>
OFL_DEVICE void VisitSpanColumn(const A& a, const AxisSpan& s,
                                const SpanShare<T, A::kInputs>& share, int t, bool present,
                                F merge) {
  using Stat = typename A::Stat;
  const int slice = s.SliceOf(t), member = t - slice * s.ways * s.columns;
  const int way = s.WayOf(member), in_row = member - way * s.columns;
  SpanColumn<A, T> column;
#pragma unroll
  for (int i = 0; i < A::kInputs; ++i) {
    column.at[i] = share.at[i] + slice * s.slice_pitch + way * s.pitch + in_row;
  }
  column.rows = s.rows + (way < share.more_rows);
  column.step = s.ways * s.pitch;
  Column rows(column);
  Stat own[1], stat[1];
  rows.Gather(a, own);
  stat[0] = own[0];
  merge(stat[0], way, in_row);
  stat[0] = a.Conclude(stat[0]);
  if (present) rows.Write(a, own[0], stat);
}

template <class Column, class A, class T>
OFL_DEVICE void VisitSpanAlone(const A& a, const AxisSpan& s,
                               const SpanShare<T, A::kInputs>& share) {
  for (int t = threadIdx.x; t < share.slices * s.columns; t += blockDim.x) {
    VisitSpanColumn<Column>(a, s, share, t, true, [](typename A::Stat&, int, int) {});
  }
}

// The columns of a block by threads that hold theirs: kBatches of rows and what is left, or fewer.
template <int kBatches, class A, class T>
OFL_DEVICE void VisitSpanHeld(const A& a, const AxisSpan& s,
                              const SpanShare<T, A::kInputs>& share) {
  if constexpr (kBatches > 0) {
    if (s.rows < kBatches * kSpanBatch) return VisitSpanHeld<kBatches - 1>(a, s, share);
  }
  VisitSpanAlone<HeldColumn<A, T, kBatches * kSpanBatch, kSpanBatch>>(a, s, share);
}

// The same by threads that read twice, alone or several to a column.
template <class A, class T>
OFL_DEVICE void VisitSpanRead(const A& a, const AxisSpan& s, const SpanShare<T, A::kInputs>& share,
                              const SpanExchange<A>& exchange) {
  using Column = ReadColumn<A, T>;
  if (s.ways == 1 && s.parts == 1) return VisitSpanAlone<Column>(a, s, share);
  const int t = static_cast<int>(threadIdx.x);
  const bool present = t < share.slices * s.ways * s.columns;
  VisitSpanColumn<Column>(
      a, s, share, present ? t : 0, present,
      [&](typename A::Stat& stat, int way, int column) { exchange(stat, present, way, column); });
}

// Threads of a block at most, and blocks that a multiprocessor is to hold of so many: those that
// may share a slice leave 48 registers, as five blocks of kThreads do.
template <class T, SpanKind kKind>
struct SpanBounds {
  static constexpr bool kDouble = sizeof(T) == 8, kShares = kKind == SpanKind::kRead && !kDouble;
  static constexpr int kThreads = kShares ? 640 : AxisSpanPolicy::kThreads;
  static constexpr int kBlocks = kDouble || kShares ? 2 : kKind == SpanKind::kHeld ? 4 : 5;
};

// kWords: of inputs that lie alike within words.
template <class A, class T, SpanKind kKind>
__global__ void __launch_bounds__(SpanBounds<T, kKind>::kThreads, SpanBounds<T, kKind>::kBlocks)
    AxisSpanKernel(A a, SpanPointers<T, A::kInputs> p, AxisSpan s) {
  constexpr int kInputs = A::kInputs;
  constexpr bool kWords = kKind == SpanKind::kWords;
  extern __shared__ __align__(16) char shared[];
  char* const scratch = shared + kInputs * s.buffer_bytes;
  const SpanExchange<A> exchange(scratch, s);
  if constexpr (kKind == SpanKind::kRead) exchange.Open();
  int64_t group = blockIdx.x;
  int tile = 0, first_row = 0, rows = s.axis;
  if (kKind == SpanKind::kRead && s.parts > 1) {
    const int part = static_cast<int>(internal::ClusterRank());
    group = blockIdx.x / static_cast<unsigned>(s.parts);
    first_row = s.axis * part / s.parts;
    rows = s.axis * (part + 1) / s.parts - first_row;
  }
  if (!kWords && s.tiles > 1) {
    const unsigned block = static_cast<unsigned>(group), tiles = static_cast<unsigned>(s.tiles);
    group = block / tiles;
    tile = static_cast<int>(block % tiles);
  }
  const int first_column = tile * s.columns;
  const int64_t left = s.outer - group * s.slices;
  const int64_t first = (group * s.slices * s.axis + first_row) * s.inner + first_column;

  SpanShare<T, kInputs> share;
  share.slices = left < s.slices ? static_cast<int>(left) : s.slices;
  share.more_rows = rows - s.ways * s.rows;
  internal::SpanSegments segments{1, share.slices * rows * s.columns, 0, 0};
  if (!kWords && s.tiles > 1) {
    const int64_t columns = s.inner - first_column;
    segments = {rows, columns < s.columns ? static_cast<int>(columns) : s.columns, s.inner,
                s.pitch};
  } else if (!kWords && s.padded) {
    segments = {share.slices, s.axis * s.columns, int64_t{s.axis} * s.columns, s.slice_pitch};
  }
  const SpanCopies<T, kInputs, kWords> copies(p, s, shared, first, segments);
#pragma unroll
  for (int i = 0; i < kInputs; ++i) share.at[i] = copies.At(i);
  copies.In();
  if constexpr (kKind == SpanKind::kHeld) {
    VisitSpanHeld<kSpanHeld<kInputs> / kSpanBatch - 1>(a, s, share);
  } else if constexpr (kKind == SpanKind::kRead) {
    VisitSpanRead(a, s, share, exchange);
  } else {
    VisitSpanWords(a, s, share, scratch, internal::ElementsPast(p.input[0] + first));
  }
  copies.Out();
}

}  // namespace oneflow_lite::cuda
