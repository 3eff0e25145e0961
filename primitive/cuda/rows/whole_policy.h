// SPDX-License-Identifier: Apache-2.0
//
// Which kernel serves rows of whole packs that are wider than a warp's registers, and gradients
// that lie alike: the table behind RowWholeBlockKernel and RowParkedKernel. Others go the way of
// all rows (rows/policy.h).
#pragma once

#include <stdint.h>

#include "primitive/cuda/chip/device_limits.h"
#include "primitive/cuda/rows/policy.h"

namespace oneflow_lite::cuda {

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
// kPacks are what registers hold; the others wait in shared memory. Three blocks with 8 packs of 8
// elements spill (0.79 of an addition at 262144 columns), two with fewer than 12 of 4 are slower.
constexpr int ParkedPacksOf(int pack) { return pack == 8 ? 7 : pack == 4 ? 12 : 10; }
inline constexpr int kParkedThreads = 256;
template <int kPack>
using Parked = WholeShape<ParkedPacksOf(kPack), kParkedThreads, kPack == 8 ? 3 : 2, true>;

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

// How many rows there are: too few for half the device, more, or 64 for each multiprocessor.
enum class RowCount { kAny, kFew, kMany, kThousands };
// Blocks of a cluster: a power of two that fills the device; as WideBlocks says; all that there
// may be, where clusters of kHeavy are too small.
enum class WholeBlocks { kOne, kSpread, kTight, kAll };

// A line of the table: rows of `inputs` tensors in packs of `pack` elements, from `least` packs on
// and up to `most` for each block.
struct WholeRows {
  int inputs, pack;
  RowCount rows;
  int64_t least, most;
  WholeKernel kernel;
  WholeBlocks blocks;
  int most_blocks, packs, threads;  // of a cluster; of a thread, of a block
};
template <class Shape>
constexpr WholeRows Line(int inputs, int pack, RowCount rows, int64_t least, WholeKernel kernel,
                         int64_t most = Shape::kMostPacks, WholeBlocks blocks = WholeBlocks::kTight,
                         int most_blocks = 16) {
  if (!Shape::kCluster) blocks = WholeBlocks::kOne;
  return {inputs, pack,   rows,        least,         most,
          kernel, blocks, most_blocks, Shape::kPacks, Shape::kThreads};
}

// The first line that fits serves. On the right what was measured on an H200: at so many columns
// the share of a copy (of an addition, where there are two inputs) or microseconds, with the kernel
// and with what there was without it: * one of all rows, others by name.
// clang-format off
inline constexpr WholeRows kWholeRows[] = {
    // inputs, pack, rows, from so many packs, kernel, up to so many if fewer than it holds
    Line<WholeTwo>(1, 8, RowCount::kFew, 0, WholeKernel::kTwo, 512),
    Line<WholeTwo>(1, 4, RowCount::kFew, 0, WholeKernel::kTwo, 256),
    Line<WholeFour<4>>(1, 4, RowCount::kFew, 0, WholeKernel::kFour, 512),
    // 64 x 65536 9.5 us, 11.0*; 8 x 16384 5.4 us, 6.0*
    Line<WholeFew>(1, 8, RowCount::kFew, 513, WholeKernel::kFew, 1024, WholeBlocks::kSpread),
    Line<WholeFew>(1, 4, RowCount::kFew, 513, WholeKernel::kFew, 1024, WholeBlocks::kSpread, 8),
    // 40000 rows: 8192 1.00, 0.98 four; 5120 1.00, 0.985 four; 1024 rows lose 3 to 9 %
    Line<WholeThree>(1, 4, RowCount::kThousands, 1024, WholeKernel::kThree),
    // 40000 rows: 14336 1.00, 0.98 wide
    Line<WholeEight>(1, 4, RowCount::kThousands, 3073, WholeKernel::kEight),
    // 3072 1.00, 0.98*; 1024 x 4096, all on chip at once 8.1 us, 9.3* (float32 11.5 us, 12.4*)
    Line<WholeTwo>(1, 8, RowCount::kMany, 0, WholeKernel::kTwo),
    Line<WholeTwo>(1, 4, RowCount::kMany, 0, WholeKernel::kTwo, 256),
    // 16 bits 7168 1.00, 0.98*; 16384 0.98, 0.96*; float32 2048 1.00, 0.97*; 7168 0.98, 0.93*
    Line<WholeFour<8>>(1, 8, RowCount::kMany, 0, WholeKernel::kFour),
    Line<WholeFour<4>>(1, 4, RowCount::kMany, 0, WholeKernel::kFour),
    // many small blocks with many packs: 50256 0.98, 0.95*; 262144 0.98, 0.96* (bfloat16 0.92*)
    Line<WholeWide>(1, 8, RowCount::kMany, 0, WholeKernel::kWide),
    Line<WholeWide>(1, 4, RowCount::kMany, 0, WholeKernel::kWide),
    // doubles: 5120 0.94, 0.78*; 16384 0.97, 0.82*; 131072 0.68, 0.49*
    Line<WholeLone>(1, 2, RowCount::kMany, 2049, WholeKernel::kLone),
    Line<WholeHeavy>(1, 2, RowCount::kMany, 2049, WholeKernel::kHeavy),
    Line<WholeHeaviest>(1, 2, RowCount::kAny, 2049, WholeKernel::kHeaviest, 4096, WholeBlocks::kAll),
    // gradients without exponentials: 1024 x 7168 0.96, 0.94*
    Line<WholePair<8>>(2, 8, RowCount::kMany, 0, WholeKernel::kPair, 1024),
    Line<WholePair<4>>(2, 4, RowCount::kMany, 0, WholeKernel::kPair),
    // 262144 1.00, 0.93*; 100000 1.00 in 7 blocks, 0.89 in 8*
    Line<WholeHeavy>(2, 8, RowCount::kMany, 2049, WholeKernel::kHeavy),
    Line<WholeHeavy>(2, 4, RowCount::kMany, 2049, WholeKernel::kHeavy),
    // others, by ParkedPlan: float32 151936 0.98, 0.75 with a block per multiprocessor; 250002
    // 0.95, 0.78; 262144 0.94, 0.86; 300004 0.93, 0.54 read twice; 16 bits 250002 0.99, 0.88*
};
// clang-format on

// Blocks of a cluster for so many packs, `each` for one. A power of two, unless that leaves much
// empty (docs/lab/02-short-kernels-for-whole-rows.md).
inline int WideBlocks(int64_t packs, int64_t each, int most) {
  const int blocks = LeastBlocks(most, [&](int64_t n) { return packs <= n * each; });
  if (blocks <= 8 && CeilDiv(packs, blocks) * 10 >= each * 7) return blocks;
  return static_cast<int>(CeilDiv(packs, each));
}

// Bytes of shared memory for what threads of Parked<pack> have beyond their registers, of two
// inputs.
inline int64_t ParkedBytes(int pack, int64_t packs, int blocks) {
  const int64_t more = CeilDiv(CeilDiv(packs, blocks), kParkedThreads) - ParkedPacksOf(pack);
  return more <= 0 ? 0 : more * kParkedThreads * 2 * 16;
}

struct WholeProblem {
  int inputs, pack;
  bool whole;  // whether rows are whole packs; of gradients others may be parked
  int64_t rows, packs;
};

inline WholePlan ParkedPlan(const WholeProblem& p, int most, const DeviceLimits& limits) {
  constexpr int64_t kFewPacks = RowPolicy::kFewPacks, kScratch = 4096;
  const bool few = p.rows * 2 <= limits.multiprocessors;
  // One block as all rows, and a grid may have few rows of more.
  const int64_t one = few ? 2 * kFewPacks : p.pack == 2 ? 1024 : 2048;
  const bool grid = few && p.packs >= RowPolicy::kGridMinPacksBesideClusters;
  if (most == 1 || p.packs <= one || grid) return {};
  int64_t blocks = CeilDiv(p.packs, ParkedPacksOf(p.pack) * kParkedThreads);
  if (few) {
    blocks = Max(blocks, LeastBlocks(most, [&](int64_t n) {
                   return p.rows * n * 2 > limits.multiprocessors || p.packs <= n * kFewPacks;
                 }));
  }
  // Of 13 blocks no more clusters have room than of 16.
  if (blocks > 12 || blocks > most) blocks = most;
  const WholePlan plan{WholeKernel::kParked, kParkedThreads, static_cast<int>(blocks)};
  const int64_t bytes = ParkedBytes(p.pack, p.packs, plan.blocks_per_row) + kScratch;
  return bytes <= limits.shared_per_block ? plan : WholePlan{};
}

// most_blocks(kernel): blocks of its clusters, at most, 1 where the device has none; of a kernel
// for blocks 0 where it is not there.
template <class MostBlocks>
WholePlan ChooseWholePlan(const WholeProblem& p, const DeviceLimits& limits,
                          const MostBlocks& most_blocks) {
  const auto many = [&](int64_t blocks) { return p.rows * blocks * 2 > limits.multiprocessors; };
  const bool thousands = p.rows >= int64_t{64} * limits.multiprocessors;
  for (const WholeRows& t : kWholeRows) {
    const bool counts = t.rows == RowCount::kAny || (t.rows == RowCount::kFew) != many(1);
    if (!p.whole || t.inputs != p.inputs || t.pack != p.pack || p.packs < t.least || !counts ||
        (t.rows == RowCount::kThousands && !thousands)) {
      continue;
    }
    if (t.blocks == WholeBlocks::kOne) {
      if (p.packs > t.most || most_blocks(t.kernel) == 0) continue;
      return {t.kernel, static_cast<int>(CeilDiv(p.packs, 32 * t.packs) * 32)};
    }
    const auto most = static_cast<int>(Min(most_blocks(t.kernel), t.most_blocks));
    if (most == 1 || p.packs > most * t.most) continue;
    if (t.blocks == WholeBlocks::kTight) {
      return {t.kernel, t.threads, WideBlocks(p.packs, t.most, most)};
    }
    if (t.blocks == WholeBlocks::kAll) {
      const int64_t heavy = most_blocks(WholeKernel::kHeavy);
      if (heavy == 1 || p.packs <= heavy * WholeHeavy::kMostPacks) continue;
      return {t.kernel, t.threads, most};
    }
    return {t.kernel, t.threads, LeastBlocks(most, [&](int64_t n) {
              return p.packs <= n * t.most && (many(n) || p.packs <= n * RowPolicy::kFewPacks);
            })};
  }
  if (p.inputs == 1) return {};
  return ParkedPlan(p, most_blocks(WholeKernel::kParked), limits);
}

}  // namespace oneflow_lite::cuda
