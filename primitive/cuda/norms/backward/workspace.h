// SPDX-License-Identifier: Apache-2.0
//
// How much a launch of the norms' backward leaves in its workspace at most, whatever its pointers,
// and with them its plan, turn out to be.
#pragma once

#include "primitive/cuda/norms/backward/columns_policy.h"
#include "primitive/cuda/norms/backward/wide_policy.h"

namespace oneflow_lite {
namespace cuda {

// Parts of the gradients of weight and bias: one of each unit, of which there is a block or a few
// per multiprocessor, or as many fewer as a row has slices. Rows that start otherwise between
// multiples of 16 bytes add at most a pack's elements (AlignUnits, NormWideRows).
inline int64_t MostNormParts(int64_t rows, int64_t cols, const NormTraits& t,
                             const DeviceLimits& limits) {
  const int64_t packs = PacksOfRow(cols, t), slices = CeilDiv(packs, NormPolicy::kBlockPacks);
  int64_t blocks = slices > 1 ? 1 : BlocksPerMultiprocessor(CeilDiv(packs, t.many), rows, limits);
  const bool narrow = packs <= 32 * NormPolicy::kNarrowPacks;
  if (narrow && blocks < NormPolicy::kNarrowBlocks) blocks = NormPolicy::kNarrowBlocks;
  const bool columns = cols <= NormColumnsPolicy::MaxCols(t.pack);
  if (columns && blocks < NormColumnsPolicy::kMostBlocks) blocks = NormColumnsPolicy::kMostBlocks;
  const int64_t units = blocks * limits.multiprocessors / slices;
  return (units < 1 ? 1 : units < rows ? units : rows) + t.pack;
}

// Bytes of a row's sums beside them: of chunks that a first kernel adds up (PlanSlices), which is
// not asked where a block has room for its rows; or of slices that exchange them.
inline int64_t MostNormSumBytes(int64_t rows, int64_t cols, int64_t bytes, const NormTraits& t,
                                const DeviceLimits& limits) {
  constexpr int kRoomy = 224 << 10;
  if (PacksOfRow(cols, t) <= NormPolicy::kThreads && limits.shared_per_block >= kRoomy) return 0;
  const int64_t chunks = int64_t{NormPolicy::kSumBlocks} * limits.multiprocessors;
  const int64_t first = (rows > chunks ? rows : chunks) * bytes;
  const int64_t slices = int64_t{limits.multiprocessors} * NormWidePolicy::kExchangeBytes;
  return CeilDiv(first > slices ? first : slices, 16) * 16;
}

}  // namespace cuda
}  // namespace oneflow_lite
