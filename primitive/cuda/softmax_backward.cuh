// SPDX-License-Identifier: Apache-2.0
//
// The backward row kernels, with the tiers of the forward ones:
//
//   softmax      dx = y * (dy - sum(y * dy))
//   log_softmax  dx = dy - exp(y) * sum(dy)
#pragma once

#include "primitive/cuda/compensated_sum.cuh"
#include "primitive/cuda/softmax_io.cuh"
#include "primitive/cuda/softmax_math.cuh"
#include "primitive/cuda/softmax_policy.h"

namespace oneflow_lite {
namespace cuda {

// What one element adds to the row's sum, and its gradient once the sum is known.
template <bool kLog, class C>
__device__ __forceinline__ C GradientTerm(C y, C dy) {
  return kLog ? dy : y * dy;
}
template <bool kLog, class C>
__device__ __forceinline__ C Gradient(C y, C dy, C sum) {
  if constexpr (kLog) return dy - ExpNonPositive(y) * sum;
  return y * (dy - sum);
}

template <bool kLog, class C, class E, int N>
__device__ __forceinline__ C GradientTerms(const Pack<E, N>& y, const Pack<E, N>& dy) {
  C sum = 0;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    sum += GradientTerm<kLog>(ConvertTo<C>(y.v[i]), ConvertTo<C>(dy.v[i]));
  }
  return sum;
}

template <bool kLog, class C, class E, int N, class Store>
__device__ __forceinline__ void StoreGradient(const Store& store, int64_t row, int64_t col,
                                              const Pack<E, N>& y, const Pack<E, N>& dy, C sum) {
  Pack<C, N> dx;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    dx.v[i] = Gradient<kLog>(ConvertTo<C>(y.v[i]), ConvertTo<C>(dy.v[i]), sum);
  }
  store.template Store<N>(row, col, dx);
}

// One row in the registers of `group`; y and dy stay in their own dtype.
template <int kPacks, int kExtras, bool kLog, class Group, class Load, class Store>
__device__ __forceinline__ void GradientInRegisters(const Load& load_y, const Load& load_dy,
                                                    const Store& store, int64_t row, bool active,
                                                    int64_t cols, Group& group) {
  using E = typename Load::Element;
  using C = ComputeType<typename Store::Element>;
  constexpr int N = kPackSize<typename Store::Element>;
  const RowSpan<N> span = active ? RowSpan<N>(store.Head(row), cols) : RowSpan<N>();
  const int rank = group.rank(), size = group.size();
  const int packs = static_cast<int>(span.packs);
  Pack<E, N> y[kPacks], dy[kPacks];
  Pack<E, 1> extra_y[kExtras], extra_dy[kExtras];

#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    const int p = rank + k * size;
    if (p >= packs) continue;
    y[k] = load_y.template Load<N>(row, span.PackColumn(p));
    dy[k] = load_dy.template Load<N>(row, span.PackColumn(p));
  }
#pragma unroll
  for (int k = 0; k < kExtras; ++k) {
    const int e = rank + k * size;
    if (e >= span.extras()) continue;
    extra_y[k] = load_y.template Load<1>(row, span.Column(e));
    extra_dy[k] = load_dy.template Load<1>(row, span.Column(e));
  }

  C sum = 0;
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    if (rank + k * size < packs) sum += GradientTerms<kLog, C>(y[k], dy[k]);
  }
#pragma unroll
  for (int k = 0; k < kExtras; ++k) {
    if (rank + k * size < span.extras()) sum += GradientTerms<kLog, C>(extra_y[k], extra_dy[k]);
  }
  sum = group.Reduce(sum, Plus{}, C(0));

#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    const int p = rank + k * size;
    KeepPacked(y[k]);
    KeepPacked(dy[k]);
    if (p < packs) StoreGradient<kLog>(store, row, span.PackColumn(p), y[k], dy[k], sum);
  }
#pragma unroll
  for (int k = 0; k < kExtras; ++k) {
    const int e = rank + k * size;
    if (e < span.extras()) {
      StoreGradient<kLog>(store, row, span.Column(e), extra_y[k], extra_dy[k], sum);
    }
  }
}

template <int kLanes, int kPacks, bool kLog, class Load, class Store>
__global__ void __launch_bounds__(SoftmaxPolicy::kGroupThreads)
    SoftmaxBackwardGroupKernel(Load y, Load dy, Store store, int64_t rows, int64_t cols) {
  constexpr int kRows = SoftmaxPolicy::kGroupThreads / kLanes;
  constexpr int kExtras = ExtrasPerThread<kPackSize<typename Store::Element>>(kLanes);
  LaneGroup<kLanes> group;
  for (int64_t base = int64_t{blockIdx.x} * kRows; base < rows;
       base += int64_t{gridDim.x} * kRows) {
    const int64_t row = base + threadIdx.x / kLanes;
    GradientInRegisters<kPacks, kExtras, kLog>(y, dy, store, row, row < rows, cols, group);
  }
}

template <int kPacks, bool kLog, class Load, class Store>
__global__ void __launch_bounds__(SoftmaxPolicy::kRegisterThreads, 2)
    SoftmaxBackwardBlockKernel(Load y, Load dy, Store store, int64_t rows, int64_t cols) {
  __shared__ __align__(16) char scratch[Block::kScratchBytes];
  Block block(scratch);
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    GradientInRegisters<kPacks, 1, kLog>(y, dy, store, row, true, cols, block);
  }
}

