// SPDX-License-Identifier: Apache-2.0
//
// The plans of the CUDA row kernels for GPUs other than the H200 that they were measured on: at
// every width they must fit the device. Needs no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "primitive/cuda/axis/policy.h"
#include "primitive/cuda/axis/span_policy.h"
#include "primitive/cuda/norms/backward/few_policy.h"
#include "primitive/cuda/norms/backward/policy.h"
#include "primitive/cuda/norms/policy.h"
#include "primitive/cuda/norms/whole_policy.h"
#include "primitive/cuda/rows/policy.h"
#include "row_boundaries.h"

namespace oneflow_lite {
namespace {

using cuda::CeilDiv;
using cuda::DeviceLimits;

// Multiprocessors, shared memory of a block and of a multiprocessor (CUDA C++ Programming Guide,
// "Compute Capabilities"), clusters.
constexpr DeviceLimits Limits(int multiprocessors, int block_kb, int sm_kb, bool clusters) {
  return {0, multiprocessors, block_kb << 10, sm_kb << 10, clusters, true};
}
constexpr DeviceLimits kDevices[] = {
    Limits(108, 163, 164, false),  // sm_80: A100
    Limits(84, 99, 100, false),    // sm_86: RTX 3090
    Limits(10, 99, 100, false),    // ... the smallest of them
    Limits(128, 99, 100, false),   // sm_89: RTX 4090
    Limits(132, 227, 228, false),  // sm_90 by code for sm_80
    Limits(132, 227, 228, true),   // sm_90: H200
    Limits(148, 227, 228, true),   // sm_100: B200
    Limits(170, 99, 100, true),    // sm_120: RTX 5090
};
constexpr int64_t kRows[] = {1, 7, 8, 9, 40, 66, 200, 5000, 200000};
constexpr int kMostThreads = 1024;

// 1 to 2^28: all narrow ones, then those around powers of two and some between, and vocabularies.
const std::vector<int64_t>& Widths() {
  static const std::vector<int64_t> widths = [] {
    std::vector<int64_t> w = {1000, 32000, 50257, 50304, 55000, 128256, 151936, 202048, 1000003};
    for (int64_t cols = 1; cols < 130; ++cols) w.push_back(cols);
    for (int64_t power = 128; power <= int64_t{1} << 28; power *= 2) {
      for (int64_t eighths : {8, 9, 11, 12, 14}) {
        for (int64_t near : {-1, 0, 1}) w.push_back(power / 8 * eighths + near);
      }
    }
    return w;
  }();
  return widths;
}

// Calls f(limits, rows, cols) for all of them.
template <class F>
void ForAll(F&& f) {
  for (const DeviceLimits& limits : kDevices) {
    for (const int64_t rows : kRows) {
      for (const int64_t cols : Widths()) {
        f(limits, rows, cols);
        if (!testing::Test::HasFailure()) continue;
        FAIL() << rows << " x " << cols << " on " << limits.multiprocessors << " SMs with "
               << limits.shared_per_multiprocessor << " bytes";
      }
    }
  }
}

void ExpectBlocksFit(const DeviceLimits& limits, int64_t threads, int64_t shared) {
  EXPECT_GT(threads, 0);
  EXPECT_LE(threads, kMostThreads);
  EXPECT_EQ(threads % 32, 0);
  EXPECT_GE(shared, 0);
  EXPECT_LE(shared, limits.shared_per_block);
}

// As the launchers of softmax (one input, two for the gradient) and of the norms ask, aligned or
// not.
cuda::RowTraits TraitsOfRows(int element_bytes, int inputs, bool shifted, bool workspace,
                             const DeviceLimits& limits) {
  cuda::RowTraits t{};
  t.pack = 16 / element_bytes;
  t.bytes_per_pack = 16 * inputs;
  t.scratch_bytes = kRowSharedScratchBytes;
  t.group_packs = inputs == 1 ? 8 : 4;
  const int halves = inputs == 2 || element_bytes == 8 ? 2 : 1;
  t.block_packs = shifted ? 6 : 8 / halves;
  t.block_threads = shifted ? 384 : element_bytes == 8 ? 256 : 512;
  t.shifted = shifted;
  t.has_workspace = workspace;
  t.is_double = element_bytes == 8;
  if (limits.clusters) t.register_cluster = t.shared_cluster = 16;
  if (limits.clusters && shifted) t.cluster_packs = 8, t.cluster_threads = 256;
  return t;
}

TEST(DeviceLimitsTest, RowsFit) {
  for (const int bytes : {2, 4, 8}) {
    for (int which = 0; which < 8; ++which) {
      const int inputs = which % 2 + 1;
      const bool shifted = which / 2 % 2 != 0, workspace = which / 4 != 0;
      ForAll([&](const DeviceLimits& limits, int64_t rows, int64_t cols) {
        const auto t = TraitsOfRows(bytes, inputs, shifted, workspace, limits);
        const cuda::RowPlan plan = cuda::ChooseRowPlan(rows, cols, t, limits);
        if (plan.tier == cuda::RowTier::kGroup) return;
        ExpectBlocksFit(limits, plan.threads, static_cast<int64_t>(plan.shared));
        EXPECT_GE(plan.blocks_per_row, 1);
        if (plan.tier == cuda::RowTier::kGrid) {
          EXPECT_TRUE(workspace);
          EXPECT_LE(rows * plan.blocks_per_row, limits.multiprocessors) << "all must be resident";
        } else if (!limits.clusters) {
          EXPECT_EQ(plan.blocks_per_row, 1);
        }
        const int64_t packs = cols / t.pack, share = CeilDiv(packs, plan.blocks_per_row);
        if (plan.tier == cuda::RowTier::kBlock) EXPECT_LE(share, plan.packs * plan.threads);
        if (plan.tier == cuda::RowTier::kShared) {
          // A block alone keeps its row; those of a cluster read again what they have no room for.
          EXPECT_LE(plan.kept, share);
          if (plan.blocks_per_row == 1) EXPECT_EQ(plan.kept, packs);
          EXPECT_GT(plan.kept, 0);
          const int64_t kept = plan.kept * t.bytes_per_pack;
          EXPECT_EQ(kept + t.scratch_bytes, static_cast<int64_t>(plan.shared));
        }
      });
    }
  }
}

// kinds: of gradients per column; 2 for layer_norm. From the output, x_hat needs weight and bias.
// tensors: that are read, 3 with a gradient of the sum.
cuda::NormTraits TraitsOfNorm(int element_bytes, int kinds, bool from_output, bool aligned,
                              bool float_weight, int tensors) {
  cuda::NormTraits t;
  t.many = element_bytes == 2 ? 2 : 4;
  t.pack = 16 / element_bytes;
  t.compute_bytes = element_bytes == 8 ? 8 : 4;
  t.weights = from_output ? 2 : 1;
  t.kinds = kinds;
  t.scratch_bytes = 4096;
  t.aligned = t.lines = aligned;
  t.from_output = from_output;
  t.weight_bytes = float_weight ? 4 : element_bytes;
  t.tensors = tensors;
  t.period = aligned ? 1 : t.pack;
  return t;
}

// The workspace of a backward is asked for before its pointers, and with them its plan, are known.
void ExpectTeamsFit(const DeviceLimits& limits, const cuda::NormTraits& t, int64_t rows,
                    int64_t cols) {
  cuda::NormPlan plan;
  // Where a block's shared memory has no room for two stages, another kernel serves.
  if (!cuda::PlanTeams(rows, cols, t, limits, &plan)) {
    const bool small = limits.shared_per_block < (224 << 10) || t.tensors > 2 || t.from_output;
    EXPECT_TRUE(!t.aligned || small || cuda::PacksOfRow(cols, t) > cuda::NormPolicy::kTeamPacks);
    return;
  }
  ExpectBlocksFit(limits, plan.threads, plan.shared);
  EXPECT_LE(plan.threads, plan.narrow
                              ? cuda::ShapeOfNarrow(16 / t.pack, plan.packs, t.kinds).threads
                              : cuda::NormPolicy::kThreads);
  EXPECT_GE(plan.stages, plan.narrow ? 0 : 2);
  EXPECT_LE(cuda::PacksOfRow(cols, t), plan.team * plan.packs);
  EXPECT_GT(plan.units, 0);
  EXPECT_LE(plan.units,
            (plan.narrow ? cuda::NormPolicy::kNarrowBlocks : 1) * limits.multiprocessors);
  EXPECT_LE(plan.units, cuda::MostNormParts(rows, cols, t, limits));
}

void ExpectWideFits(const DeviceLimits& limits, const cuda::NormTraits& t, int64_t rows,
                    int64_t cols) {
  // Devices that place clusters, and one that has them and places none.
  for (const bool places : {true, false}) {
    const auto clusters = [&](int blocks) {
      return limits.clusters && places ? limits.multiprocessors / blocks : 0;
    };
    cuda::NormWidePlan wide;
    if (!cuda::PlanWide(rows, cols, t, limits, clusters, &wide)) continue;
    EXPECT_TRUE(limits.clusters);
    ExpectBlocksFit(limits, wide.workers + cuda::NormWidePolicy::kOtherThreads, wide.shared);
    EXPECT_LE(wide.parts(), cuda::MostNormParts(rows, cols, t, limits));
    if (!wide.grid) continue;
    // Blocks that wait for each other through memory are all resident.
    EXPECT_LE(wide.units * wide.slices, limits.multiprocessors);
    EXPECT_LE(wide.units * wide.slices * cuda::NormWidePolicy::kExchangeBytes,
              cuda::MostNormSumBytes(limits));
  }
}

// Every row and column has a block, and clusters are whole.
void ExpectSmallFits(const DeviceLimits& limits, int64_t rows, int64_t cols,
                     const cuda::NormSmallPlan& plan) {
  using P = cuda::NormSmallPolicy;
  EXPECT_LE(plan.cluster, limits.clusters ? P::kCluster : 1);
  EXPECT_EQ(plan.row_blocks % plan.cluster, 0);
  EXPECT_EQ(plan.column_blocks % plan.cluster, 0);
  EXPECT_EQ(P::kThreads % plan.lanes, 0);
  const int64_t teams = plan.rows_split ? 1 : P::kThreads / plan.team;
  EXPECT_GE(plan.row_blocks / (plan.rows_split ? plan.cluster : 1) * teams, rows);
  const int64_t tiles = plan.column_blocks / (plan.columns_split ? plan.cluster : 1);
  EXPECT_GE(tiles * plan.lanes * P::kColumns, cols);
}

// Every column has a thread of a team, and parts have room in the workspace.
void ExpectColumnsFit(const DeviceLimits& limits, const cuda::NormTraits& t, int64_t rows,
                      int64_t cols, const cuda::NormColumnsPlan& plan) {
  using P = cuda::NormColumnsPolicy;
  ExpectBlocksFit(limits, plan.threads, plan.shared);
  EXPECT_LE(plan.shared, 48 << 10) << "more would have to be asked for";
  EXPECT_LE(plan.threads, P::kThreads);
  EXPECT_EQ(plan.threads % 32, 0);
  EXPECT_EQ(plan.threads % plan.team, 0);
  EXPECT_GE(plan.team * (t.compute_bytes == 8 ? P::kDoubleColumns : P::kColumns), cols);
  EXPECT_GT(plan.units, 0);
  EXPECT_LE(plan.units, cuda::MostNormParts(rows, cols, t, limits));
}

TEST(DeviceLimitsTest, GradientsOfNormsFit) {
  for (const int bytes : {2, 4, 8}) {
    for (int which = 0; which < 32; ++which) {
      const auto t = TraitsOfNorm(bytes, which % 2 + 1, which / 2 % 2 != 0, which / 4 % 2 != 0,
                                  which / 8 % 2 != 0, which / 16 == 0 ? 2 : 3);
      ForAll([&](const DeviceLimits& limits, int64_t rows, int64_t cols) {
        if (!t.aligned || cols % t.pack == 0) {
          ExpectTeamsFit(limits, t, rows, cols);
          ExpectWideFits(limits, t, rows, cols);
        }
        cuda::NormFewPlan few;
        if (!limits.clusters && cuda::PlanFew(rows, cols, t, limits, &few)) {
          EXPECT_EQ(few.blocks, 1);
        }
        cuda::NormColumnsPlan columns;
        if (cuda::PlanColumns(rows, cols, t, limits, &columns))
          ExpectColumnsFit(limits, t, rows, cols, columns);
        cuda::NormSmallPlan small;
        if (cuda::PlanSmall(rows, cols, t, limits, &small))
          ExpectSmallFits(limits, rows, cols, small);
      });
    }
  }
}

// By packs of 16 bytes, as axis/slab.cuh holds them. No workspace is asked for along short axes.
TEST(DeviceLimitsTest, AxesFit) {
  for (const int inputs : {1, 2}) {
    ForAll([&](const DeviceLimits& limits, int64_t rows, int64_t axis) {
      const int most = limits.clusters ? 16 : 1;
      const cuda::AxisTraits t{8, 16, inputs, 4, 16, 4 / inputs, 8, most};
      for (const int64_t inner : {8, 64, 1000, 4096}) {
        for (const bool workspace : {true, false}) {
          const auto plan = cuda::ChooseAxisPlan(rows, axis, inner, t, workspace, limits);
          ExpectBlocksFit(limits, plan.threads, static_cast<int64_t>(plan.shared));
          EXPECT_LE(plan.threads, cuda::AxisPolicy::kMaxThreads);
          if (plan.workspace == 0) EXPECT_LE(plan.blocks, most);
          if (axis <= cuda::AxisPolicy::kNeverStreamed) EXPECT_EQ(plan.workspace, 0);
        }
      }
    });
  }
}

// Elements of 2 to 8 bytes, whole and within 16 bytes elsewhere than the output.
TEST(DeviceLimitsTest, SpansOfAxesFit) {
  for (const int inputs : {1, 2}) {
    ForAll([&](const DeviceLimits& limits, int64_t rows, int64_t axis) {
      const int most = limits.clusters ? 16 : 1;
      for (const int bytes : {2, 4, 8}) {
        const int word = bytes == 2 ? 2 : 1;
        const cuda::AxisSpanTraits t{bytes, inputs, 24, word, 2 * bytes, most};
        for (const int64_t inner : {2, 9, 49, 129, 197, 255, 257, 383, 385, 1001, 4095}) {
          for (const bool alike : {true, false}) {
            cuda::AxisSpanPlan plan;
            if (!cuda::ChooseAxisSpan(&plan, rows, axis, inner, alike, t, limits)) continue;
            const cuda::AxisSpan& s = plan.span;
            ExpectBlocksFit(limits, plan.threads, static_cast<int64_t>(plan.shared));
            using P = cuda::AxisSpanPolicy;
            const bool shared = s.parts > 1 && bytes < 8;
            EXPECT_LE(plan.threads, shared ? P::kMostThreads : P::kThreads);
            EXPECT_LE(s.parts, most);
            EXPECT_GE(int64_t{s.columns} * s.tiles, inner);
            EXPECT_EQ((s.pitch - inner) * bytes % 16, 0);
            if (s.tiles > 1 || s.padded) EXPECT_TRUE(alike);
            // Rows of a thread a column stay whole where the blocks of a small cluster have a
            // slice.
            const int64_t slice = axis * inner * bytes * inputs;
            const bool many = rows >= limits.multiprocessors;
            if (most > 1 && many && bytes < 8 && inner < 256 && slice <= 448 << 10) {
              EXPECT_EQ(s.tiles, 1);
            }
            // Threads that share columns have one each; those that hold rows hold all of them.
            const int columns = s.slices * s.columns * s.ways;
            const bool words = plan.kind == cuda::SpanKind::kWords;
            if (!words && (s.ways > 1 || s.parts > 1)) EXPECT_LE(columns, plan.threads);
            if (plan.kind == cuda::SpanKind::kHeld) {
              EXPECT_TRUE(CeilDiv(axis, s.ways) <= t.held && s.parts == 1);
            }
            // A turn is whole words and whole rows.
            if (words) EXPECT_TRUE(s.turn == s.words * word && s.turn % inner == 0);
          }
        }
      }
    });
  }
}

}  // namespace
}  // namespace oneflow_lite
