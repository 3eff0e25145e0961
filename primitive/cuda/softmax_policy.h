// SPDX-License-Identifier: Apache-2.0
//
// Which kernel serves which width: the one table of numbers behind the softmax dispatch.
//
//   tier      a row lives in                       widths (packs of 16 bytes of output)
//   group     registers of 4 to 32 lanes           up to kGroupPacks * 32
//   block     registers of a block                 up to kBlockPacks * kRegisterThreads
//   shared    shared memory, in its own dtype      up to what a block of the device may have
//   split     nowhere: two launches, many blocks   few wide rows, where workspace is given
//   wide      nowhere: read twice by one block     everything else
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "primitive/cuda/launch.cuh"

namespace oneflow_lite {
namespace cuda {

struct SoftmaxPolicy {
  static constexpr int kGroupThreads = 128;     // 4 warps: many small blocks fill an SM evenly
  static constexpr int kGroupPacks = 8;         // per lane; up to 64 registers of values in half
  static constexpr int kRegisterThreads = 512;  // at most; two such blocks per SM
  static constexpr int kMaxThreads = 1024;      // of the shared and wide kernels
  static constexpr int kSharedThreads = 512;    // where two rows fit in an SM's shared memory
  static constexpr int kUnroll = 4;             // packs in flight per thread of a looping kernel
  static constexpr int kSplitThreads = 256;
  static constexpr int kMaxChunks = 1024;             // per row
  static constexpr int64_t kSplitMinPacks = 4096;     // narrower rows fit a block's registers
  static constexpr int kBlocksPerMultiprocessor = 4;  // of a split launch

  // Packs a thread of the block tier holds: 32 registers of values, forward and backward.
  template <int N>
  static constexpr int kBlockPacks = N == 8 ? 4 : 8;
  static constexpr int kBlockPacksBackward = 4;
};

enum class SoftmaxTier { kGroup, kBlock, kShared, kSplit, kWide };

struct SoftmaxPlan {
  SoftmaxTier tier = SoftmaxTier::kWide;
  int lanes = 32, packs = 1;  // group: lanes per row, packs per lane
  int threads = 0;            // block, shared, wide
  size_t shared = 0;          // bytes of dynamic shared memory
  int chunks = 1;             // split: blocks per row
};

// How a row is split among blocks; 1 where splitting does not pay.
inline int SplitChunks(int64_t rows, int64_t packs, const DeviceLimits& limits) {
  using P = SoftmaxPolicy;
  const int64_t blocks = int64_t{P::kBlocksPerMultiprocessor} * limits.multiprocessors;
  if (packs < P::kSplitMinPacks || rows * 2 > limits.multiprocessors) return 1;
  const int64_t by_work = packs / (P::kSplitThreads * P::kUnroll);
  int64_t chunks = blocks / rows < by_work ? blocks / rows : by_work;
  if (chunks > P::kMaxChunks) chunks = P::kMaxChunks;
  return static_cast<int>(chunks > 1 ? chunks : 1);
}

// `pack` elements make 16 bytes of output; the block tier holds block_packs packs per thread; a
// pack takes shared_per_pack bytes of shared memory, scratch_bytes are needed besides.
inline SoftmaxPlan ChooseSoftmaxPlan(int64_t rows, int64_t cols, int pack, int block_packs,
                                     size_t shared_per_pack, size_t scratch_bytes,
                                     bool has_workspace, const DeviceLimits& limits) {
  using P = SoftmaxPolicy;
  const int64_t packs = cols / pack;  // whole packs of the longest row body
  SoftmaxPlan plan;
  if (packs <= 32 * P::kGroupPacks) {
    plan.tier = SoftmaxTier::kGroup;
    plan.lanes = 4;
    while (plan.lanes < 32 && plan.lanes < packs) plan.lanes *= 2;
    while (int64_t{plan.lanes} * plan.packs < packs) plan.packs *= 2;
    return plan;
  }
  plan.chunks = has_workspace ? SplitChunks(rows, packs, limits) : 1;
  if (plan.chunks > 1) {
    plan.tier = SoftmaxTier::kSplit;
    return plan;
  }
  if (packs <= int64_t{block_packs} * P::kRegisterThreads) {
    plan.tier = SoftmaxTier::kBlock;
    plan.threads = static_cast<int>(CeilDiv(CeilDiv(packs, block_packs), 32) * 32);
    return plan;
  }
  plan.threads = P::kMaxThreads;
  const int64_t shared =
      packs * static_cast<int64_t>(shared_per_pack) + static_cast<int64_t>(scratch_bytes);
  if (shared <= limits.shared_per_block) {
    plan.tier = SoftmaxTier::kShared;
    plan.shared = static_cast<size_t>(shared);
    // The system takes 1 KB of shared memory per block.
    if (2 * (shared + 1024) <= limits.shared_per_multiprocessor) plan.threads = P::kSharedThreads;
    return plan;
  }
  plan.shared = scratch_bytes;
  return plan;
}

}  // namespace cuda
}  // namespace oneflow_lite
