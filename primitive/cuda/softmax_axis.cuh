// SPDX-License-Identifier: Apache-2.0
//
// softmax over the middle axis of outer x axis x inner, forward and backward, without transposes.
// A block takes a tile of neighbouring inner columns: its lanes lie along inner, so that accesses
// are contiguous, its ways along the axis. Each thread gathers partial statistics of its columns,
// the ways merge through shared memory, then the tile is read again (from shared memory where it
// fits) and written.
//
//   LaunchSoftmaxAxis<false>(x, y, outer, axis, inner, limits, stream);
#pragma once

#include "primitive/cuda/axis.cuh"
#include "primitive/cuda/launch.cuh"
#include "primitive/cuda/softmax_backward.cuh"
#include "primitive/cuda/softmax_math.cuh"

namespace oneflow_lite {
namespace cuda {

struct SoftmaxAxisPolicy {
  static constexpr int kThreads = 256;
  static constexpr int kUnroll = 4;            // positions of the axis in flight per thread
  static constexpr int kSegmentBytes = 128;    // a tile's row in memory: a full line ...
  static constexpr int kMinSegmentBytes = 64;  // ... or two sectors, to have more or smaller tiles
  static constexpr int kMinPerWay = 8;         // positions of the axis that are worth a thread
};

template <int N, bool kShared, bool kLog, class T>
__global__ void __launch_bounds__(SoftmaxAxisPolicy::kThreads)
    SoftmaxAxisKernel(const T* x, T* y, AxisProblem p) {
  using C = ComputeType<T>;
  constexpr int kUnroll = SoftmaxAxisPolicy::kUnroll;
  extern __shared__ __align__(16) char shared[];
  auto* slots = reinterpret_cast<OnlineSum<C>*>(shared);
  auto* kept = reinterpret_cast<Pack<T, N>*>(slots + blockDim.x * N);
  const int64_t tiles = TilesPerOuter(p, N);
  for (int64_t tile = blockIdx.x; tile < p.outer * tiles; tile += gridDim.x) {
    const AxisColumns<N> c(p, tile, tiles);
    OnlineSum<C> sum[N];
    for (int64_t a = c.way; c.active && a < p.axis; a += int64_t{kUnroll} * c.ways) {
      Pack<T, N> raw[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        const int64_t at = a + u * c.ways;
        if (at < p.axis) raw[u] = LoadPack<N>(x + c.offset + at * p.inner);
      }
      Pack<C, kUnroll> column[N];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        const int64_t at = a + u * c.ways;
        if (kShared && at < p.axis) kept[at * p.lanes + c.lane] = raw[u];
#pragma unroll
        for (int i = 0; i < N; ++i) {
          column[i].v[u] = at < p.axis ? ConvertTo<C>(raw[u].v[i]) : MinusInfinity<C>();
        }
      }
#pragma unroll
      for (int i = 0; i < N; ++i) sum[i].Add(column[i]);
    }
    MergeWays<N>(sum, p, c.ways, slots, MergeOnline{});
    if (!c.active) continue;
    C scale[N];
#pragma unroll
    for (int i = 0; i < N; ++i) scale[i] = kLog ? LogOf(sum[i].sum) : C(1) / sum[i].sum;
#pragma unroll 2
    for (int64_t a = c.way; a < p.axis; a += c.ways) {
      const Pack<T, N> in =
          kShared ? kept[a * p.lanes + c.lane] : LoadPack<N>(x + c.offset + a * p.inner);
      Pack<C, N> out = ConvertPack<C>(in);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const C d = out.v[i] - sum[i].max;
        out.v[i] = kLog ? d - scale[i] : ExpNonPositive(d) * scale[i];
      }
      StorePack<N>(y + c.offset + a * p.inner, ConvertPack<T>(out));
    }
  }
}

template <int N, bool kShared, bool kLog, class T>
__global__ void __launch_bounds__(SoftmaxAxisPolicy::kThreads)
    SoftmaxBackwardAxisKernel(const T* y, const T* dy, T* dx, AxisProblem p) {
  using C = ComputeType<T>;
  extern __shared__ __align__(16) char shared[];
  auto* slots = reinterpret_cast<CompensatedSum<C>*>(shared);
  auto* kept = reinterpret_cast<Pack<T, N>*>(slots + blockDim.x * N);
  const int64_t tiles = TilesPerOuter(p, N);
  for (int64_t tile = blockIdx.x; tile < p.outer * tiles; tile += gridDim.x) {
    const AxisColumns<N> c(p, tile, tiles);
    CompensatedSum<C> sum[N];
#pragma unroll 2
    for (int64_t a = c.way; c.active && a < p.axis; a += c.ways) {
      const Pack<T, N> py = LoadPack<N>(y + c.offset + a * p.inner);
      const Pack<T, N> pdy = LoadPack<N>(dy + c.offset + a * p.inner);
      if (kShared) {
        kept[2 * (a * p.lanes + c.lane)] = py;
        kept[2 * (a * p.lanes + c.lane) + 1] = pdy;
      }
#pragma unroll
      for (int i = 0; i < N; ++i) {
        sum[i].Add(GradientTerm<kLog>(ConvertTo<C>(py.v[i]), ConvertTo<C>(pdy.v[i])));
      }
    }
    MergeWays<N>(sum, p, c.ways, slots, MergeCompensated{});
#pragma unroll 2
    for (int64_t a = c.way; c.active && a < p.axis; a += c.ways) {
      const int64_t at = c.offset + a * p.inner;
      const Pack<T, N> py = kShared ? kept[2 * (a * p.lanes + c.lane)] : LoadPack<N>(y + at);
      const Pack<T, N> pdy = kShared ? kept[2 * (a * p.lanes + c.lane) + 1] : LoadPack<N>(dy + at);
      Pack<C, N> out;
#pragma unroll
      for (int i = 0; i < N; ++i) {
        out.v[i] = Gradient<kLog>(ConvertTo<C>(py.v[i]), ConvertTo<C>(pdy.v[i]), sum[i].Get());
      }
      StorePack<N>(dx + at, ConvertPack<T>(out));
    }
  }
}

