// SPDX-License-Identifier: Apache-2.0
//
// How the CPU's softmax kernels cut their work: shared by forward and backward. Rows are shared out
// as row_plan.h says.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "primitive/cpu/row_plan.h"
#include "primitive/softmax.h"

namespace oneflow_lite {

// A row, or a part of one: its maximum, and the sum of exp(x - max) (of exp(x) where the maximum
// is -inf, so that a masked part merges as 0).
struct RowStats {
  double max;
  double sum;
};

inline bool SplitsRows(const SoftmaxShape& shape) { return SplitsRows(shape.rows, shape.cols); }

// Exponentials of a row that y cannot hold, or should not, wait on the stack.
inline constexpr size_t kRowBuffer = 64 << 10;  // bytes

// How many rows take their steps together, at most `most`: the steps of a row wait for one another,
// those of different rows do not. 2 KB of them: at 49152 x 128 bfloat16 log_softmax runs 1.3 and
// softmax's backward 1.7 times as fast; at 1024 columns float32 4 rows would cost 20 %, because
// reading and writing alternate too seldom.
inline int64_t RowsTogether(int64_t row_bytes, int64_t most) {
  return std::clamp<int64_t>((2 << 10) / row_bytes, 1, most);
}

// From so many bytes on (twice as many where two inputs are read), the lines of the next row are
// asked for while this one is worked on; else this row's own, which costs nothing. The processor
// fetches shorter rows in time by itself, and requests for them take the place of others: softmax's
// backward of 2048 x 1024 float32 in the L3 cache runs at 55 GB/s without and at 35 with them, that
// of 16384 x 4096 bfloat16 from memory at 31 and 40.
inline constexpr size_t kLongRow = 4096;

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
