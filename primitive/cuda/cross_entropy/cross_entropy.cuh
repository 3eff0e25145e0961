// SPDX-License-Identifier: Apache-2.0
//
// Cross entropy of logits with class targets, header-only like softmax/softmax.cuh: loss, gradient,
// and both in one go. The formulas and corner cases are those of primitive/cross_entropy.h.
//
//   CrossEntropyRows<__nv_bfloat16> p{rows, classes, /*ignore_index=*/-100, /*smoothing=*/0.0f,
//                                     x, target, /*row_stride=*/classes};
//   LaunchCrossEntropy(p, loss, stats, limits, stream);                 // reads x once
//   LaunchCrossEntropyBackward(p, stats, dloss, 1, dx, limits, stream);  // reads x, writes dx
//   LaunchCrossEntropyInPlace(p, x, scale, loss, limits, stream);        // both, x becomes dx
//
// How forward works is in cross_entropy/README.md. Backward is elementwise once the statistics are
// known; in place, it is an algorithm of the row kernels, wide rows of whole packs of
// rows/whole.cuh.
#pragma once

#include "primitive/cuda/chip/cluster_exchange.cuh"
#include "primitive/cuda/chip/group.cuh"
#include "primitive/cuda/chip/launch.cuh"
#include "primitive/cuda/chip/pack.cuh"
#include "primitive/cuda/cross_entropy/gradient.cuh"
#include "primitive/cuda/cross_entropy/in_place.cuh"
#include "primitive/cuda/cross_entropy/rows.cuh"

namespace oneflow_lite::cuda {

template <int kUnroll, class T, int N>
OFL_DEVICE void LoadTurn(const T* x, const RowSpan<N>& span, int64_t p, int64_t last, int size,
                         StowedPack<T, N> (&turn)[kUnroll]) {
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    if (p + u * size < last) {
      turn[u] = StowedPack<T, N>::Of(LoadAlignedPack<N>(x + span.PackColumn(p + u * size)));
    }
  }
}
template <int kUnroll, class T, int N, class C>
OFL_DEVICE void FoldTurn(const StowedPack<T, N> (&turn)[kUnroll], int64_t p, int64_t last, int size,
                         bool smooth, C anchor, CrossEntropyPartial<C>& part) {
  C max = part.sum.max;
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    if (p + u * size < last) max = Larger{}(max, MaxOf<C>(turn[u].Get()));
  }
  const C shift = OnlineSum<C>::Finite(max);
  part.sum.sum *= ExpNonPositive(part.sum.max - shift);
  part.sum.max = max;
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    if (p + u * size >= last) continue;
    const Pack<C, N> x = ConvertPack<C>(turn[u].Get());
    C sum = 0;
#pragma unroll
    for (const C& v : x.v) sum += ExpNonPositive(v - shift);
    part.sum.sum += sum;
    if (!smooth) continue;
#pragma unroll
    for (const C& v : x.v) part.deviation += v - anchor;
  }
}

// The packs [first, last) of a row, and its extras where with_extras, folded by `size` threads. The
// packs begin at x's own boundaries. The next turn's packs are asked for before this turn's are
// looked at; the single columns first of all, so that nobody waits for them in the end. What is not
// `wanted` is left out, but that is asked only when the first packs are on their way.
template <class T, int N, class Wanted>
OFL_DEVICE CrossEntropyPartial<ComputeType<T>> FoldRow(const T* x, const RowSpan<N>& span,
                                                       int64_t first, int64_t last,
                                                       bool with_extras, int rank, int size,
                                                       bool smooth, ComputeType<T> anchor,
                                                       const Wanted& wanted) {
  using C = ComputeType<T>;
  constexpr int kUnroll = CrossEntropyPolicy::kUnroll;
  const int extras = with_extras ? span.extras() : 0;
  const C extra = rank < extras ? ConvertTo<C>(x[span.Column(rank)]) : MinusInfinity<C>();
  CrossEntropyPartial<C> part;
  StowedPack<T, N> turn[kUnroll], next[kUnroll];
  LoadTurn(x, span, first + rank, last, size, turn);
  if (!wanted()) return part;
  const int64_t step = int64_t{2 * kUnroll} * size;
  for (int64_t p = first + rank; p < last; p += step) {
    const int64_t after = p + step / 2;
    LoadTurn(x, span, after, last, size, next);
    FoldTurn(turn, p, last, size, smooth, anchor, part);
    if (after >= last) break;
    LoadTurn(x, span, p + step, last, size, turn);
    FoldTurn(next, after, last, size, smooth, anchor, part);
  }
  for (int e = rank; e < extras; e += size) {
    const C v = e == rank ? extra : ConvertTo<C>(x[span.Column(e)]);
    part.sum.Add(Pack<C, 1>{{v}});
    if (smooth) part.deviation += v - anchor;
  }
  return part;
}