struct SoftmaxAxisPlan {
  int lanes;
  bool keep;      // the tile stays in shared memory
  size_t shared;  // bytes
};

// Tiles of `pack` elements per lane; `slot` bytes per column and thread to merge, `kept` bytes per
// lane and position of the axis where the tile stays on chip.
inline SoftmaxAxisPlan ChooseSoftmaxAxisPlan(int64_t outer, int64_t axis, int64_t inner, int pack,
                                             int element, int slot, int kept,
                                             const DeviceLimits& limits) {
  using P = SoftmaxAxisPolicy;
  const int64_t lanes_wanted = CeilDiv(inner, pack);
  const int bytes = pack * element;
  const int64_t merge = int64_t{P::kThreads} * pack * slot;
  const auto shared = [&](int n) { return merge + axis * n * kept; };
  const auto fits = [&](int n, int blocks) {
    return shared(n) <= limits.shared_per_block &&
           blocks * (shared(n) + 1024) <= limits.shared_per_multiprocessor;
  };
  const auto blocks = [&](int n) { return outer * CeilDiv(lanes_wanted, n); };
  int lanes = 1;
  while (lanes < P::kThreads && lanes < lanes_wanted &&
         (lanes * bytes < P::kSegmentBytes || axis < P::kThreads / lanes * P::kMinPerWay)) {
    lanes *= 2;
  }
  while (lanes * bytes > P::kMinSegmentBytes &&
         (blocks(lanes) < 2 * limits.multiprocessors || !fits(lanes, 3))) {
    lanes /= 2;
  }
  if (fits(lanes, 1)) return {lanes, true, static_cast<size_t>(shared(lanes))};
  return {lanes, false, static_cast<size_t>(merge)};
}

namespace internal {

// Launches `Kernel` for tiles of N elements per lane, kept on chip where they fit.
template <int N, class T, auto keeping, auto rereading, class... Pointers>
cudaError_t LaunchAxis(int64_t outer, int64_t axis, int64_t inner, int slot, int operands,
                       const DeviceLimits& limits, cudaStream_t stream, Pointers... pointers) {
  const SoftmaxAxisPlan plan = ChooseSoftmaxAxisPlan(
      outer, axis, inner, N, sizeof(T), slot, operands * N * static_cast<int>(sizeof(T)), limits);
  const AxisProblem p{outer, axis, inner, plan.lanes};
  const int64_t blocks = outer * CeilDiv(inner, int64_t{plan.lanes} * N);
  constexpr int kThreads = SoftmaxAxisPolicy::kThreads;
  if (!plan.keep) return Launch(rereading, blocks, kThreads, plan.shared, stream, pointers..., p);
  const cudaError_t error = AllowAllShared<keeping>(limits);
  if (error != cudaSuccess) return error;
  return Launch(keeping, blocks, kThreads, plan.shared, stream, pointers..., p);
}

template <class... Pointers>
bool AllPackAligned(Pointers... pointers) {
  return ((reinterpret_cast<uintptr_t>(pointers) | ...) & (kPackBytes - 1)) == 0;
}

}  // namespace internal

// x and y may be the same pointer.
template <bool kLog, class T>
cudaError_t LaunchSoftmaxAxis(const T* x, T* y, int64_t outer, int64_t axis, int64_t inner,
                              const DeviceLimits& limits, cudaStream_t stream) {
  constexpr int N = kPackSize<T>;
  constexpr int kSlot = sizeof(OnlineSum<ComputeType<T>>);
  if (outer <= 0 || axis <= 0 || inner <= 0) return cudaSuccess;
  if (inner % N == 0 && internal::AllPackAligned(x, y)) {
    return internal::LaunchAxis<N, T, SoftmaxAxisKernel<N, true, kLog, T>,
                                SoftmaxAxisKernel<N, false, kLog, T>>(outer, axis, inner, kSlot, 1,
                                                                      limits, stream, x, y);
  }
  return internal::LaunchAxis<1, T, SoftmaxAxisKernel<1, true, kLog, T>,
                              SoftmaxAxisKernel<1, false, kLog, T>>(outer, axis, inner, kSlot, 1,
                                                                    limits, stream, x, y);
}

// dx may be dy.
template <bool kLog, class T>
cudaError_t LaunchSoftmaxBackwardAxis(const T* y, const T* dy, T* dx, int64_t outer, int64_t axis,
                                      int64_t inner, const DeviceLimits& limits,
                                      cudaStream_t stream) {
  constexpr int N = kPackSize<T>;
  constexpr int kSlot = sizeof(CompensatedSum<ComputeType<T>>);
  if (outer <= 0 || axis <= 0 || inner <= 0) return cudaSuccess;
  if (inner % N == 0 && internal::AllPackAligned(y, dy, dx)) {
    return internal::LaunchAxis<N, T, SoftmaxBackwardAxisKernel<N, true, kLog, T>,
                                SoftmaxBackwardAxisKernel<N, false, kLog, T>>(
        outer, axis, inner, kSlot, 2, limits, stream, y, dy, dx);
  }
  return internal::LaunchAxis<1, T, SoftmaxBackwardAxisKernel<1, true, kLog, T>,
                              SoftmaxBackwardAxisKernel<1, false, kLog, T>>(
      outer, axis, inner, kSlot, 2, limits, stream, y, dy, dx);
}

}  // namespace cuda
}  // namespace oneflow_lite
