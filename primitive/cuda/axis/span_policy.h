// SPDX-License-Identifier: Apache-2.0
//
// How axis/span.cuh cuts outer x axis x inner, where rows are no whole packs, into shares of
// blocks, by the measurements in docs/lab/36-tuning-another-dim.md.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "primitive/cuda/chip/device_limits.h"

namespace oneflow_lite::cuda {

inline constexpr int kSpanBatch = 4;      // rows: what a thread holds is a multiple
inline constexpr int kSpanReadBatch = 8;  // that it reads at a time where it holds none
inline constexpr int kSpanFan = 8;        // partial results merged at a time
inline constexpr int kSpanBarrierBytes = 16;
inline constexpr int kSpanLineBytes = 128;

// How a block's threads work: each holds its columns' rows, or reads its column's twice, or reads
// words (axis/span_words.cuh).
enum class SpanKind { kHeld, kRead, kWords };
inline constexpr int kSpanWordBatch = 4;  // words that a thread reads at a time

struct AxisSpanPolicy {
  static constexpr int kThreads = 256;
  static constexpr int kMostThreads = 384;     // of a block that shares a slice, but for doubles
  static constexpr int kSpanBytes = 40 << 10;  // of several slices together
  static constexpr int kTileBytes = 56 << 10;  // of a tile
  static constexpr int kRowBytes = 256;        // of a tile's row, at least
  static constexpr int kLeastRowBytes = 64;    // ... where slices are few and short
  static constexpr int kShortBytes = 224 << 10;
  // Slices whose rows stay whole, of columns up to kThreads and kMostThreads; not of doubles.
  static constexpr int kWholeBytes = 1280 << 10, kWideWholeBytes = 640 << 10;
  // Longer slices of float32 than clusters hold, of so many columns, are axis/slab.cuh's.
  static constexpr int kHeldBytes = 3632 << 10, kReadColumns = 640;
  static constexpr int kPartBytes = 56 << 10;  // of a block that shares a slice: four fit
  // ... of doubles, and of few 16-bit columns where so many blocks come to each multiprocessor:
  // three fit
  static constexpr int kLargePartBytes = 74 << 10, kNarrowColumns = 64, kManyBlocks = 3;
  static constexpr int kMostBytes = 110 << 10;  // ... where they would be too many: two fit
  static constexpr int kFewParts = 8;           // more are slower than larger ones
  static constexpr int kRows = 32;              // of a thread that reads them twice, about
  static constexpr int kTurns = 32;             // ... of one that reads words, about
  static constexpr int kLeastTurns = 8;         // ... at least
  static constexpr int kBlocks = 4;             // per multiprocessor, at least, where there is work
};

// Rows that a thread holds in at most 64 registers (128 in float64).
template <int kInputs>
inline constexpr int kSpanHeld = kInputs == 1 ? 24 : 16;

// What of an algorithm and its type the choice depends on.
struct AxisSpanTraits {
  int element_bytes, inputs;
  int held;  // rows of a column that a thread can hold
  int word;  // elements of a word; 1: there are none
  int stat_bytes;
  int most_parts;  // blocks of a cluster
};

// A tensor of outer x axis x inner as the kernel sees it.
struct AxisSpan {
  int64_t outer = 0, inner = 0;
  int axis = 0;
  int slices = 1;                    // of a block
  int columns = 1;                   // ... of each slice
  int tiles = 1;                     // of so many columns, in a slice
  int parts = 1;                     // blocks that share the rows of a slice, a cluster
  int ways = 1;                      // threads of a block that share a column
  int rows = 0;                      // of a thread; some have one more
  bool padded = false;               // slices are apart on chip
  int pitch = 0, slice_pitch = 0;    // elements from row to row and slice to slice on chip
  int buffer_bytes = 0;              // of an input on chip
  int turn = 1, words = 1;           // elements of one or two rows that are whole words
  float per_slice = 0, per_row = 0;  // one over the threads of a slice, and of one way
  float per_step = 0;                // one over the elements of all ways' turns

#ifdef __CUDACC__
  // Divisions of numbers below 2^20, rounded down.
  __device__ int SliceOf(int t) const { return static_cast<int>((t + 0.5f) * per_slice); }
  __device__ int WayOf(int member) const { return static_cast<int>((member + 0.5f) * per_row); }
  __device__ int TurnOf(int at) const { return static_cast<int>((at + 0.5f) * per_step); }
#endif
};

struct AxisSpanPlan {
  AxisSpan span;
  SpanKind kind = SpanKind::kRead;
  int threads = 0;
  int64_t blocks = 0;
  size_t shared = 0;
};

namespace internal {

// Elements between slices by which what neighbouring threads touch in neighbouring slices lies in
// other banks.
inline int PadOfSlices(const AxisSpan& s, bool alike, const AxisSpanTraits& t) {
  constexpr int kBanks = 128;  // bytes
  const int touched = s.ways * s.columns * t.element_bytes, pack = 16 / t.element_bytes;
  if (!alike || s.slices == 1 || touched > kBanks / 2) return 0;
  for (int pad = 0; pad < kBanks / 16; ++pad) {
    const int apart = (s.axis * s.columns * t.element_bytes + 16 * pad) % kBanks;
    if (apart >= touched && kBanks - apart >= touched) return pad * pack;
  }
  return 0;
}

// Elements of the rows that a slice's words go over in turn.
inline int TurnOfSpan(const AxisSpan& s, const AxisSpanTraits& t) {
  return s.columns % t.word == 0 ? s.columns : t.word * s.columns;
}

// Of a block that shares a slice.
inline int MostSpanThreads(const AxisSpanTraits& t) {
  return t.element_bytes < 8 ? AxisSpanPolicy::kMostThreads : AxisSpanPolicy::kThreads;
}

// The rest of the plan where slices, columns, tiles and parts are chosen.
inline bool FitAxisSpan(AxisSpanPlan* plan, bool alike, const AxisSpanTraits& t,
                        const DeviceLimits& limits) {
  using P = AxisSpanPolicy;
  AxisSpan& s = plan->span;
  const int pack = 16 / t.element_bytes, part_rows = s.axis / s.parts;
  const int64_t longest = CeilDiv(s.axis, s.parts);
  // Words stay words where rows in memory and on chip differ by whole packs.
  s.pitch = s.columns;
  if (s.tiles > 1) {
    s.pitch = static_cast<int>(CeilDiv(s.columns, pack) * pack + pack + s.inner % pack);
  }
  plan->kind = s.parts == 1 && s.axis <= t.held ? SpanKind::kHeld
               : s.slices > 1 && t.word > 1     ? SpanKind::kWords
                                                : SpanKind::kRead;
  const bool words = plan->kind == SpanKind::kWords;
  s.turn = words ? TurnOfSpan(s, t) : s.columns;
  s.words = words ? s.turn / t.word : s.columns;
  const int width = s.slices * s.words;  // threads, with one way
  int64_t ways = 1;
  if (plan->kind != SpanKind::kHeld) {
    const int64_t most = Max(P::kThreads / width, 1);
    const int64_t turns = CeilDiv(longest * s.columns, s.turn);
    ways = Min(CeilDiv(turns, words ? P::kLeastTurns : P::kRows), most);
    if (words && most < CeilDiv(turns, P::kTurns)) ways = CeilDiv(turns, P::kTurns);
  }
  s.ways = static_cast<int>(ways);
  s.slice_pitch = s.axis * s.pitch + (words ? 0 : PadOfSlices(s, alike, t));
  s.padded = s.slice_pitch != s.axis * s.pitch;
  const int64_t elements = s.slices > 1 ? int64_t{s.slices} * s.slice_pitch : longest * s.pitch;
  s.buffer_bytes = static_cast<int>(
      CeilDiv(elements * t.element_bytes + kSpanLineBytes + 16, kSpanLineBytes) * kSpanLineBytes);
  s.rows = part_rows / s.ways;
  const int most_threads = s.parts > 1 ? MostSpanThreads(t) : P::kThreads;
  plan->threads = static_cast<int>(Min(CeilDiv(width * ways, 32) * 32, most_threads));
  if (s.parts > 1 && width > plan->threads) return false;
  s.per_slice = 1.0f / static_cast<float>(s.ways * s.words);
  s.per_row = 1.0f / static_cast<float>(s.words);
  s.per_step = 1.0f / static_cast<float>(s.ways * s.turn);
  plan->blocks = CeilDiv(s.outer, s.slices) * s.tiles * s.parts;
  // Of threads that share columns, and of a cluster's blocks.
  const int64_t stats = words ? int64_t{s.slices} * (s.columns + s.ways * s.turn)
                              : (s.ways > 1 || s.parts > 1 ? plan->threads : 0) +
                                    (s.parts > 1 ? s.parts * s.columns : 0);
  const int64_t shared =
      int64_t{s.buffer_bytes} * t.inputs + kSpanBarrierBytes + stats * t.stat_bytes;
  plan->shared = static_cast<size_t>(shared);
  return shared <= limits.shared_per_block;
}

// Columns of a tile of a slice of `slice` bytes; as many as there are, or more: none are cut. Where
// short slices are few, no more than leave every multiprocessor a tile.
inline int64_t ColumnsOfTile(const AxisSpan& s, int64_t slice, const AxisSpanTraits& t,
                             const DeviceLimits& limits) {
  using P = AxisSpanPolicy;
  const bool few = s.outer < limits.multiprocessors && slice <= P::kShortBytes;
  if (s.inner * t.element_bytes <= 2 * P::kRowBytes) return s.inner;
  // Whole rows come and go in bulk, where a block has a thread for each column.
  const int most = s.inner <= P::kThreads ? P::kWholeBytes : P::kWideWholeBytes;
  const bool whole = t.element_bytes < 8 && s.inner <= MostSpanThreads(t) && slice <= most;
  if (whole && t.most_parts > 1 && !few) return s.inner;
  if (t.element_bytes == 4 && s.inner <= P::kReadColumns && slice > P::kHeldBytes) return s.inner;
  if (slice <= P::kTileBytes && !few) return s.inner;
  int64_t columns = Max(P::kTileBytes / (slice / s.inner), P::kRowBytes / t.element_bytes);
  if (columns > P::kThreads) columns -= columns % P::kThreads;
  if (few) {
    const int64_t spread = CeilDiv(s.outer * s.inner, limits.multiprocessors);
    const int64_t narrowest = P::kLeastRowBytes / t.element_bytes;
    columns = Min(columns, Max(spread, narrowest));
  }
  return columns;
}

}  // namespace internal

// False where a slice is too much for the blocks of a cluster. alike: the output lies within 16
// bytes as the last input does.
inline bool ChooseAxisSpan(AxisSpanPlan* plan, int64_t outer, int64_t axis, int64_t inner,
                           bool alike, const AxisSpanTraits& t, const DeviceLimits& limits) {
  using P = AxisSpanPolicy;
  if (axis > 1 << 20 || inner > 1 << 30) return false;
  *plan = AxisSpanPlan();
  AxisSpan& s = plan->span;
  s.outer = outer;
  s.axis = static_cast<int>(axis);
  s.inner = inner;
  s.columns = static_cast<int>(inner);
  const int64_t bytes = int64_t{t.element_bytes} * t.inputs, slice = axis * inner * bytes;
  const int64_t columns = alike ? internal::ColumnsOfTile(s, slice, t, limits) : inner;
  if (slice <= P::kSpanBytes && columns >= inner) {
    const int64_t most = CeilDiv(outer, int64_t{P::kBlocks} * limits.multiprocessors);
    int64_t slices = Min(P::kSpanBytes / slice, most);
    // Threads of several whole turns of a block, or as many as have one for every so many rows.
    if (axis > t.held && t.word > 1) {
      const int turn = internal::TurnOfSpan(s, t);
      const int64_t threads = CeilDiv(CeilDiv(axis * inner, turn), P::kTurns) * (turn / t.word);
      const int64_t turns = slices * threads / P::kThreads;
      if (turns > 0 && turns * P::kThreads >= threads) slices = turns * P::kThreads / threads;
    } else if (axis > P::kRows) {
      slices = Min(slices, Max(P::kThreads / (CeilDiv(axis, P::kRows) * inner), 1));
    } else if (const int64_t turns = slices * inner / P::kThreads;
               turns > 1 && turns * P::kThreads >= inner) {
      slices = turns * P::kThreads / inner;
    }
    s.slices = static_cast<int>(slices);
    return internal::FitAxisSpan(plan, alike, t, limits);
  }
  if (columns < inner) {
    s.tiles = static_cast<int>(CeilDiv(inner, columns));
    s.columns = static_cast<int>(columns);
  }
  const auto fits = [&](int parts, int64_t most) {
    for (s.parts = 1; s.parts <= parts && s.parts <= t.most_parts; s.parts *= 2) {
      if (axis < s.parts || CeilDiv(axis, s.parts) * s.columns * bytes > most) continue;
      if (internal::FitAxisSpan(plan, alike, t, limits)) return true;
    }
    return false;
  };
  if (t.element_bytes == 2 && s.columns <= P::kNarrowColumns &&
      fits(P::kFewParts, P::kLargePartBytes) &&
      plan->blocks >= int64_t{P::kManyBlocks} * limits.multiprocessors) {
    return true;
  }
  const int part_bytes = t.element_bytes < 8 ? P::kPartBytes : P::kLargePartBytes;
  return fits(P::kFewParts, part_bytes) || fits(P::kFewParts, P::kMostBytes) ||
         fits(t.most_parts, P::kMostBytes) || fits(t.most_parts, limits.shared_per_block);
}

}  // namespace oneflow_lite::cuda
