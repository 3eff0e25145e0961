// SPDX-License-Identifier: Apache-2.0
//
// How the CPU's row kernels (softmax, norms) share out rows among threads. The figures were
// measured on a Zen 5 core (L1 48 KB, L2 1 MB).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "oneflow_lite/core/parallel.h"

namespace oneflow_lite {

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
inline bool SplitsRows(int64_t rows, int64_t cols) {
  return rows < RowParts(cols).count && rows < NumThreads() && !InSerialRegion();
}

// Where a launch reads and writes more than a last-level cache holds, the output is stored past the
// caches, whose lines need not be read first then. At 65536 x 1024 float32, softmax takes 14.8
// instead of 17.8 ms; at 4096 x 1024, its backward 0.77 instead of 0.88 ms, or with a reader of dx
// behind it 1.27 instead of 1.32, while forward (34 MB) with a reader of y would lose 0.1 ms.
inline bool StreamsOutput(int64_t touched_bytes) { return touched_bytes >= int64_t{48} << 20; }

}  // namespace oneflow_lite
