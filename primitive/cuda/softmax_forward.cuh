// SPDX-License-Identifier: Apache-2.0
//
// The forward row kernels. Which one serves a width is decided in softmax_policy.h.
#pragma once

#include "primitive/cuda/softmax_io.cuh"
#include "primitive/cuda/softmax_math.cuh"
#include "primitive/cuda/softmax_policy.h"

namespace oneflow_lite {
namespace cuda {

// The sum of exp(x - max); leaves exp(x - max) in x, or x - max for the logarithm.
template <bool kLog, class C, int N>
__device__ __forceinline__ C ExponentiateAll(Pack<C, N>& x, C max) {
  C sum = 0;
#pragma unroll
  for (C& v : x.v) {
    const C d = v - max, e = ExpNonPositive(d);
    sum += e;
    v = kLog ? d : e;
  }
  return sum;
}

// One row in the registers of `group`, in the compute type: each thread has kPacks packs and
// kExtras single columns. Missing places hold -inf, which adds nothing.
template <int kPacks, int kExtras, bool kLog, class Group, class Load, class Store>
__device__ __forceinline__ void SoftmaxInRegisters(const Load& load, const Store& store,
                                                   int64_t row, bool active, int64_t cols,
                                                   Group& group) {
  using C = ComputeType<typename Store::Element>;
  constexpr int N = kPackSize<typename Store::Element>;
  const RowSpan<N> span = active ? RowSpan<N>(store.Head(row), cols) : RowSpan<N>();
  const int rank = group.rank(), size = group.size();
  const int packs = static_cast<int>(span.packs);
  Pack<C, N> x[kPacks];
  Pack<C, kExtras> extra;

#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    const int p = rank + k * size;
    if (p < packs) {
      x[k] = ConvertPack<C>(load.template Load<N>(row, span.PackColumn(p)));
    } else {
#pragma unroll
      for (C& v : x[k].v) v = MinusInfinity<C>();
    }
  }
#pragma unroll
  for (int k = 0; k < kExtras; ++k) {
    const int e = rank + k * size;
    extra.v[k] = MinusInfinity<C>();
    if (e < span.extras()) {
      extra.v[k] = ConvertTo<C>(load.template Load<1>(row, span.Column(e)).v[0]);
    }
  }

  C max = MaxOf<C>(extra);
#pragma unroll
  for (int k = 0; k < kPacks; ++k) max = Larger{}(max, MaxOf<C>(x[k]));
  max = group.Reduce(max, Larger{}, MinusInfinity<C>());

  C sum = ExponentiateAll<kLog>(extra, max);
#pragma unroll
  for (int k = 0; k < kPacks; ++k) sum += ExponentiateAll<kLog>(x[k], max);
  sum = group.Reduce(sum, Plus{}, C(0));

  const C scale = kLog ? LogOf(sum) : C(1) / sum;
  const auto finish = [scale](C v) { return kLog ? v - scale : v * scale; };
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    const int p = rank + k * size;
    if (p >= packs) continue;
#pragma unroll
    for (C& v : x[k].v) v = finish(v);
    store.template Store<N>(row, span.PackColumn(p), x[k]);
  }
#pragma unroll
  for (int k = 0; k < kExtras; ++k) {
    const int e = rank + k * size;
    if (e < span.extras()) {
      store.template Store<1>(row, span.Column(e), Pack<C, 1>{{finish(extra.v[k])}});
    }
  }
}

// A row per group of kLanes lanes.
template <int kLanes, int kPacks, bool kLog, class Load, class Store>
__global__ void __launch_bounds__(SoftmaxPolicy::kGroupThreads)
    SoftmaxGroupKernel(Load load, Store store, int64_t rows, int64_t cols) {
  constexpr int kRows = SoftmaxPolicy::kGroupThreads / kLanes;
  constexpr int kExtras = ExtrasPerThread<kPackSize<typename Store::Element>>(kLanes);
  LaneGroup<kLanes> group;
  for (int64_t base = int64_t{blockIdx.x} * kRows; base < rows;
       base += int64_t{gridDim.x} * kRows) {
    const int64_t row = base + threadIdx.x / kLanes;
    SoftmaxInRegisters<kPacks, kExtras, kLog>(load, store, row, row < rows, cols, group);
  }
}

// A row in the registers of a block.
template <int kPacks, bool kLog, class Load, class Store>
__global__ void __launch_bounds__(SoftmaxPolicy::kRegisterThreads, 2)
    SoftmaxBlockKernel(Load load, Store store, int64_t rows, int64_t cols) {
  __shared__ __align__(16) char scratch[Block::kScratchBytes];
  Block block(scratch);
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    SoftmaxInRegisters<kPacks, 1, kLog>(load, store, row, true, cols, block);
  }
}

