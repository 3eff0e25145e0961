// SPDX-License-Identifier: Apache-2.0
//
// Cross entropy of logits in parts, of the row kernels' pieces: a block folds a part's row, a
// thread merges a row's parts, and the gradient is elementwise.
#include "primitive/cuda/cross_entropy/cross_entropy.cuh"
#include "primitive/cuda/losses/cross_entropy_split_launch.h"
#include "primitive/cuda/strided/elements.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

using Policy = CrossEntropyPolicy;

template <class T>
CrossEntropyRows<T> RowsOf(const ClassPartShape& s, const void* x, const int64_t* target) {
  return {s.rows,
          s.count,
          s.ignore_index,
          static_cast<ComputeType<T>>(s.smoothing),
          static_cast<const T*>(x),
          target,
          s.row_stride};
}

template <class T>
__global__ void __launch_bounds__(Policy::kFoldThreads, Policy::kFoldBlocks<T>)
    ClassPartKernel(CrossEntropyRows<T> p, int64_t first, ComputeType<T>* part) {
  using C = ComputeType<T>;
  __shared__ __align__(16) char scratch[Block::kScratchBytes];
  Block block(scratch);
  const bool smooth = p.smoothing != C(0);
  for (int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
    const int64_t target = p.target[row], column = target - first;
    const bool counts = target != p.ignore_index;
    const T* x = p.x + row * p.row_stride;
    const RowSpan<kPackSize<T>> span(ElementsToBoundary(x), p.classes);
    const C anchor = AnchorOf(p, x);
    C target_logit = 0;
    auto found = FoldRow<0>(x, span, 0, span.packs, true, block, smooth, anchor, [&] {
      if (!counts) return false;  // nor in the other threads
      if (column >= 0 && column < p.classes) target_logit = ConvertTo<C>(x[column]);
      return true;
    });
    found = ReducePartial(found, smooth, block);
    if (threadIdx.x != 0) continue;
    C* out = part + row * kPartNumbers;
    const C shift = OnlineSum<C>::Finite(found.sum.max);
    const C deviation = found.deviation + static_cast<C>(p.classes) * (anchor - shift);
    out[0] = counts ? found.sum.max : C(0);
    out[1] = counts ? found.sum.sum : C(0);
    out[2] = target_logit;
    out[3] = counts && smooth && p.classes > 0 ? deviation : C(0);
  }
}

// The loss of a row that counts, and its statistics. parts: of the first part; the others' lie
// `step` behind one another.
template <class C>
__device__ __forceinline__ C MergeRow(const ClassMergeShape& s, const C* parts, int64_t step,
                                      C* max_out, C* log_sum_out) {
  C max = MinusInfinity<C>();
  for (int64_t k = 0; k < s.parts; ++k) max = Larger{}(max, parts[k * step]);
  const C shift = OnlineSum<C>::Finite(max);
  C sum = 0, at = 0, deviation = 0;
  for (int64_t k = 0; k < s.parts; ++k) {
    const C* part = parts + k * step;
    sum += part[1] * ExpNonPositive(part[0] - shift);
    at += part[2];
    const int64_t count = s.classes / s.parts + (k < s.classes % s.parts ? 1 : 0);
    if (count == 0) continue;
    deviation += part[3] + static_cast<C>(count) * (OnlineSum<C>::Finite(part[0]) - shift);
  }
  const C log_sum = LogOf(sum), sharp = (max - at) + log_sum;
  *max_out = max;
  *log_sum_out = log_sum;
  const C smoothing = static_cast<C>(s.smoothing);
  if (smoothing == C(0)) return sharp;
  const C uniform = log_sum - deviation / static_cast<C>(s.classes);
  return (C(1) - smoothing) * sharp + smoothing * uniform;
}

template <class C>
__global__ void __launch_bounds__(Policy::kThreads)
    ClassMergeKernel(const __grid_constant__ ClassMergeShape s, const int64_t* target,
                     const C* parts, C* loss, C* stats) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t row = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; row < s.rows; row += step) {
    const int64_t t = target[row];
    C value = 0, max = 0, log_sum = 0;
    if (t != s.ignore_index) {
      value = static_cast<C>(NAN);
      if (t >= 0 && t < s.classes) {
        value = MergeRow(s, parts + row * kPartNumbers, s.rows * kPartNumbers, &max, &log_sum);
      }
    }
    loss[row] = value;
    stats[2 * row] = max;
    stats[2 * row + 1] = log_sum;
  }
}