// The sum over the packs [first, last) of a row, and over its extras where with_extras. With kKeep,
// kept[2 * p] and kept[2 * p + 1] receive the packs p of y and dy.
template <bool kLog, int N, bool kKeep, class C, class Load>
__device__ __forceinline__ CompensatedSum<C> GradientSum(const Load& load_y, const Load& load_dy,
                                                         int64_t row, const RowSpan<N>& span,
                                                         int64_t first, int64_t last,
                                                         bool with_extras,
                                                         Pack<typename Load::Element, N>* kept) {
  using E = typename Load::Element;
  constexpr int kUnroll = SoftmaxPolicy::kUnroll / 2;  // two loads each
  const int rank = threadIdx.x, size = blockDim.x;
  CompensatedSum<C> sum;
  for (int64_t p = first + rank; p < last; p += int64_t{kUnroll} * size) {
    Pack<E, N> y[kUnroll], dy[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (p + u * size >= last) continue;
      y[u] = load_y.template Load<N>(row, span.PackColumn(p + u * size));
      dy[u] = load_dy.template Load<N>(row, span.PackColumn(p + u * size));
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (p + u * size >= last) continue;
      if (kKeep) {
        kept[2 * (p + u * size)] = y[u];
        kept[2 * (p + u * size) + 1] = dy[u];
      }
      sum.Add(GradientTerms<kLog, C>(y[u], dy[u]));
    }
  }
  if (with_extras && rank < span.extras()) {
    sum.Add(GradientTerms<kLog, C>(load_y.template Load<1>(row, span.Column(rank)),
                                   load_dy.template Load<1>(row, span.Column(rank))));
  }
  return sum;
}

template <bool kLog, int N, bool kKept, class C, class Load, class Store>
__device__ __forceinline__ void WriteGradient(const Load& load_y, const Load& load_dy,
                                              const Store& store, int64_t row,
                                              const RowSpan<N>& span, int64_t first, int64_t last,
                                              bool with_extras, C sum,
                                              const Pack<typename Load::Element, N>* kept) {
  const int rank = threadIdx.x, size = blockDim.x;
  if (with_extras && rank < span.extras()) {
    const int64_t col = span.Column(rank);
    StoreGradient<kLog>(store, row, col, load_y.template Load<1>(row, col),
                        load_dy.template Load<1>(row, col), sum);
  }
#pragma unroll 2
  for (int64_t p = first + rank; p < last; p += size) {
    const int64_t col = span.PackColumn(p);
    StoreGradient<kLog>(store, row, col, kKept ? kept[2 * p] : load_y.template Load<N>(row, col),
                        kKept ? kept[2 * p + 1] : load_dy.template Load<N>(row, col), sum);
  }
}

template <bool kShared, bool kLog, class Load, class Store>
__global__ void __launch_bounds__(SoftmaxPolicy::kMaxThreads)
    SoftmaxBackwardWideKernel(Load y, Load dy, Store store, int64_t rows, int64_t cols) {
  using C = ComputeType<typename Store::Element>;
  constexpr int N = kPackSize<typename Store::Element>;
  using Kept = Pack<typename Load::Element, N>;
  extern __shared__ __align__(16) char shared[];
  Block block(shared);
  Kept* kept = kShared ? reinterpret_cast<Kept*>(shared + Block::kScratchBytes) : nullptr;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const RowSpan<N> span(store.Head(row), cols);
    auto part = GradientSum<kLog, N, kShared, C>(y, dy, row, span, 0, span.packs, true, kept);
    const C sum = block.Reduce(part, MergeCompensated{}, CompensatedSum<C>{}).Get();
    WriteGradient<kLog, N, kShared>(y, dy, store, row, span, 0, span.packs, true, sum, kept);
  }
}

template <bool kLog, class Load, class Store>
__global__ void __launch_bounds__(SoftmaxPolicy::kSplitThreads)
    SoftmaxBackwardChunkKernel(Load y, Load dy, Store store, int64_t cols, int chunks,
                               CompensatedSum<ComputeType<typename Store::Element>>* partial) {
  using C = ComputeType<typename Store::Element>;
  constexpr int N = kPackSize<typename Store::Element>;
  __shared__ __align__(16) char scratch[Block::kScratchBytes];
  Block block(scratch);
  const int64_t row = blockIdx.x / chunks;
  const int chunk = blockIdx.x % chunks;
  const RowSpan<N> span(store.Head(row), cols);
  const int64_t first = span.packs * chunk / chunks, last = span.packs * (chunk + 1) / chunks;
  auto part = GradientSum<kLog, N, false, C>(y, dy, row, span, first, last, chunk == 0, nullptr);
  part = block.Reduce(part, MergeCompensated{}, CompensatedSum<C>{});
  if (threadIdx.x == 0) partial[blockIdx.x] = part;
}

template <bool kLog, class Load, class Store>
__global__ void __launch_bounds__(SoftmaxPolicy::kSplitThreads) SoftmaxBackwardApplyKernel(
    Load y, Load dy, Store store, int64_t cols, int chunks,
    const CompensatedSum<ComputeType<typename Store::Element>>* partial) {
  using C = ComputeType<typename Store::Element>;
  constexpr int N = kPackSize<typename Store::Element>;
  __shared__ __align__(16) char scratch[Block::kScratchBytes];
  Block block(scratch);
  const int64_t row = blockIdx.x / chunks;
  const int chunk = blockIdx.x % chunks;
  const RowSpan<N> span(store.Head(row), cols);
  const int64_t first = span.packs * chunk / chunks, last = span.packs * (chunk + 1) / chunks;
  CompensatedSum<C> part;
  for (int i = threadIdx.x; i < chunks; i += blockDim.x) {
    part = MergeCompensated{}(part, partial[row * chunks + i]);
  }
  const C sum = block.Reduce(part, MergeCompensated{}, CompensatedSum<C>{}).Get();
  WriteGradient<kLog, N, false>(y, dy, store, row, span, first, last, chunk == 0, sum, nullptr);
}

}  // namespace cuda
}  // namespace oneflow_lite
