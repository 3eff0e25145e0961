// SPDX-License-Identifier: Apache-2.0
//
// What a layout of the norms' backward by teams is, and the steps by which norms/policy.h comes to
// one.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <initializer_list>

#include "primitive/cuda/chip/device_limits.h"

namespace oneflow_lite::cuda {

namespace internal {

inline uint64_t AddressOf(const void* p) { return reinterpret_cast<uintptr_t>(p); }
inline bool AreMultiplesOf16(std::initializer_list<uint64_t> bytes) {
  uint64_t bits = 0;
  for (const uint64_t b : bytes) bits |= b;
  return bits % 16 == 0;
}

}  // namespace internal

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
  static constexpr int kReduceLanes = 16;  // of 16 bytes, of a block that adds up the parts
  static constexpr int kReduceWays = 64;
  static constexpr int kReduceUnroll = 3;  // parts on their way to a thread
  static constexpr int kLeanStages = 3;    // with eight a launch's first row is late by 2 us
  static constexpr int kLeanWarps = 16;    // of a team, at most
  static constexpr int kNarrowPacks = 2;   // of a lane of narrow rows, at most
  static constexpr int kNarrowBlocks = 4;  // of these per multiprocessor, at most
  static constexpr int kLeanBarrierBytes = 8 * kLeanStages;     // of a team
  static constexpr int kLeanSumBytes = 2 * 4 * kLeanWarps * 4;  // the same
  static constexpr int kCorrectColumns = 32;                    // see NormFewCorrectKernel
  static constexpr int kCorrectWays = 16;
  static constexpr int64_t kAnyRows = int64_t{1} << 29;  // see AnyRowsLimits
};

// A caller who wants the same plan for any number of rows gives limits without multiprocessors.
// Plans are then made for kAnyRows on so many multiprocessors as those have on which they were
// measured; units too, so that weights' gradients are the same everywhere.
inline DeviceLimits AnyRowsLimits(DeviceLimits limits) {
  limits.multiprocessors = 132;
  return limits;
}

// What of a kernel of teams its plan depends on.
struct NormTraits {
  int many = 4;           // packs per thread that make good use of registers
  int pack = 1;           // elements in 16 bytes
  int compute_bytes = 4;  // size of the compute type
  int weight_bytes = 4;   // size of the type of weight and bias
  int tensors = 2;        // that are read: x, dy and maybe a gradient of the sum
  int weights = 0;        // weights and biases in shared memory: with one pack a thread one fewer
  int kinds = 0;          // gradients that gather per column: of weight and bias, or weight alone
  int scratch_bytes = 0;  // shared memory needed besides
  bool aligned = false;   // every row of every tensor starts at a multiple of 16 bytes
  bool lines = false;     // ... of 128 bytes, which bulk copies like
  bool narrow = false;  // the kernel for narrow rows (norms/backward/narrow.cuh) serves such rows,
  bool lean = false;    // the lean kernel (norms/backward/lean.cuh) wider ones
  bool from_output = false;   // x is the forward's output
  bool packs_weight = false;  // may keep the weight as it is in memory, for four packs
  // Whether the lean kernel serves these rows on this device: it needs bulk copies.
  constexpr bool ServedByLean(const DeviceLimits& limits) const {
    return lean && aligned && limits.clusters;
  }
  int period = 1;      // rows after which all tensors' lie alike again
  int more_lines = 0;  // of memory that a stage of a wide row has room for
};

struct NormPlan {
  int packs = 1;         // per thread
  int team = 32;         // threads of a team
  int threads = 0;       // of a block: a whole number of teams
  int64_t slices = 1;    // blocks that share a row
  bool cluster = false;  // ... as a cluster; else they read the row's sums
  bool narrow = false;   // of the kernel for narrow rows
  bool lean = false;     // of the lean kernel
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
      (plan->packed_weight ? slots * 16 : kept * (plan->packs > 1 ? t.weights : t.weights - 1));
  // Bulk copies keep to the lines of memory; otherwise a row that is not aligned may have a word of
  // 16 bytes more than packs.
  plan->slack = plan->team > 32 ? (t.lines ? 0 : 128) : (t.aligned ? 0 : 16);
  const int64_t stage = 2 * (slots * 16 + int64_t{plan->teams()} * plan->slack);
  const int64_t stages = Min((limits.shared_per_block - fixed) / stage, most);
  plan->stages = static_cast<int>(stages);
  // In the end, the same memory adds up the teams' gradients.
  const int64_t regions = plan->team < 32 ? plan->threads / 32 : plan->teams();
  const int64_t extras = t.aligned ? 0 : 2 * (t.pack - 1) * regions;
  const int64_t parts = t.scratch_bytes + t.kinds * (kept + extras * t.compute_bytes);
  plan->shared = Max(fixed + stages * stage, parts);
  return stages >= 2 && plan->shared <= limits.shared_per_block;
}

// Threads that another block may have.
constexpr int MostNormThreads(int packs, bool aligned) {
  return packs == 1 && aligned ? NormPolicy::kFewThreads : NormPolicy::kThreads;
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

// Fewer teams per block where there are not rows enough for all; and the blocks.
inline void FillDevice(int64_t rows, const DeviceLimits& limits, NormPlan* plan) {
  const int64_t teams = CeilDiv(rows, limits.multiprocessors);
  if (teams < plan->teams()) {
    const int64_t whole = Max(plan->team, 32);
    plan->threads = static_cast<int>(CeilDiv(teams * plan->team, whole) * whole);
  }
  plan->units = Min(CeilDiv(rows, plan->teams()), limits.multiprocessors);
}

}  // namespace oneflow_lite::cuda
