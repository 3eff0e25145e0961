// SPDX-License-Identifier: Apache-2.0
//
// Reduction over the middle axis of outer x axis x inner, in one launch where there are enough rows
// or columns to fill the device, else in two: `chunks` parts of the axis each leave a partial
// result, [outer][chunks][inner], and the same kernels reduce those. The order of every sum is
// fixed by the shape and the device.
#pragma once

#include "primitive/cuda/axis.cuh"
#include "primitive/cuda/compensated_sum.cuh"
#include "primitive/cuda/elementwise.cuh"
#include "primitive/cuda/group.cuh"

namespace oneflow_lite {
namespace cuda {

struct ReducePolicy {
  static constexpr int kThreads = 256;
  static constexpr int kWarpAxis = 1024;  // rows up to here: a warp each, else a block
  static constexpr int kTileLanes = 32;   // at most, along inner
  static constexpr int kBlocksPerMultiprocessor = 4;
  static constexpr int kMaxChunks = 1024;
  static constexpr int kMinRowChunk = 4096;  // elements of a row worth a block
  static constexpr int kMinAxisChunk = 64;   // positions of the axis worth a tile
};

struct SumOp {
  template <class A>
  using State = CompensatedSum<A>;
  template <class A>
  static __device__ __forceinline__ A Identity() {
    return A(0);
  }
  template <class A>
  __device__ __forceinline__ A operator()(A a, A b) const {
    return a + b;
  }
};

template <class A>
__device__ __forceinline__ A LowestOf() {
  if constexpr (std::is_floating_point_v<A>) {
    return static_cast<A>(-__builtin_huge_val());
  } else {
    return A(1) << (8 * sizeof(A) - 1);  // of a signed integer
  }
}
// A NaN wins.
struct MaxOp {
  template <class A>
  static __device__ __forceinline__ A Identity() {
    return LowestOf<A>();
  }
  template <class A>
  __device__ __forceinline__ A operator()(A a, A b) const {
    return a > b || a != a ? a : b;
  }
  template <class A>
  struct State {
    A value = LowestOf<A>();
    __device__ __forceinline__ void Add(A v) { value = MaxOp{}(value, v); }
    __device__ __forceinline__ A Get() const { return value; }
  };
};

// A pack's elements, pairwise.
template <class A, class Op, class T, int N>
__device__ __forceinline__ A FoldPack(const Pack<T, N>& p, Op op) {
  A v[N];
#pragma unroll
  for (int i = 0; i < N; ++i) v[i] = ConvertTo<A>(p.v[i]);
#pragma unroll
  for (int half = N / 2; half > 0; half /= 2) {
#pragma unroll
    for (int i = 0; i < half; ++i) v[i] = op(v[i], v[i + half]);
  }
  return v[0];
}

// What the kernels have in common. divisor: what the result is divided by (a mean), NaN for a mean
// over nothing; 1 for none.
struct ReduceArguments {
  int64_t outer, axis, inner;
  int chunks;
  int lanes;  // of a tile, where inner > 1
  double divisor;
};

template <class Out, class A>
__device__ __forceinline__ Out FinishReduce(A v, double divisor) {
  if (divisor != 1) v = static_cast<A>(v / static_cast<A>(divisor));
  return ConvertTo<Out>(v);
}

// inner = 1: a group of threads per chunk of a row.
template <class In, class Out, class A, class Op, class Group>
__device__ __forceinline__ void ReduceRow(const In* x, Out* y, const ReduceArguments& r,
                                          int64_t item, bool active, Group& group) {
  constexpr int N = kPackSize<In>;
  typename Op::template State<A> state;
  if (active) {
    const int64_t row = item / r.chunks, chunk = item % r.chunks;
    const int64_t begin = r.axis * chunk / r.chunks, end = r.axis * (chunk + 1) / r.chunks;
    const In* p = x + row * r.axis;
    int64_t body = begin + ElementsToBoundary(p + begin);
    if (body > end) body = end;
    const int64_t tail = body + (end - body) / N * N;
    for (int64_t i = begin + group.rank(); i < body; i += group.size()) {
      state.Add(ConvertTo<A>(p[i]));
    }
#pragma unroll 4
    for (int64_t i = body + group.rank() * N; i < tail; i += group.size() * N) {
      state.Add(FoldPack<A>(LoadPack<N>(p + i), Op{}));
    }
    for (int64_t i = tail + group.rank(); i < end; i += group.size()) {
      state.Add(ConvertTo<A>(p[i]));
    }
  }
  const A result = group.Reduce(state.Get(), Op{}, Op::template Identity<A>());
  if (active && group.rank() == 0) y[item] = FinishReduce<Out>(result, r.divisor);
}

template <class In, class Out, class A, class Op>
__global__ void __launch_bounds__(ReducePolicy::kThreads)
    ReduceRowsKernel(const In* x, Out* y, ReduceArguments r, bool row_per_warp) {
  __shared__ __align__(16) char scratch[Block::kScratchBytes];
  const int64_t items = r.outer * r.chunks;
  if (row_per_warp) {
    LaneGroup<kWarp> warp;
    constexpr int kWarps = ReducePolicy::kThreads / kWarp;
    for (int64_t base = int64_t{blockIdx.x} * kWarps; base < items;
         base += int64_t{gridDim.x} * kWarps) {
      const int64_t item = base + threadIdx.x / kWarp;
      ReduceRow<In, Out, A, Op>(x, y, r, item, item < items, warp);
    }
  } else {
    Block block(scratch);
    for (int64_t item = blockIdx.x; item < items; item += gridDim.x) {
      ReduceRow<In, Out, A, Op>(x, y, r, item, true, block);
    }
  }
}

// inner > 1: a block per tile of columns and chunk of the axis.
template <int N, class In, class Out, class A, class Op>
__global__ void __launch_bounds__(ReducePolicy::kThreads)
    ReduceColumnsKernel(const In* x, Out* y, ReduceArguments r) {
  __shared__ A slots[ReducePolicy::kThreads * N];
  const AxisProblem p{r.outer, r.axis, r.inner, r.lanes};
  const int64_t tiles = TilesPerOuter(p, N);
  for (int64_t item = blockIdx.x; item < r.outer * tiles * r.chunks; item += gridDim.x) {
    const int64_t tile = item / r.chunks, chunk = item % r.chunks;
    const AxisColumns<N> c(p, tile, tiles);
    const int64_t begin = r.axis * chunk / r.chunks, end = r.axis * (chunk + 1) / r.chunks;
    typename Op::template State<A> state[N];
#pragma unroll 4
    for (int64_t a = begin + c.way; c.active && a < end; a += c.ways) {
      const Pack<In, N> v = LoadPack<N>(x + c.offset + a * r.inner);
#pragma unroll
      for (int i = 0; i < N; ++i) state[i].Add(ConvertTo<A>(v.v[i]));
    }
    A result[N];
#pragma unroll
    for (int i = 0; i < N; ++i) result[i] = state[i].Get();
    MergeWays<N>(result, p, c.ways, slots, Op{});
    if (!c.active || c.way != 0) continue;
    const int64_t outer = tile / tiles;
    const int64_t column = c.offset - outer * r.axis * r.inner;
    Pack<Out, N> out;
#pragma unroll
    for (int i = 0; i < N; ++i) out.v[i] = FinishReduce<Out>(result[i], r.divisor);
    StorePack<N>(y + (outer * r.chunks + chunk) * r.inner + column, out);
  }
}

struct ReducePlan {
  int chunks, lanes;
  bool row_per_warp;
};
template <int N>
ReducePlan PlanReduce(int64_t outer, int64_t axis, int64_t inner, int multiprocessors) {
  using P = ReducePolicy;
  ReducePlan plan{1, 1, inner == 1 && axis <= P::kWarpAxis};
  if (plan.row_per_warp) return plan;
  while (inner > 1 && plan.lanes < P::kTileLanes && int64_t{plan.lanes} * N < inner) {
    plan.lanes *= 2;
  }
  const int64_t blocks = outer * CeilDiv(inner, int64_t{plan.lanes} * N);
  const int64_t wanted = int64_t{P::kBlocksPerMultiprocessor} * multiprocessors / (blocks + 1);
  const int64_t most = axis / (inner == 1 ? P::kMinRowChunk : P::kMinAxisChunk);
  int64_t chunks = wanted < most ? wanted : most;
  if (chunks > P::kMaxChunks) chunks = P::kMaxChunks;
  if (chunks > 1) plan.chunks = static_cast<int>(chunks);
  return plan;
}

// One stage, in `chunks` parts.
template <class In, class Out, class A, class Op>
cudaError_t LaunchReduceStage(const ReduceProblem& p, int chunks, double divisor, const In* x,
                              Out* y, cudaStream_t stream) {
  using P = ReducePolicy;
  constexpr int N = kPackSize<In>;
  ReduceArguments r{p.outer, p.axis, p.inner, chunks, 1, divisor};
  if (p.inner == 1) {
    const bool row_per_warp = p.axis <= P::kWarpAxis;
    const int64_t items = p.outer * chunks;
    return Launch(ReduceRowsKernel<In, Out, A, Op>,
                  row_per_warp ? CeilDiv(items, P::kThreads / kWarp) : items, P::kThreads, 0,
                  stream, x, y, r, row_per_warp);
  }
  const bool packs = p.inner % N == 0;
  r.lanes = packs ? PlanReduce<N>(p.outer, p.axis, p.inner, 1).lanes
                  : PlanReduce<1>(p.outer, p.axis, p.inner, 1).lanes;
  const int64_t blocks = p.outer * CeilDiv(p.inner, int64_t{r.lanes} * (packs ? N : 1)) * chunks;
  if (packs) {
    return Launch(ReduceColumnsKernel<N, In, Out, A, Op>, blocks, P::kThreads, 0, stream, x, y, r);
  }
  return Launch(ReduceColumnsKernel<1, In, Out, A, Op>, blocks, P::kThreads, 0, stream, x, y, r);
}

template <class In>
int ReduceChunks(const ReduceProblem& p, const DeviceLimits& limits) {
  constexpr int N = kPackSize<In>;
  return p.inner % N == 0 ? PlanReduce<N>(p.outer, p.axis, p.inner, limits.multiprocessors).chunks
                          : PlanReduce<1>(p.outer, p.axis, p.inner, limits.multiprocessors).chunks;
}

template <class In, class A>
size_t ReduceWorkspace(const ReduceProblem& p, const DeviceLimits& limits) {
  const int chunks = ReduceChunks<In>(p, limits);
  return chunks > 1 ? sizeof(A) * p.outer * p.inner * chunks : 0;
}

template <class In, class Out, class A, class Op, bool kMean>
cudaError_t LaunchReduce(const ReduceProblem& p, const void* x, void* y, void* workspace,
                         const DeviceLimits& limits, cudaStream_t stream) {
  if (p.outer <= 0 || p.inner <= 0) return cudaSuccess;
  const double divisor = !kMean ? 1 : p.axis > 0 ? static_cast<double>(p.axis) : NAN;
  const int chunks = ReduceChunks<In>(p, limits);
  const In* in = static_cast<const In*>(x);
  Out* out = static_cast<Out*>(y);
  if (chunks == 1) return LaunchReduceStage<In, Out, A, Op>(p, 1, divisor, in, out, stream);
  A* partial = static_cast<A*>(workspace);
  const cudaError_t error = LaunchReduceStage<In, A, A, Op>(p, chunks, 1, in, partial, stream);
  if (error != cudaSuccess) return error;
  return LaunchReduceStage<A, Out, A, Op>({p.outer, chunks, p.inner}, 1, divisor, partial, out,
                                          stream);
}

}  // namespace cuda
}  // namespace oneflow_lite
