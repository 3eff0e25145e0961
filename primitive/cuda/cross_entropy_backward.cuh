// SPDX-License-Identifier: Apache-2.0
//
// The gradient of cross entropy from the rows' statistics, and the multiplication of rows that were
// made ready in advance: elementwise along rows, in packs aligned to what is written.
#pragma once

#include "primitive/cuda/cross_entropy_rows.cuh"
#include "primitive/cuda/row_io.cuh"
#include "primitive/cuda/softmax_math.cuh"

namespace oneflow_lite {
namespace cuda {

// This thread's share of a task: a row, the packs [first, last) of it, and its place among the
// lanes that work on it.
template <int N>
struct RowShare {
  int64_t row, first, last;
  int rank, lanes;
  bool with_extras;

  __device__ __forceinline__ RowShare(const RowTasks& tasks, int64_t task) {
    const int64_t group = task / tasks.chunks;
    chunk_ = task - group * tasks.chunks;
    chunks_ = tasks.chunks;
    lanes = 1 << tasks.lane_bits;
    rank = threadIdx.x & (lanes - 1);
    row = group * (blockDim.x >> tasks.lane_bits) + (threadIdx.x >> tasks.lane_bits);
    with_extras = chunk_ == 0;
  }
  __device__ __forceinline__ void Cut(const RowSpan<N>& span) {
    first = span.packs * chunk_ / chunks_;
    last = span.packs * (chunk_ + 1) / chunks_;
  }

 private:
  int64_t chunk_, chunks_;
};

// y[c] = f(x[c], c) over the packs of this thread's share, which are aligned in y, and in x too
// where kAligned.
template <bool kAligned, int N, class T, class F>
__device__ __forceinline__ void MapPacks(const T* x, T* y, const RowSpan<N>& span,
                                         const RowShare<N>& share, const F& f) {
  using C = ComputeType<T>;
  constexpr int kUnroll = CrossEntropyPolicy::kUnroll;
  for (int64_t p = share.first + share.rank; p < share.last; p += int64_t{kUnroll} * share.lanes) {
    Pack<T, N> raw[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const int64_t at = p + u * share.lanes;
      if (at >= share.last) continue;
      if constexpr (kAligned) {
        raw[u] = LoadAlignedPack<N>(x + span.PackColumn(at));
      } else {
        raw[u] = at > 0 && at + 1 < span.packs ? LoadShiftedPack<N>(x + span.PackColumn(at))
                                               : LoadPack<N>(x + span.PackColumn(at));
      }
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const int64_t at = p + u * share.lanes;
      if (at >= share.last) continue;
      const int64_t col = span.PackColumn(at);
      StoreAlignedPack<N>(y + col, ConvertPack<T>(f(ConvertPack<C>(raw[u]), col)));
    }
  }
}

// The same over all of its share of a row; f maps packs of the compute type at a column. x may be
// y.
template <int N, class T, class F>
__device__ __forceinline__ void MapRow(const T* x, T* y, int64_t cols, RowShare<N> share,
                                       const F& f) {
  using C = ComputeType<T>;
  const RowSpan<N> span(ElementsToBoundary(y), cols);
  share.Cut(span);
  if (IsAlignedFor<uint4>(x + span.head)) {
    MapPacks<true>(x, y, span, share, f);
  } else {
    MapPacks<false>(x, y, span, share, f);
  }
  if (!share.with_extras) return;
  for (int e = share.rank; e < span.extras(); e += share.lanes) {
    const int64_t col = span.Column(e);
    StorePack<1>(y + col, ConvertPack<T>(f(ConvertPack<C>(LoadPack<1>(x + col)), col)));
  }
}

// y = 0 over this thread's share of a row.
template <int N, class T>
__device__ __forceinline__ void ZeroRow(T* y, int64_t cols, RowShare<N> share) {
  const RowSpan<N> span(ElementsToBoundary(y), cols);
  share.Cut(span);
  Pack<T, N> zero;
#pragma unroll
  for (T& v : zero.v) v = ConvertTo<T>(0.0f);
  for (int64_t p = share.first + share.rank; p < share.last; p += share.lanes) {
    StoreAlignedPack<N>(y + span.PackColumn(p), zero);
  }
  if (!share.with_extras) return;
  for (int e = share.rank; e < span.extras(); e += share.lanes) y[span.Column(e)] = zero.v[0];
}

// dx = (exp(x - max - log_sum) - uniform) dloss, less `sharp` of dloss at the target.
template <class C>
struct CrossEntropyGradient {
  C max, log_sum, uniform, sharp, dloss;
  int64_t target;

