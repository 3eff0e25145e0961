// SPDX-License-Identifier: Apache-2.0
//
// Which kernel serves which row (primitive/cuda/rows/policy.h, rows/whole_policy.h,
// norms/whole_policy.h, fused/policy.h). Needs no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "primitive/cuda/fused/odd_policy.h"
#include "primitive/cuda/norms/whole_policy.h"
#include "primitive/cuda/rows/policy.h"
#include "primitive/cuda/rows/whole_policy.h"

namespace oneflow_lite {
namespace {

// The threads that a plan launches hold every pack of a row, and no kernel is asked
// for more than it has.
TEST(RowPolicyTest, EveryPlanHoldsItsRow) {
  cuda::DeviceLimits limits{};
  limits.multiprocessors = 132, limits.shared_per_block = 227 << 10;
  limits.clusters = limits.cooperative = true;
  cuda::RowTraits t{};
  t.bytes_per_pack = 16, t.scratch_bytes = 4096;
  const auto step = [](int64_t packs) { return packs < 3000 ? 1 : packs < 100000 ? 97 : 77777; };
  for (const int pack : {2, 4, 8}) {
    for (const int most_packs : {2, 4, 8}) {
      for (const int blocks : {1, 8, 16}) {
        for (const int64_t rows : {1, 3, 60, 67, 68, 99, 100000}) {
          // Shifted rows have blocks of another shape in clusters.
          const bool shifted = rows == 3 || rows == 68 || rows == 99;
          t.shifted = shifted, t.cluster_packs = 8, t.cluster_threads = 256;
          t.pack = pack, t.group_packs = most_packs > 4 ? 8 : 4, t.block_packs = most_packs;
          t.block_threads = 512;
          t.register_cluster = t.shared_cluster = blocks;
          t.is_double = pack == 2;
          for (int64_t packs = 1; packs < 3000000; packs += step(packs)) {
            const cuda::RowPlan plan = cuda::ChooseRowPlan(rows, packs * pack, t, limits);
            if (plan.tier == cuda::RowTier::kGroup) {
              ASSERT_LE(packs, plan.lanes * plan.packs) << packs;
              ASSERT_LE(plan.packs, t.group_packs) << packs;
            } else if (plan.tier == cuda::RowTier::kBlock) {
              ASSERT_LE(packs, int64_t{plan.blocks_per_row} * plan.threads * plan.packs) << packs;
              const bool clustered = plan.blocks_per_row > 1;
              ASSERT_LE(plan.packs, clustered && shifted ? t.cluster_packs : t.block_packs)
                  << packs;
              const int most = shifted ? t.cluster_threads : t.block_threads;
              ASSERT_LE(plan.threads, clustered ? most : t.block_threads) << packs;
              ASSERT_EQ(plan.threads % 32, 0) << packs;
            } else if (plan.tier == cuda::RowTier::kShared) {
              // A block alone keeps all of its row; those of a cluster read the rest again.
              if (plan.blocks_per_row == 1) ASSERT_EQ(plan.kept, packs);
              ASSERT_LE(plan.kept * plan.blocks_per_row, packs + plan.blocks_per_row - 1) << packs;
              ASSERT_LE(plan.shared, limits.shared_per_block) << packs;
              ASSERT_GE(plan.shared, plan.kept * t.bytes_per_pack + t.scratch_bytes) << packs;
            } else if (plan.tier == cuda::RowTier::kWide) {
              ASSERT_TRUE(blocks == 1 || t.is_double) << packs << " packs, rows " << rows;
            }
          }
        }
      }
    }
  }
}

// Of every kernel's clusters; and whether there is one for a block of gradients.
struct MostBlocks {
  int cluster;
  bool pair = true;
  int operator()(cuda::WholeKernel kernel) const {
    return kernel == cuda::WholeKernel::kPair && !pair ? 0 : cluster;
  }
};

// Whether the plan's threads of `shape` hold the row, and every block has a part of it.
template <class Shape>
void ExpectFits(const cuda::WholePlan& plan, Shape shape, int64_t packs) {
  EXPECT_LE(plan.threads, shape.kThreads) << packs;
  EXPECT_EQ(plan.threads % 32, 0) << packs;
  EXPECT_TRUE(shape.kCluster ? plan.threads == shape.kThreads : plan.blocks_per_row == 1);
  const int64_t share = cuda::CeilDiv(packs, plan.blocks_per_row);
  EXPECT_LE(share, plan.threads * shape.kPacks) << packs;
  EXPECT_LT(share * (plan.blocks_per_row - 1), packs) << packs;
}

// The same of whole rows, and whatever is wider than a group of lanes has a kernel while blocks are
// enough for it, of which none is without packs.
TEST(RowPolicyTest, EveryWholePlanHoldsItsRow) {
  cuda::DeviceLimits limits{};
  limits.multiprocessors = 132;
  for (const int pack : {4, 8}) {
    for (const int cluster : {1, 8, 16}) {
      for (const int64_t rows : {1, 66, 67, 100000}) {
        const int64_t one = pack == 8   ? 2048
                            : rows > 67 ? 4096
                                        : 3072,
                      few = pack == 8 ? cluster : std::min(cluster, 8);
        for (int64_t packs = 129; packs < 40000; packs += packs < 5000 ? 1 : 97) {
          const cuda::WholePlan plan =
              cuda::ChooseWholePlan({1, pack, true, rows, packs}, limits, MostBlocks{cluster});
          const bool held = rows > 66 ? packs <= one || (cluster > 1 && packs <= cluster * 2048)
                                      : packs <= 512 || (cluster > 1 && packs <= few * 1024);
          ASSERT_EQ(plan.kernel != cuda::WholeKernel::kNone, held) << packs;
          ASSERT_LE(plan.blocks_per_row, cluster) << packs;
          if (plan.kernel == cuda::WholeKernel::kTwo) ExpectFits(plan, cuda::WholeTwo{}, packs);
          if (plan.kernel == cuda::WholeKernel::kThree) ExpectFits(plan, cuda::WholeThree{}, packs);
          if (plan.kernel == cuda::WholeKernel::kEight) ExpectFits(plan, cuda::WholeEight{}, packs);
          if (plan.kernel == cuda::WholeKernel::kFew) ExpectFits(plan, cuda::WholeFew{}, packs);
          if (plan.kernel == cuda::WholeKernel::kWide) ExpectFits(plan, cuda::WholeWide{}, packs);
          if (plan.kernel != cuda::WholeKernel::kFour) continue;
          if (pack == 4) ExpectFits(plan, cuda::WholeFour<4>{}, packs);
          if (pack == 8) ExpectFits(plan, cuda::WholeFour<8>{}, packs);
        }
      }
    }
  }
}

// The same of rows of doubles.
TEST(RowPolicyTest, EveryDoublePlanHoldsItsRow) {
  using cuda::WholeKernel;
  cuda::DeviceLimits limits{};
  limits.multiprocessors = 132;
  for (const int cluster : {1, 8, 16}) {
    for (const int64_t rows : {1, 66, 67, 100000}) {
      for (int64_t packs = 257; packs < 80000; packs += packs < 5000 ? 1 : 97) {
        const cuda::WholePlan plan =
            cuda::ChooseWholePlan({1, 2, true, rows, packs}, limits, MostBlocks{cluster});
        ASSERT_LE(plan.blocks_per_row, cluster) << packs;
        const bool clustered = cluster > 1 && packs <= cluster * 4096;
        if (rows > 66 && packs > 2048 && clustered) ASSERT_NE(plan.kernel, WholeKernel::kNone);
        if (packs > 4096 && !clustered) ASSERT_EQ(plan.kernel, WholeKernel::kNone) << packs;
        if (plan.kernel == WholeKernel::kLone) ExpectFits(plan, cuda::WholeLone{}, packs);
        if (plan.kernel == WholeKernel::kHeavy) ExpectFits(plan, cuda::WholeHeavy{}, packs);
        if (plan.kernel == WholeKernel::kHeaviest) ExpectFits(plan, cuda::WholeHeaviest{}, packs);
      }
    }
  }
}

// The same of gradients, whose packs beyond registers have room in shared memory. Rows of a block,
// and few that a grid may have, are left to the kernels of all rows.
template <int kPack>
void ExpectPairPlans() {
  using cuda::WholeKernel;
  cuda::DeviceLimits limits{};
  limits.multiprocessors = 132, limits.shared_per_block = 227 << 10;
  const int64_t one = kPack == 2 ? 1024 : 2048, pair = kPack == 2 ? 0 : kPack == 4 ? 2048 : 1024;
  for (const bool whole : {false, true}) {
    for (const bool in_block : {false, kPack > 2}) {
      for (const int cluster : {1, 8, 16}) {
        for (const int64_t rows : {1, 66, 67, 100000}) {
          for (int64_t packs = 257; packs < 200000; packs += packs < 5000 ? 1 : 97) {
            const cuda::WholePlan plan = cuda::ChooseWholePlan(
                {2, kPack, whole, rows, packs}, limits, MostBlocks{cluster, in_block});
            ASSERT_LE(plan.blocks_per_row, cluster) << packs;
            const bool few = rows <= 66, clustered = packs > (few ? 512 : one);
            if (!few && whole && in_block && packs <= pair) {
              ASSERT_EQ(plan.kernel, WholeKernel::kPair) << packs;
            } else if (cluster == 1 || !clustered || (few && packs > 65536)) {
              ASSERT_EQ(plan.kernel, WholeKernel::kNone) << packs;
            } else if (packs <= cluster * 256 * 32) {
              ASSERT_NE(plan.kernel, WholeKernel::kNone) << packs;
            }
            if (plan.kernel == WholeKernel::kHeavy) ExpectFits(plan, cuda::WholeHeavy{}, packs);
            if constexpr (kPack > 2) {
              if (plan.kernel == WholeKernel::kPair) {
                ExpectFits(plan, cuda::WholePair<kPack>{}, packs);
              }
            }
            if (plan.kernel != WholeKernel::kParked) continue;
            using Shape = cuda::Parked<kPack>;
            const int64_t bytes = cuda::ParkedBytes(kPack, packs, plan.blocks_per_row);
            const int64_t held = Shape::kMostPacks + bytes / 32;
            ASSERT_EQ(plan.threads, Shape::kThreads) << packs;
            ASSERT_LE(packs, plan.blocks_per_row * held) << packs;
            ASSERT_LE(bytes + 4096, limits.shared_per_block) << packs;
          }
        }
      }
    }
  }
}
TEST(RowPolicyTest, EveryPairPlanHoldsItsRow) {
  ExpectPairPlans<2>();
  ExpectPairPlans<4>();
  ExpectPairPlans<8>();
}

// The same of the norms; where a block can hold a row, or a cluster, there is a plan.
TEST(NormPolicyTest, EveryWholePlanHoldsItsRow) {
  cuda::DeviceLimits limits{};
  limits.multiprocessors = 132;
  for (const bool mixed : {false, true}) {
    const int lane_packs = mixed ? 96 : 128;
    for (const int most_packs : {4, 8}) {
      for (const int cluster : {1, 8, 16}) {
        for (const int threads : {256, 512}) {
          for (const int64_t rows : {1, 3, 60, 263, 264, 1024, 3000, 100000}) {
            const int alone = most_packs == 8 ? threads - 64 : threads;
            const cuda::NormWholeTraits t{lane_packs,  threads,      alone,      2 * threads,
                                          3 * threads, rows != 3000, most_packs, cluster,
                                          1,           mixed};
            for (int64_t packs = 1; packs < 70000; packs += packs < 5000 ? 1 : 97) {
              cuda::NormWholePlan plan;
              if (!cuda::PlanNormWhole(rows, packs, t, limits, &plan)) {
                ASSERT_GT(packs, int64_t{cluster} * threads * most_packs) << packs;
                continue;
              }
              ASSERT_EQ(plan.lanes > 0, packs <= lane_packs) << packs;
              const int64_t holders =
                  plan.lanes > 0 ? plan.lanes : int64_t{plan.blocks} * plan.threads;
              ASSERT_LE(packs, holders * plan.packs) << packs;
              ASSERT_LE(plan.packs, most_packs) << packs;
              ASSERT_LE(plan.blocks, cluster) << packs;
              ASSERT_LE(plan.threads, threads) << packs;
              ASSERT_EQ(plan.threads % 32, 0) << packs;
              const bool lone_most = plan.lanes == 0 && plan.blocks == 1 && cluster > 1 &&
                                     plan.packs == cuda::NormWholePolicy::kMostPacks;
              if (lone_most) ASSERT_LE(plan.threads, alone) << packs;
              // As many as 4 a thread hold have a kernel for weights of float32.
              if (lone_most && mixed) ASSERT_GT(packs, threads * 4) << packs;
            }
          }
        }
      }
    }
  }
}

// Rows in slices: every thread has all packs but the last, and a cluster of 16 takes nearly any
// row.
TEST(NormPolicyTest, EverySlicedPlanHoldsItsRow) {
  using P = cuda::NormSlicedPolicy;
  int planned = 0, asked = 0;
  for (const int cluster : {1, 8, 16}) {
    for (int64_t packs = 1; packs < 140000; packs += packs < 9000 ? 1 : 37) {
      cuda::NormSlicedPlan plan;
      const bool found = cuda::PlanNormSliced(packs, cluster, &plan);
      if (cluster == 16 && packs > 20000 && packs < 120000) planned += found, ++asked;
      if (!found) continue;
      const int64_t last = packs - int64_t{plan.blocks - 1} * plan.slice;
      ASSERT_LE(plan.blocks, cluster) << packs;
      ASSERT_LE(plan.threads, P::kThreads) << packs;
      ASSERT_EQ(plan.threads % 32, 0) << packs;
      ASSERT_LE(plan.slice, plan.threads * P::kPacks) << packs;
      ASSERT_LE(last, plan.slice) << packs;
      ASSERT_GE(last, plan.threads * P::kSurePacks) << packs;
    }
  }
  EXPECT_GT(planned, asked * 49 / 50);
}

// Every alike'th row lies alike where groups of lanes stay, and the grid reaches every row.
void CheckLanes(const cuda::HeldPlan& plan, int64_t rows, int alike,
                const cuda::DeviceLimits& limits) {
  const int64_t blocks = plan.LaneBlocks(rows, alike, limits), groups = plan.threads / plan.lanes;
  ASSERT_GE(plan.resident, 1);
  if (!plan.stays) {
    ASSERT_GE(blocks * groups, rows);
    return;
  }
  ASSERT_EQ(blocks * groups % alike, 0);
  ASSERT_LT(blocks, int64_t{plan.resident} * limits.multiprocessors + alike);
}

// The same of fused rows, whatever their fusion; up to half a cluster's registers there is a plan.
TEST(FusedPolicyTest, EveryPlanHoldsItsRow) {
  cuda::DeviceLimits limits{};
  limits.multiprocessors = 132, limits.shared_per_multiprocessor = 228 << 10;
  limits.shared_per_block = 227 << 10;
  for (const int blocks : {1, 8, 16}) {
    for (const int value_bytes : {16, 32}) {
      for (const bool is_lean : {false, true}) {
        for (const int64_t rows : {1, 3, 60, 400, 100000}) {
          for (int64_t packs = 1; packs < 100000; packs += packs < 3000 ? 1 : 97) {
            const int common_bytes = packs % 5 * 16;  // 64 are too many
            const int late_bytes = packs % 2 * 16;
            const bool is_norm = rows == 60 || packs % 3 == 0;
            cuda::HeldTraits t{value_bytes, is_lean, is_norm, blocks, common_bytes, late_bytes};
            cuda::HeldPlan plan;
            t.is_single = packs % 9 > 0;
            t.is_centred = is_norm && packs % 11 < 5;
            t.is_log = packs % 7 == 0;
            t.stores_costly = packs % 4 == 0;
            if (!cuda::PlanHeldRows(rows, packs, t, limits, &plan)) {
              ASSERT_GT(packs, int64_t{blocks} * 512 * 4) << packs;
              continue;
            }
            const int64_t threads =
                plan.lanes > 0 ? plan.lanes : int64_t{plan.blocks} * plan.threads;
            ASSERT_LE(packs, threads * plan.packs) << packs;
            ASSERT_GT(packs, threads * (plan.packs - 1)) << packs;
            ASSERT_EQ(plan.full, packs == threads * plan.packs) << packs;
            ASSERT_LE(plan.blocks, blocks) << packs;
            ASSERT_LE(plan.threads, 512) << packs;
            ASSERT_EQ(plan.threads % 32, 0) << packs;
            if (plan.wide) {
              ASSERT_TRUE(is_lean && common_bytes < 64) << packs;
              ASSERT_LE(plan.threads, 256) << packs;
              ASSERT_LE(plan.kept, plan.packs) << packs;
              ASSERT_GE(plan.resident, 1) << packs;
              const int shared = plan.SharedBytes(common_bytes + (plan.rows > 1 ? late_bytes : 0));
              ASSERT_LE(plan.resident * (shared + 1024), 228 << 10) << packs;
              ASSERT_GT(plan.packs, 1) << packs;  // every lane has the first
            } else if (rows == 100000 && blocks == 16 && plan.blocks > 1) {
              ASSERT_FALSE(cuda::IsLean(packs, t) && common_bytes + late_bytes == 0) << packs;
            }
            if (plan.lanes == 0) {
              const bool is_share = !plan.wide && plan.resident > 0;
              ASSERT_LE(plan.packs * (plan.wide ? 8 : value_bytes), is_share ? 256 : 128) << packs;
              // What a multiprocessor's registers hold of rows, where that is planned.
              const int bytes = plan.wide ? 16 * plan.rows : value_bytes;
              const int in_registers = plan.packs - plan.parked;
              const bool is_bare = plan.wide && value_bytes == 16 && common_bytes == 0;
              const int most = (is_bare ? 192 : 160) << 10;
              ASSERT_LE(plan.resident * plan.threads * in_registers * bytes, most) << packs;
              // Costly values of one input wait in shared memory too, where blocks share a row.
              ASSERT_TRUE(plan.parked == 0 || (is_share && t.is_single && plan.blocks > 1))
                  << packs;
              const int shared = plan.SharedBytes(common_bytes);
              if (plan.parked > 0) ASSERT_LE(plan.resident * (shared + 1024), 228 << 10) << packs;
            }
            if (plan.lanes > 0) {
              ASSERT_NO_FATAL_FAILURE(CheckLanes(plan, rows, 1, limits)) << packs;
              ASSERT_FALSE(plan.stays) << packs;
              continue;
            }
            // Two rows at once: what serves them is two operands or three.
            if (plan.rows == 2) ASSERT_GE(common_bytes + late_bytes, 32) << packs;
          }
        }
      }
    }
  }
}

void CheckOddPlan(int pack, bool is_lean, int64_t rows, int64_t cols, int common_bytes,
                  int late_bytes, const cuda::DeviceLimits& limits) {
  const cuda::HeldTraits t{pack == 8 ? 32 : 16, is_lean && pack > 2, rows == 60, 16,
                           common_bytes,        late_bytes,          pack == 2};
  cuda::OddPlan plan;
  if (!cuda::PlanOddRows(rows, cols, pack, t, limits, &plan)) {
    ASSERT_GT(cols, 100000);
    return;
  }
  const cuda::HeldPlan& held = plan.held;
  const int late = held.rows > 1 || held.stays ? late_bytes : 0;
  const int shared = held.SharedBytes(common_bytes + late), operands = common_bytes + late_bytes;
  ASSERT_LE(shared, limits.shared_per_block) << cols;
  ASSERT_GE(held.resident, 1) << cols;
  if (held.lanes > 0) {
    ASSERT_TRUE(plan.pack == pack || pack == 8) << cols;
    const int64_t all = cols / plan.pack, least = all - 1;  // by where a row begins
    ASSERT_LE(all, held.lanes * held.packs) << cols;
    ASSERT_TRUE(held.packs == 1 || least >= held.lanes * (held.packs - 1)) << cols;
    ASSERT_EQ(shared, held.stays ? held.packs * held.threads * operands : 0) << cols;
    ASSERT_LE(held.lanes, 32) << cols;
    ASSERT_FALSE(held.stays && plan.copied) << cols;
    ASSERT_TRUE(operands >= 32 || !plan.copied) << cols;
    ASSERT_NO_FATAL_FAILURE(CheckLanes(held, rows, pack, limits)) << cols;
    return;
  }
  const int64_t threads = int64_t{held.blocks} * held.threads;
  const int64_t least = cols / pack - 3, most = cols / pack - 2;
  ASSERT_LE(most, threads * held.packs) << cols;
  ASSERT_GE(least, threads * (held.packs - 1)) << cols;
  ASSERT_TRUE(plan.copied) << cols;
  ASSERT_EQ(held.parked, 0) << cols;  // there is no such kernel
  ASSERT_TRUE(held.wide || shared == held.ExchangedBytes()) << cols;
  ASSERT_EQ(held.kept, 0) << cols;
  ASSERT_LE(held.resident * held.threads, 1024) << cols;
  ASSERT_TRUE(!held.wide || held.packs > 1) << cols;  // every thread has the first
  // Two rows at once: what serves them is two operands or three, and there are rows enough.
  if (held.rows > 1) {
    ASSERT_TRUE(is_lean && operands >= 32 && operands <= 48) << cols;
    ASSERT_GE(held.Clusters(rows, pack) * held.blocks, 132 * held.resident) << cols;
  }
}

// FusedOddPairKernel's rows: cluster by cluster r and r + N of every 2 N, of which there are all.
TEST(FusedPolicyTest, PairsOfOddRowsAreAllRows) {
  cuda::HeldPlan plan;
  plan.rows = 2;
  for (const int pack : {1, 4, 8}) {
    for (int64_t rows = 1; rows < 70; ++rows) {
      std::vector<int> served(rows);
      for (int64_t c = 0; c < plan.Clusters(rows, pack); ++c) {
        const int64_t row = c / pack * 2 * pack + c % pack;
        ASSERT_LT(row, rows);
        ++served[row];
        if (row + pack < rows) ++served[row + pack];
      }
      ASSERT_EQ(std::count(served.begin(), served.end(), 1), rows) << pack;
    }
  }
}

TEST(FusedPolicyTest, EveryOddPlanHoldsItsRow) {
  cuda::DeviceLimits limits;
  limits.multiprocessors = 132;
  for (const int kib : {99, 227}) {
    limits.shared_per_multiprocessor = (kib + 1) << 10;
    limits.shared_per_block = kib << 10;
    for (const int pack : {2, 4, 8}) {
      for (const bool is_lean : {false, true}) {
        for (const int64_t rows : {1, 60, 100000}) {
          for (int64_t cols = 1; cols < 300000; cols += cols < 9000 ? 1 : 1237) {
            const int common = static_cast<int>(cols % 11 * 16), late = cols % 3 > 0 ? 0 : 16;
            ASSERT_NO_FATAL_FAILURE(CheckOddPlan(pack, is_lean, rows, cols, common, late, limits));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace oneflow_lite
