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

// A thread's packs p, p + size, ... of a row, as far as they are below `last`.
template <int kPacks, class T, int N, class Index>
OFL_DEVICE void LoadTurn(const T* x, const RowSpan<N, Index>& span, Index p, Index last, int size,
                         StowedPack<T, N> (&turn)[kPacks]) {
  const T* const from = x + span.PackColumn(p);
#pragma unroll
  for (int u = 0; u < kPacks; ++u) {
    if (p + u * size < last) {
      turn[u] = StowedPack<T, N>::Of(LoadAlignedPack<N>(from + u * size * N));
    }
  }
}
template <int kPacks, class T, int N, class Index, class C>
OFL_DEVICE void FoldTurn(const StowedPack<T, N>* turn, Index p, Index last, int size, bool smooth,
                         C anchor, CrossEntropyPartial<C>& part) {
  C max = part.sum.max;
#pragma unroll
  for (int u = 0; u < kPacks; ++u) {
    if (p + u * size < last) max = Larger{}(max, MaxOf<C>(turn[u].Get()));
  }
  const RowExponential<C> exp(max);
  C sum = 0;
#pragma unroll
  for (int u = 0; u < kPacks; ++u) {
    if (p + u * size >= last) continue;
    const Pack<C, N> x = GetAs<C>(turn[u]);
    C some = exp(x.v[0]);
#pragma unroll
    for (int i = 1; i < N; ++i) some += exp(x.v[i]);
    sum += some;
    if (smooth) part.deviation += DeviationOf(x, anchor);
  }
  part.sum.sum = part.sum.sum * ExpNonPositive(part.sum.max - exp.max) + sum * exp.Weight();
  part.sum.max = max;
}

// The packs [begin, end) of a row, and its extras where with_extras, folded by a group's threads.
// The packs begin at x's own boundaries. kHeld: packs that a thread has at most, all of which it
// loads before it looks at one; 0 where they are many, and the next turn's are asked for before
// this turn's are looked at. The single columns come first of all, so that nobody waits for them in
// the end. What is not `wanted` is left out, but that is asked only when the first packs are on
// their way.
template <int kHeld, class T, int N, class Index, class Group, class Wanted>
OFL_DEVICE auto FoldRow(const T* x, const RowSpan<N, Index>& span, int64_t begin, int64_t end,
                        bool with_extras, const Group& group, bool smooth, ComputeType<T> anchor,
                        const Wanted& wanted) {
  using C = ComputeType<T>;
  constexpr int kPacks = kHeld > 0 ? kHeld : CrossEntropyPolicy::kUnroll;
  constexpr int kExtras = ExtrasPerThread<N>(Group::kLanes);
  const int rank = group.rank(), size = group.size(), extras = with_extras ? span.extras() : 0;
  const Index first = static_cast<Index>(begin) + rank, last = static_cast<Index>(end);
  Pack<C, kExtras> extra;
#pragma unroll
  for (int i = 0; i < kExtras; ++i) {
    const int e = rank + i * size;
    extra.v[i] = e < extras ? ConvertTo<C>(x[span.Column(e)]) : MinusInfinity<C>();
  }
  CrossEntropyPartial<C> part;
  StowedPack<T, N> turn[kPacks];
  LoadTurn(x, span, first, last, size, turn);
  if (!wanted()) return part;
  if (rank < extras) part.sum.Add(extra);
#pragma unroll
  for (int i = 0; i < kExtras; ++i) {
    if (smooth && rank + i * size < extras) part.deviation += extra.v[i] - anchor;
  }
  if constexpr (kHeld > 0) {
    // Whole blocks of loads: the compiler mixes them with the search for the maximum.
#pragma unroll
    for (auto& pack : turn) pack.Pin();
    // Exponentials of float64 take as long as loads: those of the first packs are done meanwhile.
    constexpr int kTurn = sizeof(T) < 8 ? kHeld : Group::kLanes <= kWarp ? 2 : 4;
#pragma unroll
    for (int u = 0; u < kHeld; u += kTurn) {
      FoldTurn<kTurn>(turn + u, first + u * size, last, size, smooth, anchor, part);
    }
    return part;
  }
  StowedPack<T, N> next[kPacks];
  const Index step = 2 * kPacks * size;
  for (Index p = first; p < last; p += step) {
    const Index after = p + step / 2;
    LoadTurn(x, span, after, last, size, next);
    FoldTurn<kPacks>(turn, p, last, size, smooth, anchor, part);
    if (after >= last) break;
    LoadTurn(x, span, p + step, last, size, turn);
    FoldTurn<kPacks>(next, after, last, size, smooth, anchor, part);
  }
  return part;
}

