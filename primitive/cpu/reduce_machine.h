// SPDX-License-Identifier: Apache-2.0
//
// How a reduction over the middle axis of outer x axis x inner is cut into parts, whichever it is.
// The cut depends on the shape alone, never on the number of threads.
//
// A reducer says what is gathered; the machine calls it on chunks of contiguous elements:
//
//   using Element = float;                       // what chunks are converted to
//   using Chunk = const float*;                  // or void: of the dtype that Takes says
//   struct Total { ... };                        // what is known of a part of a slice
//   struct Lanes { ... };                        // the same of kChunk neighbouring columns
//   Total Start() const;                         // of no elements
//   Total Row(int64_t n, Chunk) const;           // of n <= kRowElements elements, n > 0
//   Total Merge(const Total&, const Total&) const;
//   void Begin(Lanes&, int64_t length) const;
//   void Add(Lanes&, int64_t n, Chunk) const;    // to the first n lanes; kTerms times
//   void AddRows(Lanes&, int64_t rows, int64_t n, Chunk, int64_t stride, bool first) const;  // if
//   kAddsRows; the first ones need no Begin
//   Total Lane(const Lanes&, int64_t i) const;
//   void Finish(const Total*, int64_t n, int64_t axis, int64_t index) const;  // to the outputs
//   void FinishLanes(const Lanes&, same) const;  // if kFinishesLanes: lanes hold whole slices
//   void FoldLanes(Lanes&, int64_t rows, int64_t width) const;  // if kFoldsLanes: into the first
//   void Rows(int64_t rows, int64_t n, Chunk, int64_t stride, Total*) const;  // Row of each, if
//   kTakesRows
#pragma once

#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/rearrange.h"
#include "primitive/cpu/reduce_loops.h"
#include "primitive/cpu/reduce_parts.h"

namespace oneflow_lite {

// What a reducer of C says unless it knows better: chunks of C, which are added one by one.
template <class C>
struct ReducerOf {
  using Element = C;
  using Chunk = const C*;
  static constexpr int64_t kRowElements = kChunk;  // at most, where nothing is converted
  static constexpr int64_t kTerms = kTermsPerLane;
  static constexpr int64_t kRowPart = kPartElements;  // of a long row, for a thread
  static constexpr int64_t kShortRow = kShortAxis;    // up to which rows are taken as columns
  static constexpr bool kAddsRows = false;
  static constexpr bool kFinishesLanes = false;
  static constexpr bool kFoldsLanes = false;
  static constexpr bool kTakesRows = false;
  DType Takes() const { return kDTypeOfChunks<C>; }
};

template <class R>
class ReduceMachine {
 public:
  using C = typename R::Element;
  using Total = typename R::Total;
  using Chunk = typename R::Chunk;

  ReduceMachine(const R& reducer, DType in, const ReduceSplit& shape, const void* x)
      : r_(reducer),
        source_(in, reducer.Takes(), shape.inner == 1 ? shape.axis_stride : 1),
        shape_(shape),
        x_(x) {}

  void Run() const {
    const bool is_short = shape_.axis > 0 && shape_.axis <= R::kShortRow;
    if (shape_.inner == 1 && is_short && source_.stride() == 1) {
      ShortRows();
    } else if (shape_.inner == 1) {
      Rows();
    } else if (shape_.inner > 1) {
      Columns();
    }
  }

 private:
  Chunk Load(int64_t offset, int64_t n, C* buffer) const {
    return static_cast<Chunk>(source_.Load(x_, offset, n, buffer));
  }

  // Of lanes that hold n whole slices.
  void FinishLanes(const typename R::Lanes& lanes, int64_t n, int64_t index) const {
    if constexpr (R::kFinishesLanes) {
      r_.FinishLanes(lanes, n, shape_.axis, index);
    } else {
      Total totals[kChunk];
      for (int64_t i = 0; i < n; ++i) totals[i] = r_.Merge(r_.Start(), r_.Lane(lanes, i));
      r_.Finish(totals, n, shape_.axis, index);
    }
  }

  // ---- inner = 1 ----

  Total RowPart(int64_t begin, int64_t end) const {
    alignas(64) C buffer[kChunk];
    const int64_t most = source_.copies() ? kChunk : R::kRowElements;
    Total total = r_.Start();
    for (int64_t a = begin; a < end;) {
      const int64_t n = std::min(most, end - a);
      total = r_.Merge(total, r_.Row(n, Load(a, n, buffer)));
      a += n;
    }
    return total;
  }

