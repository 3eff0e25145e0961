// SPDX-License-Identifier: Apache-2.0
//
// Cross entropy of logits with class targets, header-only like softmax.cuh: loss, gradient, and
// both in one go. The formulas and corner cases are those of primitive/cross_entropy.h.
//
//   CrossEntropyRows<__nv_bfloat16> p{rows, classes, /*ignore_index=*/-100, /*smoothing=*/0.0f,
//                                     x, target};
//   LaunchCrossEntropy(p, loss, stats, limits, stream);                 // reads x once
//   LaunchCrossEntropyBackward(p, stats, dloss, 1, dx, limits, stream);  // reads x, writes dx
//
// How forward works, by width (packs of 16 bytes) and number of rows:
//   group   4 or 32 lanes per row                  up to CrossEntropyPolicy::kGroupPacks
//   block   a block per row                        wider
//   split   several blocks per row, then a merge   few wide rows, where workspace is given
// Backward is elementwise once the statistics are known.
#pragma once

#include "primitive/cuda/cross_entropy_backward.cuh"
#include "primitive/cuda/cross_entropy_rows.cuh"
#include "primitive/cuda/softmax.cuh"

namespace oneflow_lite {
namespace cuda {

// What a row, or a part of one, adds up to.
template <class C>
struct CrossEntropyPartial {
  OnlineSum<C> sum;
  C deviation = 0;  // sum of x - anchor, where there is smoothing
};

// The packs [first, last) of a row, and its extras where with_extras, folded by `size` threads. The
// single columns are asked for first, so that nobody waits for them in the end.
template <class T, int N>
__device__ __forceinline__ CrossEntropyPartial<ComputeType<T>> FoldRow(
    const T* x, const RowSpan<N>& span, int64_t first, int64_t last, bool with_extras, int rank,
    int size, bool smooth, ComputeType<T> anchor) {
  using C = ComputeType<T>;
  constexpr int kUnroll = CrossEntropyPolicy::kUnroll;
  const int extras = with_extras ? span.extras() : 0;
  const C extra = rank < extras ? ConvertTo<C>(x[span.Column(rank)]) : MinusInfinity<C>();
  CrossEntropyPartial<C> part;
  for (int64_t p = first + rank; p < last; p += int64_t{kUnroll} * size) {
    Pack<T, N> raw[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (p + u * size < last) raw[u] = LoadPack<N>(x + span.PackColumn(p + u * size));
    }
    C max = part.sum.max;
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (p + u * size < last) max = Larger{}(max, MaxOf<C>(raw[u]));
      KeepPacked(raw[u]);
    }
    const C shift = OnlineSum<C>::Finite(max);
    part.sum.sum *= ExpNonPositive(part.sum.max - shift);
    part.sum.max = max;
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (p + u * size >= last) continue;
      C sum = 0, deviation = 0;
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const C v = ConvertTo<C>(raw[u].v[i]);
        sum += ExpNonPositive(v - shift);
        if (smooth) deviation += v - anchor;
      }
      part.sum.sum += sum;
      part.deviation += deviation;
    }
  }
  for (int e = rank; e < extras; e += size) {
    const C v = e == rank ? extra : ConvertTo<C>(x[span.Column(e)]);
    part.sum.Add(Pack<C, 1>{{v}});
    if (smooth) part.deviation += v - anchor;
  }
  return part;
}

template <class C, class Group>
__device__ __forceinline__ CrossEntropyPartial<C> ReducePartial(CrossEntropyPartial<C> part,
                                                                bool smooth, Group& group) {
  part.sum = group.Reduce(part.sum, MergeOnline{}, OnlineSum<C>{});
  if (smooth) part.deviation = group.Reduce(part.deviation, Plus{}, C(0));
  return part;
}