template <class C, class Group>
OFL_DEVICE CrossEntropyPartial<C> ReducePartial(CrossEntropyPartial<C> part, bool smooth,
                                                Group& group) {
  part.sum = group.Reduce(part.sum, MergeOnline{}, OnlineSum<C>{});
  if (smooth) part.deviation = group.Reduce(part.deviation, Plus{}, C(0));
  return part;
}

// By one thread per row.
template <class T, class C = ComputeType<T>>
OFL_DEVICE void WriteLoss(const CrossEntropyRows<T>& p, C* loss, C* stats, int64_t row,
                          int64_t target, C target_logit, C anchor,
                          const CrossEntropyPartial<C>& part) {
  const bool counts = p.Counts(target);
  const C log_sum = counts ? LogOf(part.sum.sum) : C(0);
  loss[row] = counts ? LossOf(p, target_logit, part.sum.max, log_sum, anchor, part.deviation)
                     : LossWithoutTarget(p, target);
  stats[2 * row] = counts ? part.sum.max : C(0);
  stats[2 * row + 1] = log_sum;
}

// A row of the forward, or a chunk of one, in the hands of a group of threads.
template <class T>
struct LossRow {
  using C = ComputeType<T>;
  static constexpr int N = kPackSize<T>;
  const CrossEntropyRows<T>& p;
  bool active;  // else there is no such row
  int64_t row, target;
  const T* x;
  C anchor, target_logit = 0;
  CrossEntropyPartial<C> part;

  OFL_DEVICE LossRow(const CrossEntropyRows<T>& p, int64_t row, bool active = true)
      : p(p),
        active(active),
        row(row),
        target(active ? p.target[row] : p.ignore_index),
        x(p.x + (active ? row : 0) * p.row_stride),
        anchor(AnchorOf(p, x)) {}
  // kAsks: whether rows that do not count are left out.
  template <bool kAsks, class Group>
  OFL_DEVICE void Fold(Group& group, int64_t chunk, int64_t chunks) {
    const bool smooth = p.smoothing != 0;
    const auto span = active ? RowSpan<N>(ElementsToBoundary(x), p.classes) : RowSpan<N>();
    part = FoldRow<T, N>(x, span, span.packs * chunk / chunks, span.packs * (chunk + 1) / chunks,
                         chunk == 0, group.rank(), group.size(), smooth, anchor, [&] {
                           if (kAsks && !p.Counts(target)) return false;  // for all threads
                           target_logit = TargetLogitOf(p, row, target);
                           return true;
                         });
    part = ReducePartial(part, smooth, group);
  }
  OFL_DEVICE void Write(C* loss, C* stats) const {
    if (active) WriteLoss(p, loss, stats, row, target, target_logit, anchor, part);
  }
};

// A row per group of kLanes lanes. Ignored rows are read as well: to look at the target first would
// cost every row the wait for it.
template <int kLanes, class T>
__global__ void __launch_bounds__(CrossEntropyPolicy::kFoldThreads,
                                  CrossEntropyPolicy::kGroupBlocks<T>)
    CrossEntropyGroupKernel(CrossEntropyRows<T> p, ComputeType<T>* loss, ComputeType<T>* stats) {
  constexpr int kRows = CrossEntropyPolicy::kFoldThreads / kLanes;
  LaneGroup<kLanes> group;
  for (int64_t base = int64_t{blockIdx.x} * kRows; base < p.rows;
       base += int64_t{gridDim.x} * kRows) {
    const int64_t at = base + threadIdx.x / kLanes;
    LossRow<T> row(p, at, at < p.rows);
    row.template Fold<false>(group, 0, 1);
    if (group.rank() == 0) row.Write(loss, stats);
  }
}

