// SPDX-License-Identifier: Apache-2.0
//
// How a matrix product is cut for threads: its result into rectangles of about equal size, so that
// each thread's product needs nothing of another's.
//
//   const MatmulParts parts(m, n, k, NumThreads());
//   ParallelFor(parts.count(), 1, ...)   // parts[i] is where part i lies in the result
//
// OpenBLAS's own threads copy operands for each other and wait: two of them take 1.15 times as
// long as one for 1024 x 96 x 384 in float32, two products of half the rows 0.54 times (Zen 4).
// Parts of whole rows are best: where two threads write to the same line of the cache, each waits.
#pragma once

#include <algorithm>
#include <cstdint>

namespace oneflow_lite {

struct MatmulPart {
  int64_t row, rows, col, cols;
};

class MatmulParts {
 public:
  // Multiplications of a part, at least. Two parts of 64 x 64 x 64 take 1.35 times as long as one
  // thread, of 128 x 128 x 128 0.72 times.
  static constexpr int64_t kLeastWork = 1 << 18;
  // Parts begin at multiples of so many rows and columns, as the BLAS's kernels take them.
  static constexpr int64_t kUnit = 16;

  // Of m x n results, each of k products; at most `threads` parts.
  MatmulParts(int64_t m, int64_t n, int64_t k, int64_t threads) : m_(m), n_(n), rows_(m), cols_(n) {
    const int64_t most = std::min(threads, m * n * k / kLeastWork);
    double least = CostOf(m, n);
    for (int64_t down = 1; down <= most; ++down) {
      const int64_t rows = Piece(m, down), cols = Piece(n, most / down);
      if (CostOf(rows, cols) > least) continue;  // of two that cost the same, whole rows
      least = CostOf(rows, cols);
      rows_ = rows, cols_ = cols;
    }
    across_ = (n + cols_ - 1) / cols_;
    count_ = (m + rows_ - 1) / rows_ * across_;
  }

  int64_t count() const { return count_; }

  MatmulPart operator[](int64_t i) const {
    const int64_t row = i / across_ * rows_, col = i % across_ * cols_;
    return {row, std::min(rows_, m_ - row), col, std::min(cols_, n_ - col)};
  }

 private:
  // The BLAS copies its operands first; an element of them takes about as long as 16 products.
  static double CostOf(int64_t rows, int64_t cols) {
    const auto r = static_cast<double>(rows), c = static_cast<double>(cols);
    return r * c + 16 * (r + c);
  }
  // The length of a part where `size` is cut into so many.
  static int64_t Piece(int64_t size, int64_t parts) {
    const int64_t even = (size + parts - 1) / parts;
    return std::min(size, (even + kUnit - 1) / kUnit * kUnit);
  }

  int64_t m_, n_, rows_, cols_, across_ = 1, count_ = 1;
};

}  // namespace oneflow_lite