// x[target], and what the deviation is taken about: x[target] itself, so that it keeps its
// precision where all logits are large, or 0 where that is no finite number.
template <class C>
struct TargetLogit {
  C x, anchor;
};
template <class T>
__device__ __forceinline__ TargetLogit<ComputeType<T>> TargetLogitOf(const CrossEntropyRows<T>& p,
                                                                     int64_t row, int64_t target) {
  using C = ComputeType<T>;
  const C x = p.Counts(target) ? ConvertTo<C>(p.x[row * p.classes + target]) : C(0);
  return {x, x - x == C(0) ? x : C(0)};
}

// By one thread per row.
template <class T, class C = ComputeType<T>>
__device__ __forceinline__ void WriteLoss(const CrossEntropyRows<T>& p, const C* scale, C* loss,
                                          C* stats, int64_t row, int64_t target,
                                          const TargetLogit<C>& at,
                                          const CrossEntropyPartial<C>& part) {
  C value = 0, max = 0, log_sum = 0;
  if (p.Counts(target)) {
    max = part.sum.max;
    log_sum = LogOf(part.sum.sum);
    value = (max - at.x) + log_sum;
    if (p.smoothing != C(0)) {
      const C uniform = ((max - at.anchor) + log_sum) - part.deviation / static_cast<C>(p.classes);
      value = (C(1) - p.smoothing) * value + p.smoothing * uniform;
    }
  } else if (target != p.ignore_index) {
    value = static_cast<C>(NAN);
  }
  loss[row] = scale ? value * *scale : value;
  stats[2 * row] = max;
  stats[2 * row + 1] = log_sum;
}

// A row per group of kLanes lanes. Ignored rows are read as well: to look at the target first would
// cost every row the wait for it.
template <int kLanes, class T>
__global__ void __launch_bounds__(CrossEntropyPolicy::kThreads, CrossEntropyPolicy::kBlocks<T>)
    CrossEntropyGroupKernel(CrossEntropyRows<T> p, const ComputeType<T>* scale,
                            ComputeType<T>* loss, ComputeType<T>* stats) {
  constexpr int N = kPackSize<T>;
  constexpr int kRows = CrossEntropyPolicy::kThreads / kLanes;
  LaneGroup<kLanes> group;
  for (int64_t base = int64_t{blockIdx.x} * kRows; base < p.rows;
       base += int64_t{gridDim.x} * kRows) {
    const int64_t row = base + threadIdx.x / kLanes;
    const bool active = row < p.rows;
    const int64_t target = active ? p.target[row] : p.ignore_index;
    const auto at = TargetLogitOf(p, row, target);
    const T* x = p.x + (active ? row : 0) * p.classes;
    const auto span = active ? RowSpan<N>(ElementsToBoundary(x), p.classes) : RowSpan<N>();
    const bool smooth = p.smoothing != 0;
    auto part =
        FoldRow<T, N>(x, span, 0, span.packs, true, group.rank(), kLanes, smooth, at.anchor);
    part = ReducePartial(part, smooth, group);
    if (active && group.rank() == 0) WriteLoss(p, scale, loss, stats, row, target, at, part);
  }
}

// A block per row, or per chunk of one: then the parts go to `partial`.
template <class T>
__global__ void __launch_bounds__(CrossEntropyPolicy::kThreads, CrossEntropyPolicy::kBlocks<T>)
    CrossEntropyBlockKernel(CrossEntropyRows<T> p, const ComputeType<T>* scale,
                            ComputeType<T>* loss, ComputeType<T>* stats, int chunks,
                            CrossEntropyPartial<ComputeType<T>>* partial) {
  constexpr int N = kPackSize<T>;
  __shared__ __align__(16) char scratch[Block::kScratchBytes];
  Block block(scratch);
  const bool smooth = p.smoothing != 0;
  for (int64_t task = blockIdx.x; task < p.rows * chunks; task += gridDim.x) {
    const int64_t row = task / chunks, chunk = task - row * chunks;
    const int64_t target = p.target[row];
    const auto at = TargetLogitOf(p, row, target);
    CrossEntropyPartial<ComputeType<T>> part;
    if (p.Counts(target)) {  // the same for the whole block
      const T* x = p.x + row * p.classes;
      const RowSpan<N> span(ElementsToBoundary(x), p.classes);
      part = FoldRow<T, N>(x, span, span.packs * chunk / chunks, span.packs * (chunk + 1) / chunks,
                           chunk == 0, threadIdx.x, blockDim.x, smooth, at.anchor);
      part = ReducePartial(part, smooth, block);
    }
    if (threadIdx.x != 0) continue;
    if (chunks == 1) {
      WriteLoss(p, scale, loss, stats, row, target, at, part);
    } else {
      partial[task] = part;
    }
  }
}

