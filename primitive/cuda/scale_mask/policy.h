// SPDX-License-Identifier: Apache-2.0
//
// Which kernel of scale_mask/scale_mask_softmax.cuh serves which rows: the numbers, and what chose
// them.
//
// Shares of a copy of scores and mask, half: 1024 columns under a mask of half 0.98, of float32
// 0.96, a boolean one 0.99; before there were kernels for whole rows under additive masks 0.75,
// 0.3. 2048 causal columns 0.94 in blocks that ask nothing about a row, 0.80 in others.
#pragma once

#include <stdint.h>

#include "primitive/cuda/rows/whole_policy.h"

namespace oneflow_lite {
namespace cuda {

struct ScaleMaskPolicy {
  static constexpr int kGroupPacks = 128;  // of a row for the lanes of a warp; a block has more
  // Matrices that share a mask of at least so many bytes take turns of so many rows. 8 heads of
  // 4096 x 4096 in half: under a mask of half 0.96 (0.73 in the order of memory), of float32 0.87
  // (0.59), a boolean one 0.96 (0.84); at 1024 x 1024 0.97 (0.98).
  static constexpr int64_t kTiledBytes = 6 << 20;
  static constexpr int64_t kTileRows = 128;

  // Other rows. Half, under a boolean mask: 77 columns 0.78 column by column, 0.70 in packs; 197
  // 0.56, 0.64; 1025 0.55, 0.76 (before: 0.56, 0.39, 0.56). float32: 77 0.87, 0.81; 577 0.99, 0.91.
  // Without a mask rows of half beyond 96 packs are faster in blocks: 1025 causal columns 0.75,
  // 0.66. From 256 packs on so are those under masks of 8 or 16 bits: 3001 0.57, 0.46.
  static constexpr int kShortColumns = 144,
                       kColumns = 1088;  // column by column, of 16 bits or more
  static constexpr int kPlainPacks = 96, kFormedPacks = 256;
};

// Blocks that hold whole rows. Doubles need registers for their exponential besides.
template <class C>
using MaskedBlock = WholeShape<4, sizeof(C) == 8 ? 256 : 512, sizeof(C) == 8 ? 3 : 2>;
// Blocks of rows that lie anyhow.
template <class C, int kPack>
struct FormedBlock : WholeShape<kPack == 8 ? 2 : 4, sizeof(C) == 8 ? 256 : 320, 2> {
  static constexpr bool kAligned = true;  // the algorithm asks itself
};

}  // namespace cuda
}  // namespace oneflow_lite