  void Rows() const {
    const AxisParts parts(shape_.axis, R::kRowPart, kMaxRowParts);
    if (shape_.outer < std::min<int64_t>(parts.count, NumThreads()) && !InSerialRegion()) {
      for (int64_t row = 0; row < shape_.outer; ++row) SplitRow(parts, row);
      return;
    }
    const int64_t grain =
        std::max<int64_t>(1, kElementwiseGrain / std::max<int64_t>(1, shape_.axis));
    ParallelFor(shape_.outer, grain, [&](int64_t begin, int64_t end) {
      Total totals[kChunk];
      for (int64_t first = begin; first < end; first += kChunk) {
        const int64_t n = std::min(kChunk, end - first);
        RowTotals(parts, first, n, totals);
        r_.Finish(totals, n, shape_.axis, first);
      }
    });
  }

  // Of rows [first, first + n).
  void RowTotals(const AxisParts& parts, int64_t first, int64_t n, Total* totals) const {
    const int64_t from = first * shape_.outer_stride;
    if constexpr (R::kTakesRows) {
      if (!source_.copies() && shape_.axis > 0 &&
          shape_.axis <= std::min(kChunk, R::kRowElements)) {
        return r_.Rows(n, shape_.axis, Load(from, shape_.axis, nullptr), shape_.outer_stride,
                       totals);
      }
    }
    for (int64_t i = 0; i < n; ++i) {
      const int64_t offset = from + i * shape_.outer_stride;
      totals[i] = r_.Start();
      for (int64_t p = 0; p < parts.count; ++p) {
        totals[i] = r_.Merge(totals[i], RowPart(offset + parts.Begin(p), offset + parts.End(p)));
      }
    }
  }

  // Rows of a few elements are turned tile by tile, and gone through as columns.
  void ShortRows() const {
    const TransposeFunction transpose = FindTranspose(static_cast<size_t>(source_.item()));
    const int64_t axis = shape_.axis, row = axis * source_.item();
    const int64_t most = std::min(kChunk, kShortTile / row / 16 * 16);
    ParallelFor(shape_.outer, kElementwiseGrain / axis, [&](int64_t begin, int64_t end) {
      alignas(64) char tile[kShortTile];
      alignas(64) C buffer[kChunk];
      alignas(64) typename R::Lanes lanes;
      for (int64_t first = begin; first < end; first += most) {
        const int64_t n = std::min(most, end - first);
        const int64_t from = first * shape_.outer_stride;
        transpose(axis, n, static_cast<const char*>(x_) + from * source_.item(),
                  shape_.outer_stride, tile, n);
        if constexpr (R::kAddsRows) {
          if (!source_.copies()) {
            r_.AddRows(lanes, axis, n, static_cast<Chunk>(tile), n, /*first=*/true);
            FinishLanes(lanes, n, first);
            continue;
          }
        }
        r_.Begin(lanes, n);
        for (int64_t a = 0; a < axis; ++a) {
          r_.Add(lanes, n, static_cast<Chunk>(source_.Load(tile, a * n, n, buffer)));
        }
        FinishLanes(lanes, n, first);
      }
    });
  }

