// SPDX-License-Identifier: Apache-2.0
//
// Which kernel serves rows of whole packs that are wider than a warp's registers: the table of
// numbers behind RowWholeBlockKernel. Others go the way of all rows (row_policy.h).
//
//   kernel  packs per thread  rows of packs of 8 and of 4 elements
//   two     2                 to 1280 packs, 256 packs
//   four    4                 to 2048 packs, 3072 packs
//
// Shares of a copy in half: 3072 columns 1.00 with two packs, 0.98 as one of all rows; 7168: 1.00,
// 0.98; 16384: 0.98 with four, 0.96. float32: 2048 columns 1.00, 0.97; 7168: 0.98, 0.93; 8192:
// 0.99, 0.97. 1024 rows are all on chip at once, so that blocks count: 4096 columns of half 8.1 us
// with two packs, 9.3 as one of all rows, and float32 11.5, 12.4.
#pragma once

#include <stdint.h>

#include "primitive/cuda/device_limits.h"
#include "primitive/cuda/row_policy.h"

namespace oneflow_lite {
namespace cuda {

template <int kPacks_, int kThreads_, int kBlocks_>
struct WholeShape {
  static constexpr int kPacks = kPacks_;      // per thread
  static constexpr int kThreads = kThreads_;  // at most
  static constexpr int kBlocks = kBlocks_;    // per multiprocessor, of so many threads
};
using WholeTwo = WholeShape<2, 1024, 2>;
// Two blocks of the widest rows must fit: packs of 4 or 8 elements leave 40 or 64 registers.
template <int kPack>
using WholeFour = WholeShape<4, kPack == 4 ? 768 : 512, 2>;

enum class WholeKernel { kNone, kTwo, kFour };

struct WholePlan {
  WholeKernel kernel = WholeKernel::kNone;  // none of these serves the row
  int threads = 0;
};

// `pack`: elements in 16 bytes, 4 or 8.
inline WholePlan ChooseWholePlan(int64_t rows, int64_t packs, int pack,
                                 const DeviceLimits& limits) {
  // Few rows get several blocks each.
  if (rows * 2 <= limits.multiprocessors && packs > 2 * RowPolicy::kFewPacks) return {};
  if (packs <= (pack == 8 ? 1280 : 256)) {
    return {WholeKernel::kTwo, static_cast<int>(CeilDiv(packs, 64) * 32)};
  }
  if (packs <= (pack == 8 ? 2048 : 3072)) {
    return {WholeKernel::kFour, static_cast<int>(CeilDiv(packs, 128) * 32)};
  }
  return {};
}

}  // namespace cuda
}  // namespace oneflow_lite
