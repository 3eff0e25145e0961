// SPDX-License-Identifier: Apache-2.0
//
// What the cross-entropy kernels share: the problem, and the table of numbers behind the dispatch.
#pragma once

#include "primitive/cuda/launch.cuh"
#include "primitive/cuda/pack.cuh"
#include "primitive/cuda/softmax_math.cuh"

namespace oneflow_lite {
namespace cuda {

template <class T>
struct CrossEntropyRows {
  int64_t rows, classes;
  int64_t ignore_index;
  ComputeType<T> smoothing;
  const T* x;             // [rows, classes], contiguous
  const int64_t* target;  // [rows]

  // Whether the row has a loss and a gradient; a target out of range has neither.
  __device__ __forceinline__ bool Counts(int64_t t) const {
    return t != ignore_index && t >= 0 && t < classes;
  }
};

struct CrossEntropyPolicy {
  static constexpr int kThreads = 256;
  // The forward kernels: many small blocks, whose phases overlap. Of a read at 8192 x 32000 in
  // bfloat16 0.885, with blocks of 256 threads 0.846, of 512 0.686.
  static constexpr int kFoldThreads = 128;
  template <class T>
  static constexpr int kFoldBlocks = sizeof(T) == 8 ? 4 : 8;  // per SM
  template <class T>
  static constexpr int kGroupBlocks = sizeof(T) == 8 ? 4 : 6;  // ... of the kernel of narrow rows
  static constexpr int kMapBlocks = 3;                         // of the elementwise kernels
  static constexpr int kUnroll = 4;                            // packs in flight per thread
  static constexpr int kNarrowPacks = 4 * kUnroll;             // rows for 4 lanes
  static constexpr int kGroupPacks = 64 * kUnroll;             // rows for a warp: two turns
  static constexpr int kChunkPacks = 4096;  // per row and block of the elementwise kernels
  static constexpr int kBlocksPerMultiprocessor = 4;  // that split rows should make
  static constexpr int kMaxChunks = 1024;             // per row
};

// Blocks per row of the forward kernel; 1 where there are rows enough.
inline int CrossEntropyChunks(int64_t rows, int64_t packs, const DeviceLimits& limits) {
  using P = CrossEntropyPolicy;
  const int64_t wanted = int64_t{P::kBlocksPerMultiprocessor} * limits.multiprocessors;
  if (rows <= 0 || rows >= wanted) return 1;
  const int64_t by_rows = CeilDiv(wanted, rows), by_work = packs / (P::kFoldThreads * P::kUnroll);
  int64_t chunks = by_rows < by_work ? by_rows : by_work;
  if (chunks > P::kMaxChunks) chunks = P::kMaxChunks;
  return static_cast<int>(chunks > 1 ? chunks : 1);
}

// How an elementwise kernel deals out rows: 2^lane_bits lanes per row, chunks parts per row.
struct RowTasks {
  int lane_bits = 2;
  int64_t chunks = 1;
  int64_t count = 0;  // of tasks, each a block's turn
};
inline RowTasks MakeRowTasks(int64_t rows, int64_t packs, const DeviceLimits& limits) {
  using P = CrossEntropyPolicy;
  RowTasks tasks;
  while ((1 << tasks.lane_bits) < P::kThreads && (P::kUnroll << tasks.lane_bits) < packs) {
    ++tasks.lane_bits;
  }
  const int64_t groups = CeilDiv(rows, P::kThreads >> tasks.lane_bits);
  tasks.chunks = CeilDiv(packs, P::kChunkPacks);
  const int64_t wanted =
      CeilDiv(int64_t{2 * P::kBlocksPerMultiprocessor} * limits.multiprocessors, groups);
  const int64_t by_work = packs / (P::kThreads * P::kUnroll);
  const int64_t more = wanted < by_work ? wanted : by_work;
  if (tasks.chunks < more) tasks.chunks = more;
  if (tasks.chunks < 1) tasks.chunks = 1;
  tasks.count = groups * tasks.chunks;
  return tasks;
}

// What a row, or a part of one, adds up to. The deviation, the sum of x - anchor, serves smoothing.
template <class C>
struct CrossEntropyPartial {
  OnlineSum<C> sum;
  C deviation = 0;
};
template <class C>
__device__ __forceinline__ CrossEntropyPartial<C> ShuffleXor(CrossEntropyPartial<C> v, int mask) {
  v.sum = ShuffleXor(v.sum, mask);
  v.deviation = ShuffleXor(v.deviation, mask);
  return v;
}
struct MergePartials {
  template <class C>
  __device__ __forceinline__ CrossEntropyPartial<C> operator()(
      const CrossEntropyPartial<C>& a, const CrossEntropyPartial<C>& b) const {
    return {MergeOnline{}(a.sum, b.sum), a.deviation + b.deviation};
  }
};

// x[target], and what the deviation is taken about: x[target] itself, so that it keeps its
// precision where all logits are large, or 0 where that is no finite number.
template <class C>
struct TargetLogit {
  C x = 0, anchor = 0;
};
template <class T>
__device__ __forceinline__ TargetLogit<ComputeType<T>> TargetLogitOf(const CrossEntropyRows<T>& p,
                                                                     int64_t row, int64_t target) {
  using C = ComputeType<T>;
  const C x = p.Counts(target) ? ConvertTo<C>(p.x[row * p.classes + target]) : C(0);
  return {x, x - x == C(0) ? x : C(0)};
}

// The loss of a row; log_sum is the logarithm of its sum.
template <class T, class C = ComputeType<T>>
__device__ __forceinline__ C LossOf(const CrossEntropyRows<T>& p, int64_t target,
                                    const TargetLogit<C>& at, const CrossEntropyPartial<C>& part,
                                    C log_sum) {
  if (!p.Counts(target)) return target == p.ignore_index ? C(0) : static_cast<C>(NAN);
  const C sharp = (part.sum.max - at.x) + log_sum;
  if (p.smoothing == C(0)) return sharp;
  const C mean = part.deviation / static_cast<C>(p.classes);
  const C uniform = ((part.sum.max - at.anchor) + log_sum) - mean;
  return (C(1) - p.smoothing) * sharp + p.smoothing * uniform;
}

}  // namespace cuda
}  // namespace oneflow_lite