// A block per row, or per chunk of one: then the parts go to `partial`.
template <class T>
__global__ void __launch_bounds__(CrossEntropyPolicy::kFoldThreads,
                                  CrossEntropyPolicy::kFoldBlocks<T>)
    CrossEntropyBlockKernel(CrossEntropyRows<T> p, ComputeType<T>* loss, ComputeType<T>* stats,
                            int chunks, CrossEntropyPartial<ComputeType<T>>* partial) {
  __shared__ __align__(16) char scratch[Block::kScratchBytes];
  Block block(scratch);
  for (int64_t task = blockIdx.x; task < p.rows * chunks; task += gridDim.x) {
    LossRow<T> row(p, task / chunks);
    row.template Fold<true>(block, task - row.row * chunks, chunks);
    if (threadIdx.x != 0) continue;
    if (chunks == 1) {
      row.Write(loss, stats);
    } else {
      partial[task] = row.part;
    }
  }
}

// Few rows: a row per cluster of blocks, which merge their parts.
template <class T>
__global__ void __launch_bounds__(CrossEntropyPolicy::kFoldThreads,
                                  CrossEntropyPolicy::kFoldBlocks<T>)
    CrossEntropyClusterKernel(CrossEntropyRows<T> p, ComputeType<T>* loss, ComputeType<T>* stats) {
  __shared__ __align__(16) char scratch[Block::kScratchBytes + ClusterExchange::kScratchBytes];
  Block block(scratch);
  ClusterExchange cluster;
  cluster.Start(scratch + Block::kScratchBytes);
  LossRow<T> row(p, internal::ClusterIndex());
  row.template Fold<false>(block, cluster.rank(), cluster.size());
  row.part = cluster.Reduce(row.part, MergePartials{}, CrossEntropyPartial<ComputeType<T>>{});
  if (cluster.rank() == 0 && threadIdx.x == 0) row.Write(loss, stats);
}

// Merges the chunks of a row, a warp per row.
template <class T>
__global__ void __launch_bounds__(CrossEntropyPolicy::kThreads)
    CrossEntropyMergeKernel(CrossEntropyRows<T> p, ComputeType<T>* loss, ComputeType<T>* stats,
                            int chunks, const CrossEntropyPartial<ComputeType<T>>* partial) {
  constexpr int kRows = CrossEntropyPolicy::kThreads / kWarp;
  LaneGroup<kWarp> group;
  for (int64_t base = int64_t{blockIdx.x} * kRows; base < p.rows;
       base += int64_t{gridDim.x} * kRows) {
    const int64_t at = base + threadIdx.x / kWarp;
    LossRow<T> row(p, at, at < p.rows);
    row.target_logit = TargetLogitOf(p, at, row.target);
    for (int i = group.rank(); row.active && i < chunks; i += kWarp) {
      row.part = MergePartials{}(row.part, partial[at * chunks + i]);
    }
    row.part = ReducePartial(row.part, true, group);
    if (group.rank() == 0) row.Write(loss, stats);
  }
}

// Bytes of workspace with which few wide rows are spread over the device.
template <class T>
size_t CrossEntropyWorkspaceBytes(int64_t rows, int64_t classes, const DeviceLimits& limits) {
  const int64_t packs = classes / kPackSize<T>;
  if (IsClusterOfChunks(packs, limits)) return 0;
  const int chunks = CrossEntropyChunks(rows, packs, limits);
  return chunks > 1 ? sizeof(CrossEntropyPartial<ComputeType<T>>) * rows * chunks : 0;
}

// loss[r] and (stats[2 r], stats[2 r + 1]) for every row. `workspace` is optional device memory of
// CrossEntropyWorkspaceBytes, aligned to 16 bytes.
template <class T>
cudaError_t LaunchCrossEntropy(const CrossEntropyRows<T>& p, ComputeType<T>* loss,
                               ComputeType<T>* stats, const DeviceLimits& limits,
                               cudaStream_t stream, void* workspace = nullptr) {
  using P = CrossEntropyPolicy;
  if (p.rows <= 0) return cudaSuccess;
  const int64_t packs = p.classes / kPackSize<T>;
  if (packs <= P::kGroupPacks) {
    return VisitNumber<4, kWarp>(packs <= P::kNarrowPacks ? 4 : kWarp, [&](auto lanes) {
      constexpr int kLanes = decltype(lanes)::value;
      return Launch(CrossEntropyGroupKernel<kLanes, T>, CeilDiv(p.rows, P::kFoldThreads / kLanes),
                    P::kFoldThreads, 0, stream, p, loss, stats);
    });
  }
  int chunks = CrossEntropyChunks(p.rows, packs, limits);
  if (chunks > 1 && IsClusterOfChunks(packs, limits)) {
    const int most = MaxClusterBlocks<CrossEntropyClusterKernel<T>>(P::kFoldThreads, 0, limits);
    if (chunks > most) chunks = most;
    return LaunchAs({chunks}, CrossEntropyClusterKernel<T>, p.rows * chunks, P::kFoldThreads, 0,
                    stream, p, loss, stats);
  }
  if (!workspace) chunks = 1;
  auto* partial = static_cast<CrossEntropyPartial<ComputeType<T>>*>(workspace);
  const cudaError_t error = Launch(CrossEntropyBlockKernel<T>, p.rows * chunks, P::kFoldThreads, 0,
                                   stream, p, loss, stats, chunks, partial);
  if (error != cudaSuccess || chunks == 1) return error;
  return Launch(CrossEntropyMergeKernel<T>, CeilDiv(p.rows, P::kThreads / kWarp), P::kThreads, 0,
                stream, p, loss, stats, chunks, partial);
}

