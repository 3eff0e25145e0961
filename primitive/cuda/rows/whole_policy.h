// SPDX-License-Identifier: Apache-2.0
//
// Which kernel serves rows of whole packs that are wider than a warp's registers: the table of
// numbers behind RowWholeBlockKernel. Others go the way of all rows (rows/policy.h).
//
//   kernel  packs per thread  rows of packs of 8 and of 4 elements
//   two     2                 to 1280 packs, 256 packs
//   four    4                 to 2048 packs, 3072 packs
//   three   3                 float32 by the ten thousand: 1024 to 2304 packs
//   eight   8                 the same: 3073 to 4096 packs
//   wide    16                to 2048 packs for each of up to 16 blocks
//   few     4                 too few to fill the device: up to 1024 packs for each of 16, 8 blocks
//
// and rows of two inputs, a gradient's, or of doubles
//
//   pair      3, 4            gradients without exponentials: to 1024 packs, 2048 packs
//   lone      8               doubles: to 4096 packs
//   heavy     8               to 2048 packs for each of up to 16 blocks
//   heaviest  16              doubles: to 4096 packs for each of up to 16 blocks
//   parked    7, 10, 12 or more    gradients in clusters: few, wider, of doubles, or not whole
//
// Shares of a copy in half: 3072 columns 1.00 with two packs, 0.98 as one of all rows; 7168: 1.00,
// 0.98; 16384: 0.98 with four, 0.96. float32: 2048 columns 1.00, 0.97; 7168: 0.98, 0.93; 8192:
// 0.99, 0.97. 40000 rows of float32: 8192 columns 1.00 with three packs, 0.98 with four, 5120 1.00,
// 0.985; 14336 1.00 with eight, 0.98 in clusters; 1024 rows lose 3 to 9 % by that. 1024 rows are
// all on chip at once, so that blocks count: 4096 columns of half 8.1 us with two packs, 9.3 as one
// of all rows, and float32 11.5, 12.4. In clusters many small blocks with many packs: half, 50256
// columns 0.98, 0.95; 262144: 0.98, 0.96, bfloat16 0.98, 0.92. Few rows: 64 x 65536 of half 9.5
// us, 11.0 as one of all rows; 8 x 16384 5.4, 6.0. Gradients, of an addition: 1024 x 7168 of half
// 0.96, 0.94 as one of all rows; 262144 columns of half 1.00, 0.93, 100000 of half 1.00 with 7
// blocks of whole rows, 0.89 with 8 of all rows. Parked: float32, 151936 columns 0.98, 0.75 with
// one block per multiprocessor; 250002 0.95, 0.78; 262144 0.94, 0.86; 300004 0.93, 0.54 read twice;
// half, 250002 0.99, 0.88 as all rows; 100001 0.99, 0.89. Three blocks with 8 packs spill (0.79 at
// 262144), two with fewer than 12 are slower. Doubles: 5120 columns 0.94, 0.78; 16384: 0.97, 0.82;
// 131072: 0.68, 0.49.
#pragma once

#include <stdint.h>

#include "primitive/cuda/chip/device_limits.h"
#include "primitive/cuda/rows/policy.h"

