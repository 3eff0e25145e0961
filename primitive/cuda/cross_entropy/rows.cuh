// SPDX-License-Identifier: Apache-2.0
//
// What the cross-entropy kernels share: the problem, and the table of numbers behind the dispatch.
#pragma once

#include "primitive/cuda/chip/launch.cuh"
#include "primitive/cuda/chip/pack.cuh"
#include "primitive/cuda/softmax/math.cuh"

namespace oneflow_lite::cuda {

template <class T>
struct CrossEntropyRows {
  int64_t rows, classes;
  int64_t ignore_index;
  ComputeType<T> smoothing;
  const T* x;             // [rows, classes]
  const int64_t* target;  // [rows]
  int64_t row_stride;     // elements from a row of x to the next

  // Whether the row has a loss and a gradient; a target out of range has neither.
  OFL_DEVICE bool Counts(int64_t t) const { return t != ignore_index && t >= 0 && t < classes; }
};

struct CrossEntropyPolicy {
  static constexpr int kThreads = 256;
  // The forward kernels: many small blocks, whose phases overlap.
  static constexpr int kFoldThreads = 128;
  template <class T>
  static constexpr int kFoldBlocks = sizeof(T) == 8 ? 4 : 8;  // per SM
  template <class T>
  static constexpr int kMapBlocks = sizeof(T) == 8 ? 3 : 4;  // of the elementwise kernels
  static constexpr int kUnroll = 4;                          // packs in flight per thread
  // Packs that a thread holds, at most: of a warp, and of a block. Of few rows it is 4.
  template <class T>
  static constexpr int kMostOfLane = sizeof(T) == 8 ? 8 : 4;
  template <class T>
  static constexpr int kMostHeld = sizeof(T) == 4 ? 4 : 8;
  static constexpr int kHeldPacks = 2048;    // of a row that a block holds
  static constexpr int kFewHeldPacks = 512;  // ... by 4 packs a thread
  template <int kPacks, class T>
  static constexpr int kHeldBlocks = kPacks == 4 && sizeof(T) == 2 ? 2 : 3;  // per SM
  static constexpr int kBlocksPerMultiprocessor = 4;  // that split rows should make
  static constexpr int kMaxChunks = 1024;             // per row
  static constexpr int kClusterPacks = 32768;         // of a row for a cluster's blocks
};

// Blocks per row of the forward kernel; 1 where there are rows enough.
inline int CrossEntropyChunks(int64_t rows, int64_t packs, const DeviceLimits& limits) {
  using P = CrossEntropyPolicy;
  const int64_t wanted = P::kBlocksPerMultiprocessor * limits.multiprocessors;
  if (rows <= 0 || rows >= wanted || packs <= P::kHeldPacks) return 1;
  const int64_t by_rows = CeilDiv(wanted, rows), by_work = packs / (P::kFoldThreads * P::kUnroll);
  return static_cast<int>(Max(Min(Min(by_rows, by_work), P::kMaxChunks), 1));
}

// Whether the blocks of a row are a cluster, at most 16; else a kernel merges the parts.
inline bool IsClusterOfChunks(int64_t packs, const DeviceLimits& limits) {
  return limits.clusters && packs <= CrossEntropyPolicy::kClusterPacks;
}

// How an elementwise kernel deals out rows: 2^lane_bits lanes per row, or chunks of `share` packs.
// No thread has more than kUnroll packs.
struct RowTasks {
  int lane_bits = 2;
  int64_t chunks = 1, share = 0;
  int64_t count = 0;  // of tasks, each a block's turn
};
inline RowTasks MakeRowTasks(int64_t rows, int64_t packs) {
  using P = CrossEntropyPolicy;
  RowTasks tasks;
  while ((1 << tasks.lane_bits) < P::kThreads && (P::kUnroll << tasks.lane_bits) < packs) {
    ++tasks.lane_bits;
  }
  const int64_t most = CeilDiv(packs, P::kUnroll << tasks.lane_bits);
  if (most > 1) tasks.chunks = most;
  tasks.share = CeilDiv(packs, tasks.chunks);
  tasks.count = CeilDiv(rows, P::kThreads >> tasks.lane_bits) * tasks.chunks;
  return tasks;
}

// What a row, or a part of one, adds up to. The deviation, the sum of x - anchor, serves smoothing.
template <class C>
struct CrossEntropyPartial {
  OnlineSum<C> sum;
  C deviation = 0;
};
template <class C>
OFL_DEVICE CrossEntropyPartial<C> ShuffleXor(CrossEntropyPartial<C> v, int mask) {
  v.sum = ShuffleXor(v.sum, mask);
  v.deviation = ShuffleXor(v.deviation, mask);
  return v;
}
struct MergePartials {
  template <class C>
  OFL_DEVICE CrossEntropyPartial<C> operator()(const CrossEntropyPartial<C>& a,
                                               const CrossEntropyPartial<C>& b) const {
    return {MergeOnline{}(a.sum, b.sum), a.deviation + b.deviation};
  }
};

// What the deviation is taken about: the row's first logit, so that it keeps its precision where
// all logits are large, or 0 where that is no finite number. x: the row.
template <class T>
OFL_DEVICE ComputeType<T> AnchorOf(const CrossEntropyRows<T>& p, const T* x) {
  using C = ComputeType<T>;
  if (p.smoothing == C(0) || p.classes == 0) return C(0);
  const C first = ConvertTo<C>(x[0]);
  return first - first == C(0) ? first : C(0);
}
template <class C, int N>
OFL_DEVICE C DeviationOf(const Pack<C, N>& x, C anchor) {
  C deviation = 0;
#pragma unroll
  for (const C& v : x.v) deviation += v - anchor;
  return deviation;
}
// The logit at the target; 0 in a row that does not count.
template <class T>
OFL_DEVICE ComputeType<T> TargetLogitOf(const CrossEntropyRows<T>& p, int64_t row, int64_t target) {
  using C = ComputeType<T>;
  return p.Counts(target) ? ConvertTo<C>(p.x[row * p.row_stride + target]) : C(0);
}

// The loss of a row that counts; log_sum is the logarithm of its sum. kSmooth: whether there may be
// smoothing.
template <bool kSmooth = true, class T, class C = ComputeType<T>>
OFL_DEVICE C LossOf(const CrossEntropyRows<T>& p, C target_logit, C max, C log_sum, C anchor,
                    C deviation) {
  const C sharp = (max - target_logit) + log_sum;
  if (!kSmooth || p.smoothing == C(0)) return sharp;
  const C mean = deviation / static_cast<C>(p.classes);
  const C uniform = ((max - anchor) + log_sum) - mean;
  return fma(p.smoothing, uniform, (C(1) - p.smoothing) * sharp);  // in packs and single columns
}

}  // namespace oneflow_lite::cuda
