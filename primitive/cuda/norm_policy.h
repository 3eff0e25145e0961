// SPDX-License-Identifier: Apache-2.0
//
// How the norms' kernels are laid out: the one table of numbers behind their dispatch. A forward
// whose rows are whole packs is norm_forward_whole.cuh's (PlanNormWhole); others go through
// row.cuh.
//
// The backward is teams'. Blocks stay for the whole launch, one per multiprocessor, and consist of
// teams. A team owns some columns and visits row after row, so that weights stay on chip and their
// gradients gather in registers. What a team is depends on the row's packs of 16 bytes:
//
//   packs                       team                         packs per thread
//   up to kFewPacks             1 to kFewPacks lanes         1
//   up to kThreads * many       1 lane to 16 warps           many: 16 columns' worth, at most 4
//   up to kBlockPacks           16 warps                     4
//   up to kBlockPacks * 16      a cluster of 2 to 16 blocks  many or 4, where there are clusters
//   more                        slices of 16 warps, which know the row's sums from a first kernel
//
// Rows that are not known to be aligned have whole packs too, and up to 14 columns outside of them,
// one a thread: their teams have 16 lanes at least (float32 8, float64 2).
//
// Where few bytes are moved (PlanFew), there are no teams but blocks for rows and blocks for
// columns.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "primitive/cuda/launch.cuh"

namespace oneflow_lite {
namespace cuda {

struct NormPolicy {
  static constexpr int kFewPacks = 4;
  static constexpr int kFewThreads = 640;   // of a block; at most 96 registers
  static constexpr int kThreads = 512;      // of other blocks; at most 128 registers
  static constexpr int kBlockPacks = 2048;  // of a block's share of a row
  static constexpr int kMaxWarps = 20;      // of a block
  static constexpr int kMaxStages = 4;      // rows on their way to a team, or at work
  static constexpr int kMaxCluster = 16;
  static constexpr int kFewRows = 8;            // too few for a pipeline: small slices instead
  static constexpr int kSliceThreads = 256;     // of these
  static constexpr int kSlicedMinPacks = 4096;  // few rows are cut into slices from here
  static constexpr int kSumThreads = 256;       // of the kernel that sums very wide rows
  static constexpr int kSumBlocks = 4;          // of these per multiprocessor
  static constexpr int kSumUnroll = 2;          // packs of x and of dy in flight per thread
  static constexpr int kSumMinPacks = 1024;     // worth a block
  static constexpr int kMaxChunks = 1024;
  static constexpr int kReduceColumns = 32;  // of a block that adds up the blocks' parts
  static constexpr int kReduceWays = 16;

  // A backward that moves few bytes, by measurement on an H200, in us beside teams. float16: 6.8
  // for 13.2 at 1024 x 768, 12.5 for 23.1 at 1024 x 4096, 34 for 44 at 4096 x 4096; beyond, 69 for
  // 68 at 8192 x 4096 and 35 for 30 at 49152 x 256. float32: 8.5 for 13.7 at 1024 x 768, 21 for 25
  // at 4096 x 1024; beyond, 30 for 23 at 16384 x 256.
  static constexpr int kFewBlockThreads = 256;
  static constexpr int kFewLanes = 8;        // packs side by side of a column block, at most
  static constexpr int kFewCluster = 8;      // column blocks of a cluster, at most
  static constexpr int kFewLeastPacks = 32;  // of a row
  static constexpr int64_t FewMostRows(int pack) { return pack == 8 ? 16384 : 4096; }
  static constexpr int64_t FewMostBytes(int pack) { return int64_t{pack == 8 ? 34 : 17} << 20; }