namespace oneflow_lite {
namespace cuda {

template <int kPacks_, int kThreads_, int kBlocks_, bool kCluster_ = false>
struct WholeShape {
  static constexpr int kPacks = kPacks_;      // per thread
  static constexpr int kThreads = kThreads_;  // at most; in clusters just so many
  static constexpr int kBlocks = kBlocks_;    // per multiprocessor, of so many threads
  static constexpr bool kCluster = kCluster_;
  static constexpr int kMostPacks = kPacks * kThreads;  // of a block
};
using WholeTwo = WholeShape<2, 640, 3>;
// Two blocks of the widest rows must fit: packs of 4 or 8 elements leave 40 or 64 registers.
template <int kPack>
using WholeFour = WholeShape<4, kPack == 4 ? 768 : 512, 2>;
using WholeThree = WholeShape<3, 768, 2>;
using WholeEight = WholeShape<8, 512, 2>;
using WholeWide = WholeShape<16, 128, 5, true>;
using WholeFew = WholeShape<4, 256, 6, true>;

// Rows of two inputs, or of doubles, whose exponentials take registers.
template <int kPack>
using WholePair = WholeShape<kPack == 8 ? 3 : 4, 512, 2>;
using WholeLone = WholeShape<8, 512, 1>;
using WholeHeavy = WholeShape<8, 256, 3, true>;
using WholeHeaviest = WholeShape<16, 256, 2, true>;
// kPacks are what registers hold; the others wait in shared memory.
template <int kPack>
using Parked = WholeShape<kPack == 8   ? 7
                          : kPack == 4 ? 12
                                       : 10,
                          256, kPack == 8 ? 3 : 2, true>;

enum class WholeKernel {
  kNone,
  kTwo,
  kThree,
  kFour,
  kEight,
  kWide,
  kFew,
  kPair,
  kLone,
  kHeavy,
  kHeaviest,
  kParked
};

struct WholePlan {
  WholeKernel kernel = WholeKernel::kNone;  // none of these serves the row
  int threads = 0;
  int blocks_per_row = 1;  // more than one: a cluster
};

// Blocks of a cluster for so many packs. A power of two, unless that leaves much empty: 98304
// columns of half in 8 blocks 0.99, in 6 0.98; but 151936 in 16 0.87, in 10 0.99, and 196608 in 16
// 0.97, in 12 0.99.
template <class Shape>
int WideBlocks(int64_t packs, int most) {
  constexpr int kMost = Shape::kMostPacks;
  const int blocks = LeastBlocks(most, [&](int64_t n) { return packs <= n * kMost; });
  if (blocks <= 8 && CeilDiv(packs, blocks) * 10 >= kMost * 7) return blocks;
  return static_cast<int>(CeilDiv(packs, kMost));
}

// `pack`: elements in 16 bytes, 4 or 8. wide_blocks, few_blocks: of a cluster of the two kernels,
// at most; 1 where the device has no clusters.
inline WholePlan ChooseWholePlan(int64_t rows, int64_t packs, int pack, int wide_blocks,
                                 int few_blocks, const DeviceLimits& limits) {
  const auto many = [&](int64_t blocks) { return rows * blocks * 2 > limits.multiprocessors; };
  const auto threads = [&](int packs_per_thread) {
    return static_cast<int>(CeilDiv(packs, 32 * packs_per_thread) * 32);
  };
  constexpr int kFewPacks = RowPolicy::kFewPacks;
  if (!many(1) && packs > 2 * kFewPacks) {
    const int most = pack == 8 || few_blocks < 8 ? few_blocks : 8;
    const int blocks = LeastBlocks(most, [&](int64_t n) {
      return packs <= n * WholeFew::kMostPacks && (many(n) || packs <= n * kFewPacks);
    });
    if (blocks == 1 || packs > blocks * WholeFew::kMostPacks) return {};
    return {WholeKernel::kFew, WholeFew::kThreads, blocks};
  }
  if (pack == 4 && rows >= int64_t{64} * limits.multiprocessors) {
    if (packs >= 1024 && packs <= WholeThree::kMostPacks) return {WholeKernel::kThree, threads(3)};
    if (packs > 3072 && packs <= WholeEight::kMostPacks) return {WholeKernel::kEight, threads(8)};
  }
  if (packs <= (pack == 8 ? 1280 : 256)) return {WholeKernel::kTwo, threads(2)};
  if (packs <= (pack == 8 ? 2048 : 3072)) return {WholeKernel::kFour, threads(4)};
  if (wide_blocks == 1 || packs > wide_blocks * WholeWide::kMostPacks) return {};
  return {WholeKernel::kWide, WholeWide::kThreads, WideBlocks<WholeWide>(packs, wide_blocks)};
}

// Bytes of shared memory for what threads of Parked<kPack> have beyond their registers, of two
// inputs.
template <int kPack>
int64_t ParkedBytes(int64_t packs, int blocks) {
  using Shape = Parked<kPack>;
  const int64_t each = CeilDiv(CeilDiv(packs, blocks), Shape::kThreads);
  return each <= Shape::kPacks ? 0 : (each - Shape::kPacks) * Shape::kThreads * 2 * 16;
}
template <int kPack>
WholePlan ParkedPlan(int64_t rows, int64_t packs, int most, const DeviceLimits& limits) {
  using Shape = Parked<kPack>;
  constexpr int64_t kFewPacks = RowPolicy::kFewPacks, kScratch = 4096;
  const bool few = rows * 2 <= limits.multiprocessors;
  // A grid may have few rows of more.
  if (most == 1 || (few && packs >= RowPolicy::kGridMinPacksBesideClusters)) return {};
  int64_t blocks = CeilDiv(packs, Shape::kMostPacks);
  if (few) {
    const int64_t spread = LeastBlocks(most, [&](int64_t n) {
      return rows * n * 2 > limits.multiprocessors || packs <= n * kFewPacks;
    });
    if (spread > blocks) blocks = spread;
  }
  // Of 13 blocks no more clusters have room than of 16.
  if (blocks > 12 || blocks > most) blocks = most;
  const WholePlan plan{WholeKernel::kParked, Shape::kThreads, static_cast<int>(blocks)};
  const int64_t bytes = ParkedBytes<kPack>(packs, plan.blocks_per_row) + kScratch;
  return bytes <= limits.shared_per_block ? plan : WholePlan{};
}

// The same of rows of two inputs, a gradient's. whole: whether they are whole packs; in_block:
// whether one block may have such a row; heavy_blocks: 1 where the kernel is not there.
template <int kPack>
WholePlan ChoosePairPlan(int64_t rows, int64_t packs, bool whole, bool in_block, int heavy_blocks,
                         int parked_blocks, const DeviceLimits& limits) {
  constexpr int kMost = WholeHeavy::kMostPacks;
  const bool few = rows * 2 <= limits.multiprocessors;
  if (whole && in_block && !few && packs <= (kPack == 8 ? 1024 : 2048)) {
    const int64_t warps = CeilDiv(packs, 32 * WholePair<kPack>::kPacks);
    return {WholeKernel::kPair, static_cast<int>(warps * 32)};
  }
  constexpr int kBlock = kPack == 2 ? kMost / 2 : kMost;
  if (packs <= (few ? 2 * RowPolicy::kFewPacks : kBlock)) return {};  // one block as all rows
  if (whole && !few && heavy_blocks > 1 && packs <= heavy_blocks * kMost) {
    return {WholeKernel::kHeavy, WholeHeavy::kThreads, WideBlocks<WholeHeavy>(packs, heavy_blocks)};
  }
  return ParkedPlan<kPack>(rows, packs, parked_blocks, limits);
}
// The same of rows of doubles.
inline WholePlan ChooseDoublePlan(int64_t rows, int64_t packs, int heavy_blocks,
                                  int heaviest_blocks, const DeviceLimits& limits) {
  constexpr int kMost = WholeHeavy::kMostPacks;
  if (packs <= kMost) return {};
  const bool few = rows * 2 <= limits.multiprocessors;
  if (!few && packs <= WholeLone::kMostPacks) {
    return {WholeKernel::kLone, static_cast<int>(CeilDiv(packs, 32 * WholeLone::kPacks) * 32)};
  }
  if (heavy_blocks == 1) return {};
  if (packs > heavy_blocks * kMost) {
    const bool held = heaviest_blocks > 1 && packs <= heaviest_blocks * WholeHeaviest::kMostPacks;
    if (!held) return {};
    return {WholeKernel::kHeaviest, WholeHeaviest::kThreads, heaviest_blocks};
  }
  if (few) return {};
  return {WholeKernel::kHeavy, WholeHeavy::kThreads, WideBlocks<WholeHeavy>(packs, heavy_blocks)};
}

}  // namespace cuda
}  // namespace oneflow_lite
