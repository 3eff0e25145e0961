// SPDX-License-Identifier: Apache-2.0
//
// How the CPU's softmax kernels cut their work: shared by forward and backward. The figures were
// measured on a Zen 5 core (L1 48 KB, L2 1 MB).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "oneflow_lite/core/parallel.h"
#include "primitive/softmax.h"

namespace oneflow_lite {

// A row, or a part of one: its maximum, and the sum of exp(x - max) (of exp(x) where the maximum
// is -inf, so that a masked part merges as 0).
struct RowStats {
  double max;
  double sum;
};

// A thread is worth starting for 32k elements, some 5 us of work.
inline constexpr int64_t kElementsPerThread = 32768;

inline int64_t RowGrain(int64_t cols) { return std::max<int64_t>(1, kElementsPerThread / cols); }

// A long row as parts of equal size, few enough for a table on the stack. The cut depends on the
// length alone, so that the number of threads does not show in the result.
struct RowParts {
  static constexpr int64_t kMax = 128;
  static constexpr int64_t kSmallest = 65536;

  explicit RowParts(int64_t cols)
      : cols(cols),
        size(std::max(kSmallest, (cols + kMax - 1) / kMax)),
        count(static_cast<int>((cols + size - 1) / size)) {}
  int64_t Begin(int64_t i) const { return i * size; }
  int64_t Size(int64_t i) const { return std::min(size, cols - i * size); }

  int64_t cols, size;
  int count;
};

// Whether there are too few rows to go around, and more parts of one than there are rows.
inline bool SplitsRows(const SoftmaxShape& shape) {
  return shape.rows < RowParts(shape.cols).count && shape.rows < NumThreads() && !InSerialRegion();
}

// Where a launch reads and writes more than a last-level cache holds, the output is stored past the
// caches, whose lines need not be read first then. At 65536 x 1024 float32, forward takes 14.8
// instead of 17.8 ms; at 4096 x 1024, backward 0.77 instead of 0.88 ms, or with a reader of dx
// behind it 1.27 instead of 1.32, while forward (34 MB) with a reader of y would lose 0.1 ms.
inline bool StreamsOutput(int64_t touched_bytes) { return touched_bytes >= int64_t{48} << 20; }

// Exponentials of a row that y cannot hold, or should not, wait on the stack.
inline constexpr size_t kRowBuffer = 64 << 10;  // bytes

// The axis kernel's block: at most kAxisBlock columns; kAxisRows rows are read from the cache
// again right after they were read from memory.
inline constexpr int64_t kAxisBlock = 512;
inline constexpr int64_t kAxisRows = 16;

// Columns per block: what keeps `bytes` per column within half of L2, in whole 256-byte pieces;
// where even 64 columns do not fit, long runs are better than a half-kept block.
inline int64_t AxisBlockWidth(int64_t inner, int64_t bytes) {
  constexpr int64_t kCacheBytes = 512 << 10, kPiece = 64;
  const int64_t fitting = kCacheBytes / bytes / kPiece * kPiece;
  return std::min({inner, kAxisBlock, fitting > 0 ? fitting : kAxisBlock});
}

// Calls body(offset, begin, end) in parallel: columns [begin, end) of the slab at element `offset`.
// `item` is the bytes read per element.
template <class Body>
void ForAxisBlocks(const SoftmaxShape& shape, int64_t item, Body body) {
  const int64_t width = AxisBlockWidth(shape.inner, shape.cols * item);
  const int64_t blocks = (shape.inner + width - 1) / width;
  const int64_t grain = std::max<int64_t>(1, kElementsPerThread / (shape.cols * width));
  ParallelFor(shape.rows * blocks, grain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t begin = i % blocks * width;
      body(i / blocks * shape.cols * shape.inner, begin, std::min(begin + width, shape.inner));
    }
  });
}

}  // namespace oneflow_lite
