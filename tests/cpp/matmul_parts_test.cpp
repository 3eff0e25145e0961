// SPDX-License-Identifier: Apache-2.0
//
// Parts of a matrix product: they cover the result once, are worth a thread, and are of equal size.
#include "primitive/cpu/matmul_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace oneflow_lite {
namespace {

constexpr int64_t kSizes[] = {1, 2, 15, 16, 17, 31, 33, 64, 82, 96, 100, 1000};

TEST(MatmulPartsTest, CoverTheResultOnce) {
  for (const int64_t m : kSizes) {
    for (const int64_t n : kSizes) {
      for (const int64_t k : {int64_t{1}, int64_t{64}, int64_t{5000}}) {
        for (const int64_t threads : {1, 2, 3, 4, 7, 64}) {
          const MatmulParts parts(m, n, k, threads);
          ASSERT_GE(parts.count(), 1);
          ASSERT_LE(parts.count(), threads);
          std::vector<int> seen(static_cast<size_t>(m * n));
          for (int64_t i = 0; i < parts.count(); ++i) {
            const MatmulPart p = parts[i];
            ASSERT_GT(p.rows, 0);
            ASSERT_GT(p.cols, 0);
            for (int64_t r = p.row; r < p.row + p.rows; ++r) {
              for (int64_t c = p.col; c < p.col + p.cols; ++c)
                ++seen[static_cast<size_t>(r * n + c)];
            }
          }
          ASSERT_EQ(std::count(seen.begin(), seen.end(), 1), m * n)
              << m << " x " << n << " x " << k << " on " << threads;
        }
      }
    }
  }
}

TEST(MatmulPartsTest, ASmallProductIsOnePart) {
  EXPECT_EQ(MatmulParts(64, 64, 64, 2).count(), 1);
  EXPECT_EQ(MatmulParts(128, 128, 32, 2).count(), 2);
  EXPECT_EQ(MatmulParts(128, 128, 31, 2).count(), 1);
  EXPECT_EQ(MatmulParts(128, 128, 128, 64).count(), 8);
}

TEST(MatmulPartsTest, PartsAreAboutEqual) {
  for (const int64_t threads : {2, 3, 4, 8, 16}) {
    for (const auto& [m, n] : {std::pair<int64_t, int64_t>{1024, 96}, {96, 1024}, {4096, 4096}}) {
      const MatmulParts parts(m, n, 384, threads);
      int64_t largest = 0;
      for (int64_t i = 0; i < parts.count(); ++i) {
        largest = std::max(largest, parts[i].rows * parts[i].cols);
      }
      EXPECT_LE(largest * threads, m * n * 5 / 4) << m << " x " << n << " on " << threads;
    }
  }
}

// A row of results and a column: the one long side is cut.
TEST(MatmulPartsTest, VectorsAreCutAlongTheirLength) {
  EXPECT_EQ(MatmulParts(1, 4096, 4096, 4).count(), 4);
  EXPECT_EQ(MatmulParts(4096, 1, 4096, 4).count(), 4);
}

TEST(MatmulPartsTest, SquarePartsWhereThereAreManyThreads) {
  const MatmulPart p = MatmulParts(4096, 4096, 4096, 16)[0];
  EXPECT_EQ(p.rows, 1024);
  EXPECT_EQ(p.cols, 1024);
}

// Of two cuts that cost the same, that by whose parts no two threads write to one line.
TEST(MatmulPartsTest, WholeRowsWhereRowsAndColumnsCostTheSame) {
  const MatmulParts parts(1000, 1000, 16, 2);
  EXPECT_EQ(parts.count(), 2);
  EXPECT_EQ(parts[0].cols, 1000);
  EXPECT_EQ(parts[1].row, 512);
}

}  // namespace
}  // namespace oneflow_lite
