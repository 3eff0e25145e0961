// SPDX-License-Identifier: Apache-2.0
//
// How the norms' backward in two passes (norm_backward_passes.cuh) is laid out, and when it serves.
#pragma once

#include <stdint.h>

#include "primitive/cuda/norm_policy.h"

namespace oneflow_lite {
namespace cuda {

struct NormPassesPolicy {
  // 16-bit rows of which x and dy stay in the L2 between the passes, as measured on an H200 in us
  // beside few bytes' blocks, wide rows and teams. layer_norm: 28 for 46 at 500 x 12477, 23 for 29
  // at 800 x 5001, 26 for 47 at 140 x 33333, 31 for 37 at 100 x 59408, 36 for 49 at 40 x 131080, 42
  // for 48 at 800 x 12477; beyond, 41 for 37 at 1100 x 8191, 51 for 46 at 600 x 20003, 73 for 63 at
  // 300 x 50257, 26 for 25 at 1500 x 3333; fewer, 20 for 18 at 200 x 12477. rms_norm: 27 for 32 at
  // 500 x 12477, 23 for 26 at 200 x 20003, 30 for 34 at 40 x 131080; beyond, 40 for 35 at 800 x
  // 12477, 28 for 25 at 200 x 32768, 30 for 26 at 800 x 8191. float32 rms_norm loses: 54 for 32 at
  // 500 x 12477.
  static constexpr int kLeastRows = 40, kMostRows = 1200, kLeastCols = 3000;
  static constexpr int kWide = 30000;  // columns, from which on fewer bytes are enough
  static constexpr int64_t LeastBytes(int64_t cols) { return cols < kWide ? 5 << 20 : 7 << 19; }
  static constexpr int64_t MostBytes(int64_t cols, const NormTraits& t) {
    const bool narrow = cols < 10000;
    if (t.kinds == 1) return narrow ? 0 : t.aligned ? 21 << 19 : 12 << 20;
    return narrow ? 13 << 20 : cols < 65536 ? 39 << 19 : 26 << 20;
  }
  static constexpr int kWarps = 8;       // of a block, at most
  static constexpr int kTileRows = 512;  // of a block's warps side by side together, at most
  static constexpr int kStripes = 64;    // of a row in the first pass, while blocks are narrow
  static constexpr int kSumWaves = 1;    // of blocks, about
  static constexpr int kGradientWaves = 2;
};

// The tiles of a pass, a block each: some rows that start alike by some columns.
struct NormPassTiles {
  int wide = 1, tall = 1;  // warps of a block, side by side and one above the other
  int stripes = 1;         // blocks side by side
  int rows = 1;            // of a block, `period` apart
  int groups = 1;          // blocks that share out the rows that start alike
};

struct NormPassesPlan {
  int period = 1;  // rows after which rows start alike
  NormPassTiles sums, gradient;

  int64_t units() const { return int64_t{sums.groups} * period; }
  int64_t BlocksOf(const NormPassTiles& tiles) const {
    return int64_t{tiles.stripes} * tiles.groups * period;
  }
};

// Tiles of about `blocks` blocks of up to `wide` warps side by side and `tall` of these above each
// other; a warp has `columns`.
inline NormPassTiles LayOutTiles(int64_t alike, int64_t cols, int64_t columns, int wide, int tall,
                                 int64_t blocks) {
  using P = NormPassesPolicy;
  NormPassTiles tiles;
  const int64_t warps = CeilDiv(cols, columns);
  tiles.stripes = static_cast<int>(CeilDiv(warps, wide));
  tiles.wide = static_cast<int>(CeilDiv(warps, tiles.stripes));
  tiles.tall = P::kWarps / tiles.wide;
  if (tiles.tall > tall) tiles.tall = tall;
  if (tiles.tall > alike) tiles.tall = static_cast<int>(alike);
  const int64_t groups = blocks > tiles.stripes ? blocks / tiles.stripes : 1;
  int64_t rows = CeilDiv(CeilDiv(alike, groups), tiles.tall) * tiles.tall;
  const int64_t most = P::kTileRows / tiles.wide / tiles.tall * tiles.tall;
  if (rows > most) rows = most;
  tiles.rows = static_cast<int>(rows);
  tiles.groups = static_cast<int>(CeilDiv(alike, rows));
  return tiles;
}

// The layout of any rows x cols; blocks: of each kernel that a multiprocessor holds.
inline NormPassesPlan LayOutPasses(int64_t rows, int64_t cols, int pack, int packs_of_lane,
                                   int blocks, const DeviceLimits& limits) {
  using P = NormPassesPolicy;
  NormPassesPlan plan;
  while (cols * plan.period % pack != 0) plan.period *= 2;
  const int64_t alike = CeilDiv(rows, plan.period);
  const int64_t columns = int64_t{32} * packs_of_lane * pack, reach = cols + pack - 1;
  const int64_t wave = CeilDiv(int64_t{blocks} * limits.multiprocessors, plan.period);
  int wide = 1;
  while (wide < P::kWarps && CeilDiv(reach, columns * wide) > P::kStripes) wide *= 2;
  plan.sums = LayOutTiles(alike, reach, columns, wide, P::kWarps, P::kSumWaves * wave);
  plan.gradient = LayOutTiles(alike, reach, columns, P::kWarps, 1, P::kGradientWaves * wave);
  return plan;
}

// False: the rows are not for it.
inline bool PlanPasses(int64_t rows, int64_t cols, int packs_of_lane, int blocks,
                       const NormTraits& t, const DeviceLimits& limits, NormPassesPlan* plan) {
  using P = NormPassesPolicy;
  const int64_t bytes = rows * cols * (16 / t.pack);
  if (t.pack != 8 || rows < P::kLeastRows || rows > P::kMostRows || cols < P::kLeastCols ||
      bytes < P::LeastBytes(cols) || bytes > P::MostBytes(cols, t)) {
    return false;
  }
  *plan = LayOutPasses(rows, cols, t.pack, packs_of_lane, blocks, limits);
  return true;
}

}  // namespace cuda
}  // namespace oneflow_lite