  // One long row on all threads.
  void SplitRow(const AxisParts& parts, int64_t row) const {
    Total partial[kMaxRowParts];
    ParallelFor(parts.count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const int64_t offset = row * shape_.outer_stride;
        partial[p] = RowPart(offset + parts.Begin(p), offset + parts.End(p));
      }
    });
    Total total = r_.Start();
    for (int64_t p = 0; p < parts.count; ++p) total = r_.Merge(total, partial[p]);
    r_.Finish(&total, 1, parts.axis, row);
  }

  // ---- inner > 1 ----

  // Adds rows from a on, to `end` or as many as lanes take; returns the lanes that are left, of
  // which each has an element.
  int64_t AddRows(typename R::Lanes& lanes, const ColumnBlocks& blocks, int64_t width,
                  int64_t offset, int64_t& a, int64_t end) const {
    const int64_t length = std::min(blocks.group, end - a) * width;
    int64_t filled = 0;
    for (int64_t term = 0; term < R::kTerms && a < end;) {
      const int64_t from = offset + a * shape_.axis_stride;
      const int64_t groups = std::min({kRowsAtOnce, (end - a) / blocks.group, R::kTerms - term});
      if (R::kAddsRows && groups > 0) {
        AddGroups(lanes, groups, length, from, blocks.group * shape_.axis_stride, term == 0);
        filled = length;
        a += groups * blocks.group;
        term += groups;
        continue;
      }
      if (term == 0) r_.Begin(lanes, length);
      alignas(64) C buffer[kChunk];
      const int64_t rows = std::min(blocks.group, end - a);
      r_.Add(lanes, rows * width, Load(from, rows * width, buffer));
      filled = std::max(filled, rows * width);
      a += rows;
      ++term;
    }
    if constexpr (R::kFoldsLanes) {
      if (filled > width) r_.FoldLanes(lanes, filled / width, width);
      return width;
    }
    return filled;
  }

  // Rows [begin, end) of `width` columns; `offset` is that of the first column of the first row.
  void ColumnPart(const ColumnBlocks& blocks, int64_t width, int64_t offset, int64_t begin,
                  int64_t end, Total* totals) const {
    alignas(64) typename R::Lanes lanes;
    std::fill_n(totals, width, r_.Start());
    for (int64_t a = begin; a < end;) {
      const int64_t filled = AddRows(lanes, blocks, width, offset, a, end);
      for (int64_t i = 0; i < filled; i += width) {
        for (int64_t j = 0; j < width; ++j) totals[j] = r_.Merge(totals[j], r_.Lane(lanes, i + j));
      }
    }
  }

  // Chunks of n elements, `stride` elements apart, kRowsAtOnce at most.
  void AddGroups(typename R::Lanes& lanes, int64_t groups, int64_t n, int64_t offset,
                 int64_t stride, bool first) const {
    if constexpr (R::kAddsRows) {
      if (!source_.copies()) {
        return r_.AddRows(lanes, groups, n, Load(offset, n, nullptr), stride, first);
      }
      alignas(64) C buffer[kRowsAtOnce * kChunk];
      for (int64_t k = 0; k < groups; ++k) Load(offset + k * stride, n, buffer + k * kChunk);
      r_.AddRows(lanes, groups, n, buffer, kChunk, first);
    }
  }

  void Columns() const {
    const bool dense = shape_.axis_stride == shape_.inner;
    const ColumnBlocks blocks(shape_.inner, shape_.axis, dense);
    const AxisParts parts(shape_.axis, kPartElements / blocks.width, kMaxColumnParts);
    const int64_t tasks = shape_.outer * blocks.count;
    if (tasks < std::min<int64_t>(parts.count, NumThreads()) && !InSerialRegion()) {
      for (int64_t task = 0; task < tasks; ++task) Column(blocks, parts, task, /*split=*/true);
      return;
    }
    const int64_t work = std::max<int64_t>(1, shape_.axis * blocks.width);
    ParallelFor(tasks, std::max<int64_t>(1, kElementwiseGrain / work),
                [&](int64_t begin, int64_t end) {
                  for (int64_t task = begin; task < end; ++task) {
                    Column(blocks, parts, task, /*split=*/false);
                  }
                });
  }

  // One block of columns, its parts on all threads if split.
  void Column(const ColumnBlocks& blocks, const AxisParts& parts, int64_t task, bool split) const {
    const int64_t column = task % blocks.count * blocks.width;
    const int64_t width = std::min(blocks.width, shape_.inner - column);
    const int64_t outer = task / blocks.count;
    const int64_t offset = outer * shape_.outer_stride + column;
    const int64_t index = outer * shape_.inner + column;
    const int64_t terms = (shape_.axis + blocks.group - 1) / blocks.group;
    const bool in_lanes = blocks.group == 1 || (R::kFoldsLanes && parts.count == 1);
    if (!split && in_lanes && shape_.axis > 0 && terms <= R::kTerms) {
      alignas(64) typename R::Lanes lanes;
      int64_t a = 0;
      AddRows(lanes, blocks, width, offset, a, shape_.axis);
      return FinishLanes(lanes, width, index);
    }
    Total partial[kMaxColumnParts][kChunk];
    const auto part = [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        ColumnPart(blocks, width, offset, parts.Begin(p), parts.End(p), partial[p]);
      }
    };
    if (split) {
      ParallelFor(parts.count, 1, part);
    } else {
      part(0, parts.count);
    }
    for (int64_t p = 1; p < parts.count; ++p) {
      for (int64_t j = 0; j < width; ++j) partial[0][j] = r_.Merge(partial[0][j], partial[p][j]);
    }
    r_.Finish(partial[0], width, shape_.axis, index);
  }

  const R& r_;
  ChunkSource source_;
  const ReduceSplit& shape_;
  const void* x_;
};

}  // namespace oneflow_lite
