// SPDX-License-Identifier: Apache-2.0
//
// Which kernel serves which row: the one table of numbers behind the dispatch of the row kernels,
// whose tiers rows/README.md has.
//
// Rows of whole packs, and gradients that lie alike, are beyond the group tier first of all
// rows/whole_policy.h's, where an algorithm has kernels for them. Rows in registers that are not
// read as they are written have groups of 8 to 32 lanes up to kMostColumns columns or 384 in words
// (rows/narrow.cuh), a warp up to 128 packs, then block tiers of shapes of their own
// (ShiftedShape).
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "primitive/cuda/chip/device_limits.h"

namespace oneflow_lite::cuda {

struct RowPolicy {
  static constexpr int kGroupThreads = 128;  // 4 warps: many small blocks fill an SM evenly
  static constexpr int kGroupPacks = 8;      // per lane; up to 64 registers of values in half

  // Rows in the registers of blocks: at most 32 of 64 registers hold values (at 512 threads two
  // blocks per SM, 128 KB of them in flight); see PacksPerThread.
  static constexpr int kBlockPacks = 8;                // per thread, of 16 bytes each
  static constexpr int kRegisterThreads = 512;         // at most
  static constexpr int kClusterRegisterThreads = 256;  // while 16 blocks are enough
  // Few rows: a block's part has at least so many packs, two a thread; a cluster costs 1 us, so one
  // block alone takes twice as many. 8 x 16384 in half: 5.4 us, 6.5 with 8 packs a thread.
  static constexpr int kFewPacks = 256, kFewThreads = 256;
  static constexpr int kUnroll = 4;  // packs in flight per thread of a looping kernel
  static constexpr int kWideThreads = 1024;

  // One block with its row in shared memory: two per SM, so that one stores while the other loads.
  static constexpr int kSharedThreads = 512, kSharedBlocks = 2, kSharedBytes = 110 << 10;
  // Blocks of a cluster wait for each other: three per SM hide more of it, at smaller shares. Where
  // their parts are larger, the rest is read again, which the L2 has of not too wide rows. Two
  // blocks with kSharedBytes each serve parts from there to kMostOfTwoBytes, and doubles, of which
  // no more have registers (docs/lab/29-wider-than-registers.md).
  static constexpr int kClusterThreads = 384, kClusterBlocks = 3, kClusterBytes = 58 << 10;
  static constexpr int64_t kMostOfTwoBytes = 256 << 10;
  // Of rows that so many blocks would keep, clusters of more that fill the device are faster than
  // the whole grid (docs/lab/61-which-tiers-earn-their-lines.md).
  static constexpr int kFewClusterBlocks = 8;