// x becomes the gradient for dloss = *scale (1 where null), loss[r] becomes *scale times the loss:
// one read and one write of x. `workspace`, CrossEntropyInPlaceWorkspaceBytes, is optional.
template <class T>
cudaError_t LaunchCrossEntropyInPlace(const CrossEntropyRows<T>& p, T* x,
                                      const ComputeType<T>* scale, ComputeType<T>* loss,
                                      const DeviceLimits& limits, cudaStream_t stream,
                                      void* workspace = nullptr) {
  if (p.rows <= 0) return cudaSuccess;
  return VisitBool(p.smoothing != 0, [&](auto smooth) {
    constexpr bool kSmooth = decltype(smooth)::value;
    const CrossEntropyInPlaceRow<T, kSmooth> every(p, x, scale, loss);
    if (p.classes == 0) return internal::LaunchWide(every, {{limits, stream}, p.rows, 0});
    if constexpr (sizeof(ComputeType<T>) < 8) {
      const CrossEntropyInPlaceRow<T, kSmooth, true> row(p, x, scale, loss);
      cudaError_t error = kNotServed;
      if (row.IsOfPacks(p.classes)) {
        error = internal::LaunchWholeBlocks(row, true, {{limits, stream}, p.rows, p.classes});
      }
      if (error != kNotServed) return error;
    }
    return LaunchRows(every, p.rows, p.classes, limits, stream, workspace);
  });
}
template <class T>
size_t CrossEntropyInPlaceWorkspaceBytes(int64_t rows, int64_t classes,
                                         const DeviceLimits& limits) {
  return RowWorkspaceBytes<CrossEntropyInPlaceRow<T, true>>(rows, classes, limits);
}

// What makes one loss of the losses of all rows: one block each, meant for as many rows as it reads
// quickly.

// The sum over rows of f(row) by the threads of a block; f is called for several rows at once, so
// that it is waited for once.
template <class S, class F>
OFL_DEVICE S SumOverRows(int64_t rows, Block& block, const F& f) {
  constexpr int kAtOnce = 8;
  S sum = 0;
  for (int64_t row = threadIdx.x; row < rows; row += kAtOnce * int64_t{blockDim.x}) {
    S some[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int64_t at = row + i * int64_t{blockDim.x};
      some[i] = at < rows ? f(at) : S(0);
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) sum += some[i];
  }
  return block.Reduce(sum, Plus{}, S(0));
}

// *value = *weight times the sum of the losses; *weight is 1 over the number of targets that are
// not ignored, 1 where target is null. Without `value` it is the weight alone that is asked for.
template <class T, class C>
__global__ void __launch_bounds__(kWarp* kMaxWarps)
    ReduceLossKernel(const C* loss, const int64_t* target, int64_t rows, int64_t ignore_index,
                     T* value, C* weight) {
  __shared__ __align__(16) char scratch[Block::kScratchBytes];
  Block block(scratch);
  const C sum = SumOverRows<C>(value ? rows : 0, block, [&](int64_t row) { return loss[row]; });
  C each = 1;
  if (target || !value) {
    each /= static_cast<C>(SumOverRows<int64_t>(
        rows, block, [&](int64_t row) { return target[row] != ignore_index; }));
  }
  if (threadIdx.x != 0) return;
  if (value) *value = ConvertTo<T>(sum * each);
  *weight = each;
}

}  // namespace oneflow_lite::cuda