  // A forward over rows of whole packs, by measurement on an H200. Several packs per lane before
  // more lanes: a million rows of 128 in half run at 0.94 with 8 lanes, 0.875 with 16.
  static constexpr int kLaneThreads = 128;
  static constexpr int kLanePacks = 128;      // of a row; per lane 1, 2 or 4
  static constexpr int kMostPacks = 8;        // per thread of a block
  static constexpr int kBlockManyPacks = 4;   // ... while a block is enough: 0.97 of a copy
  static constexpr int kEarlyPacks = 2;       // ... where rows are so few that latency counts
  static constexpr int kFewWholePacks = 256;  // a block's part of few rows, at least
  // Threads of a cluster's blocks while there are no more than so many per multiprocessor.
  static constexpr int kFewClusterThreads = 256, kFewClusterBlocks = 4;
  // One block per row takes eight packs a thread where four leave more than a tenth of the threads
  // that could be resident unused, and eight fewer, and rows fill the device so many times (12288
  // columns in half: 0.96 of a copy, 0.89 with four), or where all rows run at once then (1024 x
  // 4096 in float32: 10.9 us, 11.6 with four).
  static constexpr int kManyWaves = 3;
  template <class T>
  static constexpr int kWholeThreads = sizeof(T) == 8 ? 256 : 512;  // at most
  template <class T>
  static constexpr int kWholeBlocks = sizeof(T) == 8 ? 3 : 2;
  // ... of a block without a cluster, with kMostPacks: float32 rows of 16384 run at 0.967 as two
  // blocks, at 0.959 as one.
  template <class T>
  static constexpr int kAloneThreads = sizeof(T) == 4 ? 448 : kWholeThreads<T>;
  // Packs of weight and bias that are asked for before a row's sums are known, as registers allow.
  // Asked for one by one where they are used, they cost rms_norm at 65536 columns 5 % of a copy.
  template <class T, bool kCentre, int kPacks>
  static constexpr int kWeightsAhead = kPacks <= kEarlyPacks ? kPacks
                                       : kCentre && (kPacks == kMostPacks || sizeof(T) == 2) ? 1
                                                                                             : 2;
  // Registers, as blocks per multiprocessor: 40, 56 or 80 with 1, 2 or 4 packs per lane.
  template <class T>
  static constexpr int LaneBlocks(int packs) {
    const int blocks = packs == 1 ? 12 : packs == 2 ? 9 : 6;
    return sizeof(T) == 8 ? blocks / 2 : blocks;
  }
};

// What of a kernel of teams its plan depends on.
struct NormTraits {
  int many = 4;           // packs per thread that make good use of registers
  int pack = 1;           // elements in 16 bytes
  int compute_bytes = 4;  // size of the compute type
  int inputs = 1;         // tensors whose rows are copied
  int weights = 0;        // weights and biases kept in shared memory ...
  int few_weights = 0;    // ... with a single pack per thread
  int kinds = 0;          // gradients that gather per column: of weight and bias, or weight alone
  int scratch_bytes = 0;  // shared memory needed besides
  bool aligned = false;   // every row of every tensor starts at a multiple of 16 bytes
  bool lines = false;     // ... of 128 bytes, which bulk copies like
  bool packs_weight = false;  // may keep the weight as it is in memory, for four packs
  int period = 1;             // rows after which all tensors' lie alike again
};

struct NormPlan {
  int packs = 1;         // per thread
  int team = 32;         // threads of a team
  int threads = 0;       // of a block: a whole number of teams
  int64_t slices = 1;    // blocks that share a row
  bool cluster = false;  // ... as a cluster; else they read the row's sums
  int stages = 0;        // of the ring
  int slack = 0;         // bytes of a tensor's row in a stage beside those of its packs
  bool packed_weight = false;
  int64_t units = 1;   // blocks, clusters or rows of slices, which share out the rows
  int chunks = 1;      // parts of a row's sums, where they are computed beforehand
  int64_t shared = 0;  // bytes of dynamic shared memory