  static constexpr int kGridThreads = 1024;
  static constexpr int kMaxChunks = 1024;  // of a row, in the grid tier
  // A grid barrier costs more than narrower rows; more than a cluster where there are clusters.
  static constexpr int64_t kGridMinPacks = 16384, kGridMinPacksBesideClusters = 65537;
};

// Of a block that keeps rows in registers, and of those that keep them in shared memory, alone and
// in clusters. Doubles need registers for their exponential besides.
template <class C>
struct BlockBounds {
  static constexpr bool kDouble = sizeof(C) == 8;
  static constexpr int kThreads = RowPolicy::kRegisterThreads / (kDouble ? 2 : 1);
  static constexpr int kBlocks = kDouble ? 3 : 2;  // per SM
  static constexpr int kSharedThreads = kDouble ? 384 : RowPolicy::kSharedThreads;
  static constexpr int kClusterBlocks = RowPolicy::kClusterBlocks - (kDouble ? 1 : 0);
};

enum class RowTier { kGroup, kBlock, kShared, kGrid, kWide };

// What of an algorithm the choice depends on.
struct RowTraits {
  int pack;                  // elements in 16 bytes of output
  int bytes_per_pack;        // shared memory that a pack needs to stay on chip
  int scratch_bytes;         // shared memory needed besides
  int group_packs;           // that a lane of the group tier holds, at most
  int block_packs;           // that a thread of the block tier holds
  int block_threads;         // of the block tier, at most
  bool shifted = false;      // rows/shifted.cuh: as many packs a thread as a block's hold, and
  int cluster_packs = 0;     // block_packs of a cluster's blocks
  int cluster_threads = 0;   // ... and their threads, at most
  int register_cluster = 1;  // blocks that may hold a row in their registers together
  int shared_cluster = 1;    // ... in their shared memory; 1 where the device has no clusters
  bool is_double = false;    // what is computed in
  bool has_workspace = false;
};

struct RowPlan {
  RowTier tier = RowTier::kWide;
  int lanes = 32, packs = 1;  // group: lanes per row, packs per lane; block: packs per thread
  int threads = 0;            // of a block, other tiers
  size_t shared = 0;          // bytes of dynamic shared memory
  int blocks_per_row = 1;     // block and shared (more than one: a cluster), grid
  int64_t kept = 0;           // grid, and shared by a cluster: packs that a block keeps
};

// Blocks that share a row in the grid tier; 1 where it does not pay. The blocks must all be
// resident at once: one per multiprocessor.
inline int GridChunks(int64_t rows, int64_t packs, const DeviceLimits& limits) {
  using P = RowPolicy;
  const int64_t least = limits.clusters ? P::kGridMinPacksBesideClusters : P::kGridMinPacks;
  if (!limits.cooperative || packs < least || rows * 2 > limits.multiprocessors) return 1;
  return static_cast<int>(Min(limits.multiprocessors / rows, P::kMaxChunks));
}

// Of many rows in the registers of one block each: the packs of a thread that leave the fewest of
// an SM's registers empty, for rows of up to `most` packs.
struct PacksEach {
  int pack;
  int64_t most;
  int each;
};
// clang-format off
inline constexpr PacksEach kPacksEach[] = {
    //  shares of a copy on an H200: columns  8 packs  6      4
    {4, INT64_MAX, 4},                 // 3072   0.969  0.971  0.989
    {8, 384, 8},
    {8, 1408, 6},                      // 8192   0.970  0.992  0.981 (10000: 0.972, 0.991, 0.938)
    {8, 1536, 4},                      // 12288  0.960  0.960  0.983
    {8, 1792, 6},                      // 14336  0.968  0.981  0.896
};                                     // 16384  0.976         0.948 (wider ones: 8)
// clang-format on
inline int PacksPerThread(int pack, int64_t packs) {
  for (const PacksEach& t : kPacksEach) {
    if (t.pack == pack && packs <= t.most) return t.each;
  }
  return 8;
}

// A group of lanes per row. Several packs per lane before more lanes: fewer steps to reduce.
inline RowPlan GroupPlan(int64_t packs) {
  RowPlan plan;
  plan.tier = RowTier::kGroup;
  int slots = 4;
  while (slots < packs) slots *= 2;
  plan.packs = slots <= 8 ? 1 : slots <= 32 ? 2 : slots <= 128 ? 4 : RowPolicy::kGroupPacks;
  plan.lanes = slots / plan.packs;
  return plan;
}

// Smaller blocks where a cluster has enough of them, and no more blocks than it takes.
inline int ShiftedBlocks(int64_t packs, const RowTraits& t) {
  const int64_t most = int64_t{t.cluster_packs} * t.cluster_threads;
  const int64_t small = CeilDiv(packs, most / 2), large = CeilDiv(packs, most);
  return static_cast<int>(small <= t.register_cluster ? small : Min(large, t.register_cluster));
}

namespace internal {

// What rows of `packs` packs come to in each tier, beyond the group tier.
struct RowTiers {
  int64_t rows, packs;
  const RowTraits& t;
  const DeviceLimits& limits;

  // Packs that each thread of the block tier may hold.
  int64_t PacksOf(int64_t blocks) const {
    return blocks > 1 && t.shifted ? t.cluster_packs : t.block_packs;
  }
  bool InRegisters(int64_t blocks) const {
    const bool own = blocks > 1 && t.shifted;
    return packs <= blocks * PacksOf(blocks) * (own ? t.cluster_threads : t.block_threads);
  }
  // Shared memory of each of so many blocks that keep a row there.
  int64_t Share(int64_t blocks) const {
    return CeilDiv(packs, blocks) * t.bytes_per_pack + t.scratch_bytes;
  }
  // Few rows get more blocks each, until they fill half the device.
  bool Many(int64_t blocks) const { return rows * blocks * 2 > limits.multiprocessors; }
  bool Fills(int64_t blocks) const {
    return Many(blocks) || packs <= (blocks == 1 ? 2 : blocks) * RowPolicy::kFewPacks;
  }