// Merges the chunks of a row, a warp per row.
template <class T>
__global__ void __launch_bounds__(CrossEntropyPolicy::kThreads)
    CrossEntropyMergeKernel(CrossEntropyRows<T> p, const ComputeType<T>* scale,
                            ComputeType<T>* loss, ComputeType<T>* stats, int chunks,
                            const CrossEntropyPartial<ComputeType<T>>* partial) {
  constexpr int kRows = CrossEntropyPolicy::kThreads / kWarp;
  LaneGroup<kWarp> group;
  for (int64_t base = int64_t{blockIdx.x} * kRows; base < p.rows;
       base += int64_t{gridDim.x} * kRows) {
    const int64_t row = base + threadIdx.x / kWarp;
    const bool active = row < p.rows;
    const int64_t target = active ? p.target[row] : p.ignore_index;
    const auto at = TargetLogitOf(p, row, target);
    CrossEntropyPartial<ComputeType<T>> part;
    for (int i = group.rank(); active && i < chunks; i += kWarp) {
      const auto other = partial[row * chunks + i];
      part.sum = MergeOnline{}(part.sum, other.sum);
      part.deviation += other.deviation;
    }
    part = ReducePartial(part, true, group);
    if (active && group.rank() == 0) WriteLoss(p, scale, loss, stats, row, target, at, part);
  }
}

// Bytes of workspace with which few wide rows are spread over the device.
template <class T>
size_t CrossEntropyWorkspaceBytes(int64_t rows, int64_t classes, const DeviceLimits& limits) {
  const int chunks = CrossEntropyChunks(rows, classes / kPackSize<T>, limits);
  return chunks > 1 ? sizeof(CrossEntropyPartial<ComputeType<T>>) * rows * chunks : 0;
}

// loss[r] and (stats[2 r], stats[2 r + 1]) for every row; the losses times *scale where that is not
// null. `workspace` is optional device memory of CrossEntropyWorkspaceBytes, aligned to 16 bytes.
template <class T>
cudaError_t LaunchCrossEntropy(const CrossEntropyRows<T>& p, ComputeType<T>* loss,
                               ComputeType<T>* stats, const DeviceLimits& limits,
                               cudaStream_t stream, void* workspace = nullptr,
                               const ComputeType<T>* scale = nullptr) {
  using P = CrossEntropyPolicy;
  if (p.rows <= 0) return cudaSuccess;
  const int64_t packs = p.classes / kPackSize<T>;
  if (packs <= P::kNarrowPacks) {
    return Launch(CrossEntropyGroupKernel<4, T>, CeilDiv(p.rows, P::kThreads / 4), P::kThreads, 0,
                  stream, p, scale, loss, stats);
  }
  if (packs <= P::kGroupPacks) {
    return Launch(CrossEntropyGroupKernel<kWarp, T>, CeilDiv(p.rows, P::kThreads / kWarp),
                  P::kThreads, 0, stream, p, scale, loss, stats);
  }
  const int chunks = workspace ? CrossEntropyChunks(p.rows, packs, limits) : 1;
  auto* partial = static_cast<CrossEntropyPartial<ComputeType<T>>*>(workspace);
  const cudaError_t error = Launch(CrossEntropyBlockKernel<T>, p.rows * chunks, P::kThreads, 0,
                                   stream, p, scale, loss, stats, chunks, partial);
  if (error != cudaSuccess || chunks == 1) return error;
  return Launch(CrossEntropyMergeKernel<T>, CeilDiv(p.rows, P::kThreads / kWarp), P::kThreads, 0,
                stream, p, scale, loss, stats, chunks, partial);
}