// The statistics of the packs [first, last) of a row, and of its extras where with_extras. With
// kKeep, `kept` receives the packs; a thread later reads what it wrote itself, so no barrier is
// needed.
template <int N, bool kKeep, class Load>
__device__ __forceinline__ auto RowStatistics(const Load& load, int64_t row, const RowSpan<N>& span,
                                              int64_t first, int64_t last, bool with_extras,
                                              Pack<typename Load::Element, N>* kept) {
  using E = typename Load::Element;
  using C = ComputeType<E>;
  constexpr int kUnroll = SoftmaxPolicy::kUnroll;
  const int rank = threadIdx.x, size = blockDim.x;
  OnlineSum<C> row_sum;
  for (int64_t p = first + rank; p < last; p += int64_t{kUnroll} * size) {
    Pack<E, N> x[kUnroll];  // several loads in flight
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (p + u * size < last) x[u] = load.template Load<N>(row, span.PackColumn(p + u * size));
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (p + u * size >= last) continue;
      if (kKeep) kept[p + u * size] = x[u];
      row_sum.Add(ConvertPack<C>(x[u]));
    }
  }
  if (with_extras && rank < span.extras()) {
    row_sum.Add(ConvertPack<C>(load.template Load<1>(row, span.Column(rank))));
  }
  return row_sum;
}

template <bool kLog, int N, bool kKept, class C, class Load, class Store>
__device__ __forceinline__ void WriteRow(const Load& load, const Store& store, int64_t row,
                                         const RowSpan<N>& span, int64_t first, int64_t last,
                                         bool with_extras, const OnlineSum<C>& row_sum,
                                         const Pack<typename Load::Element, N>* kept) {
  const int rank = threadIdx.x, size = blockDim.x;
  const Normalizer<C, kLog> normalize(row_sum);
  if (with_extras && rank < span.extras()) {
    Pack<C, 1> y = ConvertPack<C>(load.template Load<1>(row, span.Column(rank)));
    y.v[0] = normalize(y.v[0]);
    store.template Store<1>(row, span.Column(rank), y);
  }
#pragma unroll 2
  for (int64_t p = first + rank; p < last; p += size) {
    Pack<C, N> y = ConvertPack<C>(kKept ? kept[p] : load.template Load<N>(row, span.PackColumn(p)));
#pragma unroll
    for (int i = 0; i < N; ++i) y.v[i] = normalize(y.v[i]);
    store.template Store<N>(row, span.PackColumn(p), y);
  }
}

// A row per block: kept in shared memory in the Load's element type (kShared), or read twice.
template <bool kShared, bool kLog, class Load, class Store>
__global__ void __launch_bounds__(SoftmaxPolicy::kMaxThreads)
    SoftmaxWideKernel(Load load, Store store, int64_t rows, int64_t cols) {
  using C = ComputeType<typename Store::Element>;
  constexpr int N = kPackSize<typename Store::Element>;
  using Kept = Pack<typename Load::Element, N>;
  extern __shared__ __align__(16) char shared[];
  Block block(shared);
  Kept* kept = kShared ? reinterpret_cast<Kept*>(shared + Block::kScratchBytes) : nullptr;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const RowSpan<N> span(store.Head(row), cols);
    OnlineSum<C> row_sum = RowStatistics<N, kShared>(load, row, span, 0, span.packs, true, kept);
    row_sum = block.Reduce(row_sum, MergeOnline{}, OnlineSum<C>{});
    WriteRow<kLog, N, kShared>(load, store, row, span, 0, span.packs, true, row_sum, kept);
  }
}

// Few wide rows: `chunks` blocks per row, in two launches. The first leaves each chunk's statistics
// in partial[rows][chunks], the second merges a row's in a fixed order and writes.
template <class Load, class Store>
__global__ void __launch_bounds__(SoftmaxPolicy::kSplitThreads)
    SoftmaxChunkKernel(Load load, Store store, int64_t cols, int chunks,
                       OnlineSum<ComputeType<typename Store::Element>>* partial) {
  using C = ComputeType<typename Store::Element>;
  constexpr int N = kPackSize<typename Store::Element>;
  __shared__ __align__(16) char scratch[Block::kScratchBytes];
  Block block(scratch);
  const int64_t row = blockIdx.x / chunks;
  const int chunk = blockIdx.x % chunks;
  const RowSpan<N> span(store.Head(row), cols);
  const int64_t first = span.packs * chunk / chunks, last = span.packs * (chunk + 1) / chunks;
  OnlineSum<C> row_sum = RowStatistics<N, false>(load, row, span, first, last, chunk == 0, nullptr);
  row_sum = block.Reduce(row_sum, MergeOnline{}, OnlineSum<C>{});
  if (threadIdx.x == 0) partial[blockIdx.x] = row_sum;
}

template <bool kLog, class Load, class Store>
__global__ void __launch_bounds__(SoftmaxPolicy::kSplitThreads)
    SoftmaxApplyKernel(Load load, Store store, int64_t cols, int chunks,
                       const OnlineSum<ComputeType<typename Store::Element>>* partial) {
  using C = ComputeType<typename Store::Element>;
  constexpr int N = kPackSize<typename Store::Element>;
  __shared__ __align__(16) char scratch[Block::kScratchBytes];
  Block block(scratch);
  const int64_t row = blockIdx.x / chunks;
  const int chunk = blockIdx.x % chunks;
  const RowSpan<N> span(store.Head(row), cols);
  const int64_t first = span.packs * chunk / chunks, last = span.packs * (chunk + 1) / chunks;
  OnlineSum<C> row_sum;
  for (int i = threadIdx.x; i < chunks; i += blockDim.x) {
    row_sum = MergeOnline{}(row_sum, partial[row * chunks + i]);
  }
  row_sum = block.Reduce(row_sum, MergeOnline{}, OnlineSum<C>{});
  WriteRow<kLog, N, false>(load, store, row, span, first, last, chunk == 0, row_sum, nullptr);
}

}  // namespace cuda
}  // namespace oneflow_lite