template <class C, class Group>
OFL_DEVICE auto ReducePartial(CrossEntropyPartial<C> part, bool smooth, Group& group) {
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
              : target == p.ignore_index ? C(0)
                                         : static_cast<C>(NAN);
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
  // kHeld: FoldRow's; kAsks: whether rows that do not count are left out.
  template <int kHeld, bool kAsks, class Group>
  OFL_DEVICE void Fold(Group& group, int64_t chunk, int64_t chunks) {
    using Span = RowSpan<N, std::conditional_t<(kHeld > 0), int, int64_t>>;
    const bool smooth = p.smoothing != 0;
    const Span span = active ? Span(ElementsToBoundary(x), p.classes) : Span();
    part = FoldRow<kHeld>(x, span, span.packs * chunk / chunks, span.packs * (chunk + 1) / chunks,
                          chunk == 0, group, smooth, anchor, [&] {
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

// A row per group of kLanes lanes, which hold it. Ignored rows are read as well: to look at the
// target first would cost every row the wait for it.
template <int kLanes, int kPacks, class T>
__global__ void __launch_bounds__(CrossEntropyPolicy::kFoldThreads)
    CrossEntropyGroupKernel(CrossEntropyRows<T> p, ComputeType<T>* loss, ComputeType<T>* stats) {
  constexpr int kRows = CrossEntropyPolicy::kFoldThreads / kLanes;
  LaneGroup<kLanes> group;
  const int64_t at = int64_t{blockIdx.x} * kRows + threadIdx.x / kLanes;
  LossRow<T> row(p, at, at < p.rows);
  row.template Fold<kPacks, false>(group, 0, 1);
  if (group.rank() == 0) row.Write(loss, stats);
}

// The same of a row per block.
template <int kPacks, class T>
__global__ void __launch_bounds__(CrossEntropyPolicy::kHeldPacks / kPacks,
                                  CrossEntropyPolicy::kHeldBlocks<kPacks, T>)
    CrossEntropyHeldKernel(CrossEntropyRows<T> p, ComputeType<T>* loss, ComputeType<T>* stats) {
  __shared__ __align__(16) char scratch[Block::kScratchBytes];
  Block block(scratch);
  LossRow<T> row(p, blockIdx.x);
  row.template Fold<kPacks, false>(block, 0, 1);
  if (threadIdx.x == 0) row.Write(loss, stats);
}

// A block per row, or per chunk of one, whose parts go to `partial`. kCluster: few rows, whose
// chunks are those of a cluster's blocks, which merge their parts.
template <bool kCluster, class T>
__global__ void __launch_bounds__(CrossEntropyPolicy::kFoldThreads,
                                  CrossEntropyPolicy::kFoldBlocks<T>)
    CrossEntropyBlockKernel(CrossEntropyRows<T> p, ComputeType<T>* loss, ComputeType<T>* stats,
                            unsigned chunks, CrossEntropyPartial<ComputeType<T>>* partial) {
  constexpr int kMore = kCluster ? ClusterExchange::kScratchBytes : 0;
  __shared__ __align__(16) char scratch[Block::kScratchBytes + kMore];
  Block block(scratch);
  ClusterExchange cluster;
  if constexpr (kCluster) cluster.Start(scratch + Block::kScratchBytes);
  LossRow<T> row(p, blockIdx.x / chunks);
  const unsigned chunk = blockIdx.x % chunks;
  row.template Fold<0, !kCluster>(block, chunk, chunks);
  if constexpr (kCluster) {
    row.part = cluster.Reduce(row.part, MergePartials{}, CrossEntropyPartial<ComputeType<T>>{});
  }
  if (threadIdx.x != 0) return;
  if (kCluster ? chunk == 0 : chunks == 1) {
    row.Write(loss, stats);
  } else if (!kCluster) {
    partial[blockIdx.x] = row.part;
  }
}

// Merges the chunks of a row, a warp per row.
template <class T>
__global__ void __launch_bounds__(CrossEntropyPolicy::kThreads)
    CrossEntropyMergeKernel(CrossEntropyRows<T> p, ComputeType<T>* loss, ComputeType<T>* stats,
                            int chunks, const CrossEntropyPartial<ComputeType<T>>* partial) {
  constexpr int kRows = CrossEntropyPolicy::kThreads / kWarp;
  LaneGroup<kWarp> group;
  const int64_t at = int64_t{blockIdx.x} * kRows + threadIdx.x / kWarp;
  LossRow<T> row(p, at, at < p.rows);
  row.target_logit = TargetLogitOf(p, at, row.target);
  for (int i = group.rank(); row.active && i < chunks; i += kWarp) {
    row.part = MergePartials{}(row.part, partial[at * chunks + i]);
  }
  row.part = ReducePartial(row.part, true, group);
  if (group.rank() == 0) row.Write(loss, stats);
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
  const bool few = p.rows < P::kBlocksPerMultiprocessor * limits.multiprocessors;
  if (packs <= kWarp * (few ? 4 : P::kMostOfLane<T>)) {
    return VisitShapes<GroupShape<4, 4>, GroupShape<16, 4>, GroupShape<32, 4>,
                       GroupShape<32, P::kMostOfLane<T>>>(packs, [&](auto shape) {
      constexpr int kLanes = decltype(shape)::lanes;
      return Launch(CrossEntropyGroupKernel<kLanes, decltype(shape)::packs, T>,
                    CeilDiv(p.rows, P::kFoldThreads / kLanes), P::kFoldThreads, 0, stream, p, loss,
                    stats);
    });
  }
  if (packs <= P::kHeldPacks) {
    constexpr int kMost = P::kMostHeld<T>;
    return VisitNumber<4, kMost>(few || packs <= P::kFewHeldPacks ? 4 : kMost, [&](auto each) {
      constexpr int kPacks = decltype(each)::value;
      return Launch(CrossEntropyHeldKernel<kPacks, T>, p.rows,
                    CeilDiv(packs, kPacks * kWarp) * kWarp, 0, stream, p, loss, stats);
    });
  }
  int chunks = CrossEntropyChunks(p.rows, packs, limits);
  if (chunks > 1 && IsClusterOfChunks(packs, limits)) {
    constexpr auto kKernel = CrossEntropyBlockKernel<true, T>;
    chunks = static_cast<int>(Min(chunks, MaxClusterBlocks<kKernel>(P::kFoldThreads, 0, limits)));
    return LaunchAs({chunks}, kKernel, p.rows * chunks, P::kFoldThreads, 0, stream, p, loss, stats,
                    chunks, nullptr);
  }
  if (!workspace) chunks = 1;
  auto* partial = static_cast<CrossEntropyPartial<ComputeType<T>>*>(workspace);
  const cudaError_t error = Launch(CrossEntropyBlockKernel<false, T>, p.rows * chunks,
                                   P::kFoldThreads, 0, stream, p, loss, stats, chunks, partial);
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