// A Store functor for LaunchSoftmax<true>: takes log-probabilities, writes the gradient of the loss
// (times *scale) and the loss. The softmax tiers keep the row on chip in between, so it moves
// through memory once each way. Without smoothing only.
template <class T>
struct CrossEntropyGradientStore {
  using Element = T;
  using C = ComputeType<T>;
  CrossEntropyRows<T> p;
  T* dx;
  const C* scale;  // may be null
  C* loss;

  __device__ __forceinline__ int Head(int64_t row) const {
    return ElementsToBoundary(dx + row * p.classes);
  }
  // Target and scale do not change while the kernel runs: __ldg lets the compiler load them once.
  template <int N>
  __device__ __forceinline__ void Store(int64_t row, int64_t col, const Pack<C, N>& logp) const {
    const int64_t target = __ldg(reinterpret_cast<const long long*>(p.target) + row);
    const C factor = scale ? __ldg(scale) : C(1);
    const bool counts = p.Counts(target);
    Pack<C, N> v;
#pragma unroll
    for (int i = 0; i < N; ++i) v.v[i] = counts ? ExpNonPositive(logp.v[i]) * factor : C(0);
    if (counts && target >= col && target < col + N) {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        if (target != col + i) continue;
        v.v[i] = (ExpNonPositive(logp.v[i]) - C(1)) * factor;
        loss[row] = -logp.v[i] * factor;
      }
    }
    if (!counts && col == 0) {  // 0 times an infinite factor: the mean over no row is NaN
      loss[row] = target == p.ignore_index ? C(0) * factor : static_cast<C>(NAN);
    }
    StorePack<N>(dx + row * p.classes + col, ConvertPack<T>(v));
  }
};

template <class T>
size_t CrossEntropyInPlaceWorkspaceBytes(int64_t rows, int64_t classes, bool smooth,
                                         const DeviceLimits& limits) {
  if (rows <= 0) return 0;
  if (!smooth) return SoftmaxWorkspaceBytes<T>(rows, classes, limits);
  return CrossEntropyStatsBytes<T>(rows) + CrossEntropyWorkspaceBytes<T>(rows, classes, limits);
}

// x becomes the gradient for dloss = *scale (1 where null), loss[r] becomes *scale times the loss.
// One read and one write of x without smoothing; with it, one read more. `workspace` as
// CrossEntropyInPlaceWorkspaceBytes says; it is optional without smoothing.
template <class T>
cudaError_t LaunchCrossEntropyInPlace(const CrossEntropyRows<T>& p, T* x,
                                      const ComputeType<T>* scale, ComputeType<T>* loss,
                                      const DeviceLimits& limits, cudaStream_t stream,
                                      void* workspace) {
  if (p.smoothing == 0 && p.classes > 0) {
    return LaunchSoftmax<true>(DirectLoad<T>{x, p.classes},
                               CrossEntropyGradientStore<T>{p, x, scale, loss}, p.rows, p.classes,
                               limits, stream, workspace);
  }
  auto* stats = static_cast<ComputeType<T>*>(workspace);
  char* rest = static_cast<char*>(workspace) + CrossEntropyStatsBytes<T>(p.rows);
  const bool spread = CrossEntropyWorkspaceBytes<T>(p.rows, p.classes, limits) > 0;
  const cudaError_t error =
      LaunchCrossEntropy(p, loss, stats, limits, stream, spread ? rest : nullptr, scale);
  if (error != cudaSuccess) return error;
  return LaunchCrossEntropyBackward(p, stats, scale, 0, x, limits, stream);
}

}  // namespace cuda
}  // namespace oneflow_lite