  template <int N>
  __device__ __forceinline__ Pack<C, N> operator()(Pack<C, N> x, int64_t col) const {
#pragma unroll
    for (C& v : x.v) v = (ExpNonPositive((v - max) - log_sum) - uniform) * dloss;
    if (target >= col && target < col + N) {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        if (target == col + i) x.v[i] -= sharp * dloss;
      }
    }
    return x;
  }
};

template <class T>
__global__ void __launch_bounds__(CrossEntropyPolicy::kThreads, CrossEntropyPolicy::kMapBlocks)
    CrossEntropyBackwardKernel(CrossEntropyRows<T> p, const ComputeType<T>* stats,
                               const ComputeType<T>* dloss, int64_t dloss_stride, T* dx,
                               RowTasks tasks) {
  using C = ComputeType<T>;
  constexpr int N = kPackSize<T>;
  for (int64_t task = blockIdx.x; task < tasks.count; task += gridDim.x) {
    const RowShare<N> share(tasks, task);
    if (share.row >= p.rows) continue;
    const int64_t offset = share.row * p.classes, target = p.target[share.row];
    if (!p.Counts(target)) {
      ZeroRow<N>(dx + offset, p.classes, share);
      continue;
    }
    const CrossEntropyGradient<C> gradient{stats[2 * share.row],
                                           stats[2 * share.row + 1],
                                           p.smoothing / static_cast<C>(p.classes),
                                           C(1) - p.smoothing,
                                           dloss ? dloss[share.row * dloss_stride] : C(1),
                                           target};
    MapRow<N>(p.x + offset, dx + offset, p.classes, share, gradient);
  }
}

// stats is the forward's; dloss of row r lies at r * dloss_stride, null stands for 1. dx may be
// p.x.
template <class T>
cudaError_t LaunchCrossEntropyBackward(const CrossEntropyRows<T>& p, const ComputeType<T>* stats,
                                       const ComputeType<T>* dloss, int64_t dloss_stride, T* dx,
                                       const DeviceLimits& limits, cudaStream_t stream) {
  if (p.rows <= 0 || p.classes <= 0) return cudaSuccess;
  const RowTasks tasks = MakeRowTasks(p.rows, p.classes / kPackSize<T>, limits);
  return Launch(CrossEntropyBackwardKernel<T>, tasks.count, CrossEntropyPolicy::kThreads, 0, stream,
                p, stats, dloss, dloss_stride, dx, tasks);
}

template <class C>
struct ScaleBy {
  C factor;
  template <int N>
  __device__ __forceinline__ Pack<C, N> operator()(Pack<C, N> x, int64_t) const {
#pragma unroll
    for (C& v : x.v) v *= factor;
    return x;
  }
};

template <class T>
__global__ void __launch_bounds__(CrossEntropyPolicy::kThreads, CrossEntropyPolicy::kMapBlocks)
    ScaleRowsKernel(T* x, int64_t rows, int64_t cols, const ComputeType<T>* factor, int64_t stride,
                    RowTasks tasks) {
  constexpr int N = kPackSize<T>;
  if (stride == 0 && *factor == ComputeType<T>(1)) return;
  for (int64_t task = blockIdx.x; task < tasks.count; task += gridDim.x) {
    const RowShare<N> share(tasks, task);
    if (share.row >= rows) continue;
    const ScaleBy<ComputeType<T>> scale{factor[share.row * stride]};
    if (scale.factor == ComputeType<T>(1)) continue;
    T* row = x + share.row * cols;
    MapRow<N>(row, row, cols, share, scale);
  }
}

// x[r, :] *= factor[r * stride]. A grid no larger than the device: most often there is nothing to
// do, which should not take long to find out.
template <class T>
cudaError_t LaunchScaleRows(T* x, int64_t rows, int64_t cols, const ComputeType<T>* factor,
                            int64_t stride, const DeviceLimits& limits, cudaStream_t stream) {
  using P = CrossEntropyPolicy;
  if (rows <= 0 || cols <= 0) return cudaSuccess;
  const RowTasks tasks = MakeRowTasks(rows, cols / kPackSize<T>, limits);
  const int64_t most = int64_t{2 * P::kBlocksPerMultiprocessor} * limits.multiprocessors;
  return Launch(ScaleRowsKernel<T>, tasks.count < most ? tasks.count : most, P::kThreads, 0, stream,
                x, rows, cols, factor, stride, tasks);
}

// 1 over the number of targets that are not ignored.
template <class C>
__global__ void MeanWeightKernel(const int64_t* target, int64_t rows, int64_t ignore_index,
                                 C* weight) {
  __shared__ __align__(16) char scratch[Block::kScratchBytes];
  Block block(scratch);
  int counted = 0;
  for (int64_t row = threadIdx.x; row < rows; row += blockDim.x) {
    counted += target[row] != ignore_index;
  }
  counted = block.Reduce(counted, Plus{}, 0);
  if (threadIdx.x == 0) *weight = C(1) / static_cast<C>(counted);
}

// One block: meant for as many targets as it counts quickly.
template <class C>
cudaError_t LaunchMeanWeight(const int64_t* target, int64_t rows, int64_t ignore_index, C* weight,
                             cudaStream_t stream) {
  return Launch(MeanWeightKernel<C>, 1, 32 * kMaxWarps, 0, stream, target, rows, ignore_index,
                weight);
}

}  // namespace cuda
}  // namespace oneflow_lite