  int teams() const { return threads / team; }
  bool knows_sums() const { return slices > 1 && !cluster; }
};

// Gives the plan as many stages as fit; false if that is fewer than two.
inline bool FitStages(const NormTraits& t, const DeviceLimits& limits, NormPlan* plan,
                      int64_t most = NormPolicy::kMaxStages) {
  const int64_t slots = int64_t{plan->packs} * plan->threads;
  const int64_t kept = slots * t.pack * t.compute_bytes;  // a weight or bias per column
  plan->packed_weight = t.packs_weight && plan->packs == 4;
  const int64_t fixed =
      t.scratch_bytes +
      (plan->packed_weight ? slots * 16 : kept * (plan->packs > 1 ? t.weights : t.few_weights));
  // Bulk copies keep to the lines of memory; otherwise a row that is not aligned may have a word of
  // 16 bytes more than packs.
  plan->slack = plan->team > 32 ? (t.lines ? 0 : 128) : (t.aligned ? 0 : 16);
  const int64_t stage = t.inputs * (slots * 16 + int64_t{plan->teams()} * plan->slack);
  int64_t stages = (limits.shared_per_block - fixed) / stage;
  if (stages > most) stages = most;
  plan->stages = static_cast<int>(stages);
  plan->shared = fixed + stages * stage;
  // In the end, the same memory adds up the teams' gradients.
  const int64_t regions = plan->team < 32 ? plan->threads / 32 : plan->teams();
  const int64_t extras = t.aligned ? 0 : 2 * (t.pack - 1) * regions;
  const int64_t parts = t.scratch_bytes + t.kinds * (kept + extras * t.compute_bytes);
  if (parts > plan->shared) plan->shared = parts;
  return stages >= 2 && plan->shared <= limits.shared_per_block;
}

// Threads of as many teams as a block has room for.
inline int ThreadsOfTeams(int64_t team) {
  return static_cast<int>(NormPolicy::kThreads / team * team);
}

// Teams of whole warps for `packs` packs, with the packs per thread that leave fewer threads idle.
inline void ShapeTeam(int64_t packs, const NormTraits& t, NormPlan* plan) {
  const int64_t by_many = 32 * CeilDiv(packs, 32 * t.many), by_four = 32 * CeilDiv(packs, 32 * 4);
  const bool four =
      by_many > NormPolicy::kThreads || 3 * ThreadsOfTeams(by_four) > 4 * ThreadsOfTeams(by_many);
  plan->packs = four ? 4 : t.many;
  plan->team = static_cast<int>(four ? by_four : by_many);
  plan->threads = plan->team;
}

// Rows in slices whose sums a kernel computes beforehand.
inline NormPlan PlanSlices(int64_t rows, int64_t packs, const NormTraits& t,
                           const DeviceLimits& limits) {
  using P = NormPolicy;
  NormPlan plan;
  if (rows <= P::kFewRows) {
    plan.packs = 1;
    plan.team = plan.threads = P::kSliceThreads;
    plan.slices = CeilDiv(packs, P::kSliceThreads);
    FitStages(t, limits, &plan, 2);
  } else {
    int64_t least = CeilDiv(packs, P::kBlockPacks);
    for (bool fits = false; !fits; ++least) {
      // As many slices as leave no multiprocessor idle.
      plan.units = limits.multiprocessors / least;
      if (plan.units < 1) plan.units = 1;
      plan.slices = limits.multiprocessors / plan.units;
      if (plan.slices < least) plan.slices = least;
      ShapeTeam(CeilDiv(packs, plan.slices), t, &plan);
      plan.slices = CeilDiv(packs, int64_t{plan.packs} * plan.team);
      fits = FitStages(t, limits, &plan);
    }
    if (plan.units > rows) plan.units = rows;
  }
  int64_t chunks = int64_t{P::kSumBlocks} * limits.multiprocessors / rows;
  if (chunks > packs / P::kSumMinPacks) chunks = packs / P::kSumMinPacks;
  if (chunks > P::kMaxChunks) chunks = P::kMaxChunks;
  plan.chunks = static_cast<int>(chunks > 1 ? chunks : 1);
  return plan;
}

inline NormPlan PlanTeams(int64_t rows, int64_t packs, const NormTraits& t,
                          const DeviceLimits& limits) {
  using P = NormPolicy;
  NormPlan plan;
  const int multiprocessors = limits.multiprocessors;
  // The columns in front of the packs and behind them are a lane's each.
  int lanes = 1;
  while (!t.aligned && lanes < 2 * (t.pack - 1)) lanes *= 2;
  plan.packs = packs <= (lanes > P::kFewPacks ? lanes : P::kFewPacks) ? 1 : t.many;
  if (packs <= int64_t{32} * plan.packs) {
    plan.team = lanes;
    while (int64_t{plan.team} * plan.packs < packs) plan.team *= 2;
    plan.threads = plan.packs == 1 && t.aligned ? P::kFewThreads : P::kThreads;
  } else {
    ShapeTeam(packs, t, &plan);
    plan.threads = ThreadsOfTeams(plan.team);
  }
  // Fewer teams per block where there are not rows enough for all.
  const int64_t teams = CeilDiv(rows, multiprocessors);
  if (teams < plan.teams()) {
    plan.threads = static_cast<int>(CeilDiv(teams * plan.team, plan.team > 32 ? plan.team : 32) *
                                    (plan.team > 32 ? plan.team : 32));
  }
  plan.units = CeilDiv(rows, plan.teams());
  if (plan.units > multiprocessors) plan.units = multiprocessors;
  return plan;
}

inline int64_t PacksOfRow(int64_t cols, const NormTraits& t) {
  return cols > t.pack ? cols / t.pack : 1;
}

// Rows that stay on chip, in a block or a cluster; false where they do not fit.
// max_clusters(slices, plan) says how many clusters of so many blocks the device holds at once; 0:
// it has none.
template <class MaxClusters>
bool PlanOnChip(int64_t rows, int64_t packs, const NormTraits& t, const DeviceLimits& limits,
                const MaxClusters& max_clusters, NormPlan* plan) {
  using P = NormPolicy;
  const int64_t capacity = P::kBlockPacks;
  if (packs <= capacity) {
    *plan = PlanTeams(rows, packs, t, limits);
    if (FitStages(t, limits, plan)) return true;
  }
  for (int slices = 2; slices <= P::kMaxCluster; slices *= 2) {
    if (packs > capacity * slices) continue;
    *plan = NormPlan();
    plan->slices = slices;
    plan->cluster = true;
    ShapeTeam(CeilDiv(packs, slices), t, plan);
    if (!FitStages(t, limits, plan)) continue;
    plan->units = max_clusters(slices, *plan);
    if (plan->units > rows) plan->units = rows;
    if (plan->units > 0) return true;
  }
  return false;
}

// A team's rows must all lie alike between multiples of 16 bytes.
inline void AlignUnits(int64_t rows, const NormTraits& t, NormPlan* plan) {
  const int64_t teams = plan->units * plan->teams();
  if (teams >= rows || teams % t.period == 0) return;
  plan->units = plan->units > t.period ? plan->units / t.period * t.period : t.period;
}

template <class MaxClusters>
NormPlan PlanNormBackward(int64_t rows, int64_t cols, const NormTraits& t,
                          const DeviceLimits& limits, const MaxClusters& max_clusters) {
  using P = NormPolicy;
  const int64_t packs = PacksOfRow(cols, t);
  const bool few = packs >= P::kSlicedMinPacks && rows <= P::kFewRows;
  NormPlan plan;
  if (few || !PlanOnChip(rows, packs, t, limits, max_clusters, &plan)) {
    plan = PlanSlices(rows, packs, t, limits);
  }
  AlignUnits(rows, t, &plan);
  return plan;
}

// How a backward that moves few bytes is launched (norm_backward_few.cuh).
struct NormFewPlan {
  int packs = 0;    // per thread of a row block
  int team = 0;     // threads of a row
  int threads = 0;  // of a block
  int lanes = 0;    // packs side by side of a column block
  int blocks = 1;   // of a cluster that shares out the rows of its columns
  int64_t row_blocks = 0, column_blocks = 0;
};

// False: the rows are not for it.
inline bool PlanFew(int64_t rows, int64_t cols, const NormTraits& t, const DeviceLimits& limits,
                    NormFewPlan* plan) {
  using P = NormPolicy;
  const int64_t packs = cols / t.pack;
  if (!t.aligned || packs < P::kFewLeastPacks || packs > 4 * P::kFewBlockThreads ||
      rows > P::FewMostRows(t.pack) || rows * packs * 16 > P::FewMostBytes(t.pack)) {
    return false;
  }
  // Two packs per thread, unless four leave fewer of a block's threads unused.
  for (int each = 2; each <= 4; each += 2) {
    const auto team = static_cast<int>(CeilDiv(packs, 32 * each) * 32);
    const int threads = P::kFewBlockThreads / team * team;
    if (threads <= plan->threads) continue;
    plan->packs = each, plan->team = team, plan->threads = threads;
  }
  plan->row_blocks = CeilDiv(rows, plan->threads / plan->team);
  // About as many column blocks as multiprocessors.
  const int64_t most = int64_t{limits.multiprocessors} * 5 / 4;
  const int largest = limits.clusters ? P::kFewCluster : 1;
  plan->lanes = P::kFewLanes;
  while (plan->lanes > 1 && 2 * CeilDiv(packs, plan->lanes) * largest <= most) plan->lanes /= 2;
  const int64_t tiles = CeilDiv(packs, plan->lanes);
  plan->blocks = 1;
  while (plan->blocks < largest && 2 * plan->blocks * tiles <= most &&
         rows > int64_t{plan->threads} / plan->lanes * plan->blocks) {
    plan->blocks *= 2;
  }
  plan->column_blocks = tiles * plan->blocks;
  return true;
}

// How a forward over rows of whole packs is launched.
struct NormWholePlan {
  int lanes = 0;    // that share a row; 0: a block does, or several
  int packs = 0;    // per thread
  int threads = 0;  // of a block
  int blocks = 1;   // that share a row
};

// What of a forward its plan depends on.
struct NormWholeTraits {
  int most_threads;  // of a block
  int most_alone;    // of a block that holds a row alone, with most_packs
  int resident;      // threads of a multiprocessor, at most
  int most_packs;    // per thread, that there is a kernel for
  int most_blocks;   // of a cluster
  int waves;         // of blocks with few packs per thread that are faster than fewer with more
  bool early_alone;  // ... any number of waves, if a block holds a row
};

// False: the rows do not fit.
inline bool PlanNormWhole(int64_t rows, int64_t packs, const NormWholeTraits& t,
                          const DeviceLimits& limits, NormWholePlan* plan) {
  using P = NormPolicy;
  *plan = NormWholePlan();
  if (packs <= P::kLanePacks) {
    plan->threads = P::kLaneThreads;
    plan->packs = packs <= 4 ? 1 : packs <= 16 ? 2 : 4;
    plan->lanes = 4;
    while (plan->lanes * plan->packs < packs) plan->lanes *= 2;
    return true;
  }
  // Few rows get more blocks each, as long as that keeps a block busy.
  const auto fills = [&](int64_t blocks) {
    return rows * blocks >= 2 * limits.multiprocessors || packs <= blocks * P::kFewWholePacks;
  };
  const int64_t wave = int64_t{limits.multiprocessors} * 1024;  // threads that run at once
  for (const int each : {P::kEarlyPacks, P::kBlockManyPacks, P::kMostPacks}) {
    if (each > t.most_packs) break;
    const auto holds = [&](int64_t blocks) {
      const int64_t few = int64_t{each} * P::kFewClusterThreads;
      const bool use_few = blocks > 1 && (each < t.most_packs || packs <= few * t.most_blocks) &&
                           rows * blocks <= P::kFewClusterBlocks * limits.multiprocessors;
      const bool alone = blocks == 1 && t.most_blocks > 1 && each == P::kMostPacks;
      const int64_t most = int64_t{each} * (alone ? t.most_alone : t.most_threads);
      return packs <= blocks * (use_few && few < most ? few : most);
    };
    plan->blocks = 1;
    while (plan->blocks < t.most_blocks && !(holds(plan->blocks) && fills(plan->blocks))) {
      plan->blocks *= 2;
    }
    if (!holds(plan->blocks)) continue;
    plan->packs = each;
    plan->threads = static_cast<int>(CeilDiv(packs, int64_t{32} * each * plan->blocks) * 32);
    if (each == t.most_packs) return true;
    const bool in_waves = CeilDiv(packs, each) * rows <= t.waves * wave;
    if (in_waves || (each == P::kEarlyPacks && t.early_alone && plan->blocks == 1)) return true;
    if (each == P::kEarlyPacks || plan->blocks > 1) continue;
    const bool at_once = CeilDiv(packs, P::kMostPacks) * rows <= wave;
    const int64_t used = t.resident / plan->threads * plan->threads;
    const int64_t slots = CeilDiv(packs, 32 * P::kMostPacks) * 32 * P::kMostPacks;
    const bool unused = 10 * used < 9 * t.resident && 10 * packs >= 9 * slots &&
                        rows * plan->threads > P::kManyWaves * wave;
    if (!at_once && !unused) return true;
  }
  return false;
}

}  // namespace cuda
}  // namespace oneflow_lite