  RowPlan Block(int blocks) const {
    RowPlan plan;
    plan.tier = RowTier::kBlock;
    plan.blocks_per_row = blocks;
    const int64_t warps = CeilDiv(packs, int64_t{blocks} * 32);  // of one pack a thread
    int64_t taken = CeilDiv(warps, PacksOf(blocks));
    if (!Many(1)) {
      taken = Max(taken, Min(CeilDiv(warps, 2), RowPolicy::kFewThreads / 32));
    } else if (blocks == 1) {
      const int wanted = t.shifted ? t.block_packs : PacksPerThread(t.pack, packs);
      const int64_t more = CeilDiv(warps, Min(wanted, t.block_packs));
      if (more * 32 <= t.block_threads) taken = more;
    }
    plan.packs = static_cast<int>(CeilDiv(warps, taken));
    plan.threads = static_cast<int>(taken * 32);
    return plan;
  }
  // Blocks whose registers hold a row; more than InRegisters allows where none do.
  int BlocksOfRegisters() const {
    const int threads = t.shifted ? t.cluster_threads : RowPolicy::kClusterRegisterThreads;
    const int held = LeastBlocks(t.register_cluster, [&](int64_t blocks) {
      return packs <= blocks * PacksOf(blocks) * threads && Fills(blocks);
    });
    return t.shifted && held > 1 && Many(1) ? ShiftedBlocks(packs, t) : held;
  }
  // Shared memory of each of so many blocks of a cluster, where more clusters are to follow.
  int64_t ClusterBytes(int blocks) const {
    using P = RowPolicy;
    const int64_t share = Share(blocks);
    const bool two = t.is_double || (share > P::kSharedBytes && share <= P::kMostOfTwoBytes);
    return Min(two ? P::kSharedBytes : P::kClusterBytes, limits.shared_per_block);
  }
  // In so many bytes of shared memory each, at most.
  RowPlan Shared(int blocks, int64_t most) const {
    RowPlan plan;
    plan.tier = RowTier::kShared;
    plan.blocks_per_row = blocks;
    const int alone =
        t.is_double ? BlockBounds<double>::kSharedThreads : BlockBounds<float>::kSharedThreads;
    plan.threads = blocks > 1 ? RowPolicy::kClusterThreads : alone;
    plan.kept = Min(CeilDiv(packs, blocks), (most - t.scratch_bytes) / t.bytes_per_pack);
    plan.shared = static_cast<size_t>(plan.kept * t.bytes_per_pack + t.scratch_bytes);
    return plan;
  }
  RowPlan Grid(int chunks) const {
    RowPlan plan = Shared(chunks, limits.shared_per_block);
    plan.tier = RowTier::kGrid;
    plan.threads = RowPolicy::kGridThreads;
    return plan;
  }
  RowPlan Wide() const {
    RowPlan plan;
    plan.threads = RowPolicy::kWideThreads;
    plan.shared = static_cast<size_t>(t.scratch_bytes);
    return plan;
  }
};

}  // namespace internal

inline RowPlan ChooseRowPlan(int64_t rows, int64_t cols, const RowTraits& t,
                             const DeviceLimits& limits) {
  using P = RowPolicy;
  const int64_t packs = cols / t.pack;  // whole packs of the longest row body
  if (packs <= 32 * t.group_packs) return GroupPlan(packs);
  const internal::RowTiers tiers{rows, packs, t, limits};
  if (tiers.Fills(1)) {
    if (tiers.InRegisters(1)) return tiers.Block(1);
    // A block has 99 KB on sm_86, sm_89 and sm_120.
    const int64_t most = Min(limits.shared_per_block, P::kSharedBytes);
    if (t.register_cluster == 1 && tiers.Share(1) <= most) return tiers.Shared(1, most);
  }
  constexpr int kFew = P::kFewClusterBlocks;
  const bool fill = t.shared_cluster > kFew && tiers.Many(kFew) &&
                    tiers.Share(kFew) <= limits.shared_per_block &&
                    (!t.is_double || tiers.Share(t.shared_cluster) <= P::kSharedBytes);
  const int chunks = t.has_workspace && !fill ? GridChunks(rows, packs, limits) : 1;
  if (chunks == 1 || (t.shared_cluster == 1 && tiers.Fills(1))) {
    const int held = tiers.BlocksOfRegisters();
    if (tiers.InRegisters(held) && (held > 1 || t.shared_cluster == 1)) return tiers.Block(held);
    const int blocks = LeastBlocks(t.shared_cluster, [&](int blocks) {
      return tiers.Share(blocks) <= P::kClusterBytes && tiers.Fills(blocks);
    });
    // One block per SM could not store one row while it loads another.
    const bool alone = rows * blocks <= limits.multiprocessors;
    if (t.shared_cluster > 1) {
      if (alone) return tiers.Shared(blocks, limits.shared_per_block);
      // Of doubles the rest had better be read again by single blocks, too.
      if (!t.is_double || tiers.Share(blocks) <= P::kSharedBytes) {
        return tiers.Shared(blocks, tiers.ClusterBytes(blocks));
      }
    } else if (tiers.Share(blocks) <= limits.shared_per_block) {
      return tiers.Shared(blocks, limits.shared_per_block);
    }
  }
  return chunks > 1 ? tiers.Grid(chunks) : tiers.Wide();
}

}  // namespace oneflow_lite::cuda