template <int kLanes, class T>
__global__ void __launch_bounds__(Policy::kThreads, Policy::kMapBlocks<T>)
    ClassGradientKernel(CrossEntropyRows<T> p, int64_t first, int64_t all,
                        const ComputeType<T>* stats, const ComputeType<T>* dloss,
                        int64_t dloss_stride, T* dx, int64_t dx_stride, RowTasks tasks) {
  using C = ComputeType<T>;
  for (int64_t task = blockIdx.x; task < tasks.count; task += gridDim.x) {
    const RowShare<kLanes> share(tasks, task);
    if (share.row >= p.rows) continue;
    T* y = dx + share.row * dx_stride;
    MapRow(p.x + share.row * p.row_stride, y, p.classes, tasks, share, [&] {
      const C max = stats[2 * share.row], log_sum = stats[2 * share.row + 1];
      const int64_t target = p.target[share.row], column = target - first;
      CrossEntropyGradient<T, true> gradient;
      gradient.exp = RowExponential<C>(max);
      gradient.factor = dloss[share.row * dloss_stride];
      gradient.gain = gradient.factor * ExpNonPositive(-log_sum) * gradient.exp.Weight();
      gradient.less = gradient.factor * (p.smoothing / static_cast<C>(all));
      // Where it is another part's, no address of this one.
      if (column >= 0 && column < p.classes) gradient.at = reinterpret_cast<uintptr_t>(y + column);
      if (target == p.ignore_index || target < 0 || target >= all)
        gradient.skip = gradient.kIgnored;
      return [=](T* at, const auto& logits) { gradient.Write(at, logits, p.smoothing, [](C) {}); };
    });
  }
}

template <class T>
cudaError_t Part(const ClassPartShape& s, const void* x, const int64_t* target, void* part,
                 cudaStream_t stream) {
  if (s.rows <= 0) return cudaSuccess;
  return Launch(ClassPartKernel<T>, s.rows, Policy::kFoldThreads, 0, stream,
                RowsOf<T>(s, x, target), s.first, static_cast<ComputeType<T>*>(part));
}

template <class T>
cudaError_t Merge(const ClassMergeShape& s, const int64_t* target, const void* parts, void* loss,
                  void* stats, cudaStream_t stream) {
  using C = ComputeType<T>;
  if (s.rows <= 0) return cudaSuccess;
  return Launch(ClassMergeKernel<C>, CeilDiv(s.rows, int64_t{Policy::kThreads}), Policy::kThreads,
                0, stream, s, target, static_cast<const C*>(parts), static_cast<C*>(loss),
                static_cast<C*>(stats));
}

template <class T>
cudaError_t Gradient(const ClassPartShape& s, const void* x, const int64_t* target,
                     const void* stats, const void* dloss, int64_t dloss_stride, void* dx,
                     int64_t dx_stride, cudaStream_t stream) {
  using C = ComputeType<T>;
  if (s.rows <= 0 || s.count <= 0) return cudaSuccess;
  const RowTasks tasks = MakeRowTasks(s.rows, s.count / kPackSize<T>);
  const auto kernel = 1 << tasks.lane_bits == Policy::kThreads
                          ? ClassGradientKernel<Policy::kThreads, T>
                          : ClassGradientKernel<0, T>;
  return Launch(kernel, tasks.count, Policy::kThreads, 0, stream, RowsOf<T>(s, x, target), s.first,
                s.classes, static_cast<const C*>(stats), static_cast<const C*>(dloss), dloss_stride,
                static_cast<T*>(dx), dx_stride, tasks);
}

}  // namespace

CrossEntropySplitLaunchers FindCrossEntropySplit(DType dtype) {
  return VisitDeviceFloating<CrossEntropySplitLaunchers>(
      dtype, [&](auto tag) -> CrossEntropySplitLaunchers {
        using T = typename decltype(tag)::type;
        return {&Part<T>, &Merge<T>, &Gradient<T>};
      });
}

}  // namespace cuda
}  // namespace oneflow_lite
