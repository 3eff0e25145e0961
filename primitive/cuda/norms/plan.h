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
  static constexpr int kThreads = 512;     // of a block; at most 128 registers
  static constexpr int kTeamPacks = 2048;  // of a row, at most, of the team's kernels
  static constexpr int kSumThreads = 256;  // of the kernel that adds a residual
  static constexpr int kReduceLanes = 16;  // of 16 bytes, of a block that adds up the parts
  static constexpr int kReduceWays = 64, kFewReduceWays = 4;  // threads for a column: of few parts
  static constexpr int kReduceUnroll = 3;                     // parts on their way to a thread
  static constexpr int kLeanStages = 3;    // with eight a launch's first row is late by 2 us
  static constexpr int kLeanWarps = 16;    // of a team, at most
  static constexpr int kNarrowPacks = 2;   // of a lane of narrow rows, at most
  static constexpr int kNarrowBlocks = 4;  // of these per multiprocessor, at most
  static constexpr int kLeanBarrierBytes = 8 * kLeanStages;  // of a team
  static constexpr int kCorrectColumns = 32;                 // see NormFewCorrectKernel
  static constexpr int kCorrectWays = 16;
  static constexpr int64_t kAnyRows = int64_t{1} << 29;  // see AnyRowsLimits
  // A team's memory for its sums (TeamSums).
  static constexpr int LeanSumBytes(int compute_bytes) {
    return 2 * 4 * kLeanWarps * compute_bytes;
  }
};

// A caller who wants the same plan for any number of rows gives limits without multiprocessors.
// Plans are then made for kAnyRows on so many multiprocessors as those have on which they were
// measured; units too, so that weights' gradients are the same everywhere.
inline DeviceLimits AnyRowsLimits(DeviceLimits limits) {
  limits.multiprocessors = 132;
  return limits;
}

// What of a kernel its plan depends on.
struct NormTraits {
  int many = 4;           // packs per thread that make good use of registers
  int pack = 1;           // elements in 16 bytes
  int compute_bytes = 4;  // size of the compute type
  int weight_bytes = 4;   // size of the type of weight and bias
  int tensors = 2;        // that are read: x, dy and maybe a gradient of the sum
  int weights = 0;        // weights and biases that wide rows keep in shared memory
  int kinds = 0;          // gradients that gather per column: of weight and bias, or weight alone
  int scratch_bytes = 0;  // shared memory needed besides
  bool aligned = false;   // every row of every tensor starts at a multiple of 16 bytes
  bool lines = false;     // ... of 128 bytes, which bulk copies like
  bool from_output = false;  // x is the forward's output
  int period = 1;            // rows after which all tensors' lie alike again
  int more_lines = 0;        // of memory that a stage of a wide row has room for
};

struct NormPlan {
  int packs = 1;        // per thread
  int team = 32;        // threads of a team
  int threads = 0;      // of a block: a whole number of teams
  bool narrow = false;  // of the kernel for narrow rows, else of the lean one
  int stages = 0;       // of the ring
  int slack = 0;        // bytes of a tensor's row in a stage beside those of its packs
  int64_t units = 1;    // blocks, which share out the rows
  int64_t shared = 0;   // bytes of dynamic shared memory

  int teams() const { return threads / team; }
};

// Threads of as many teams as a block has room for.
inline int ThreadsOfTeams(int64_t team) {
  return static_cast<int>(NormPolicy::kThreads / team * team);
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
