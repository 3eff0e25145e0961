// SPDX-License-Identifier: Apache-2.0
//
// Gradients of products and of prelu; docs/lab/62-both-gradients-in-one-pass.md has the times.
#include "primitive/cuda/functions/ternary.cuh"
#include "primitive/cuda/reduce/binary_backward.cuh"
#include "primitive/cuda/reduce/binary_backward_launch.h"
#include "primitive/cuda/strided/elements.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

using P = MapSumPolicy;

struct MulSlopes {
  template <class C>
  __device__ static C A(C dy, C, C b) {
    return dy * b;
  }
  template <class C>
  __device__ static C B(C dy, C a) {
    return dy * a;
  }
};
struct PreluSlopes {
  template <class C>
  __device__ static C A(C dy, C a, C b) {
    return PreluSlopeA{}(dy, a, b, TernaryNumbers{});
  }
  template <class C>
  __device__ static C B(C dy, C a) {
    return PreluSlopeB{}(dy, a, a, TernaryNumbers{});
  }
};

int Log2From(int64_t n, int most) {
  int log2 = 0;
  while (log2 < most && (int64_t{1} << log2) < n) ++log2;
  return log2;
}
bool ByColumns(const BinaryBackwardRun& run) { return run.inner < P::kShortRun; }

// So many parts that blocks of `tasks` fill the device, but none without a batch.
int64_t PartsOf(int64_t tasks, int64_t batches, const DeviceLimits& limits) {
  const int64_t wanted = int64_t{P::kResident} * limits.multiprocessors / (tasks > 0 ? tasks : 1);
  const int64_t parts = Min(wanted, batches);
  return parts > 1 ? parts : 1;
}
MapColumns ColumnsOf(const BinaryBackwardRun& run, int width, const DeviceLimits& limits) {
  MapColumns p;
  p.rows = run.outer, p.columns = run.axis * run.inner;
  p.run = Divisor(run.inner);
  // 512 bytes of a row, in packs or one by one.
  p.lanes_log2 = Log2From(CeilDiv(p.columns, width), width == 1 ? 7 : 5);
  const int64_t tiles = CeilDiv(p.columns, int64_t{width} << p.lanes_log2);
  p.tiles = Divisor(tiles);
  const int64_t batch = int64_t{P::kOnePlaces} * (P::kThreads >> p.lanes_log2);
  p.parts = PartsOf(tiles, CeilDiv(p.rows, batch), limits);
  return p;
}
MapRows RowsOf(const BinaryBackwardRun& run, int width, const DeviceLimits& limits) {
  MapRows p;
  p.outer = run.outer, p.axis = run.axis;
  p.packs = Divisor(run.inner / width);
  const int64_t units = run.outer * p.packs.value;
  const bool many = run.axis >= int64_t{P::kManyRows} * limits.multiprocessors;
  const bool block = !many && units > P::kFewUnits;
  p.lanes_log2 = block ? Log2From(P::kThreads, 31) : Log2From(units, 5);
  const int64_t batches = CeilDiv(units, int64_t{P::kOnePlaces} * P::kThreads);
  p.parts = Divisor(block ? PartsOf(run.axis, batches, limits) : 1);
  return p;
}

// Whether every row and column of packs is whole.
template <class T>
int WidthOf(const BinaryBackwardRun& run) {
  constexpr int N = kPackSize<T>;
  const uintptr_t bits = reinterpret_cast<uintptr_t>(run.dy) | reinterpret_cast<uintptr_t>(run.a) |
                         reinterpret_cast<uintptr_t>(run.da);
  const int64_t length = ByColumns(run) ? run.axis * run.inner : run.inner;
  return bits % kPackBytes == 0 && length % N == 0 ? N : 1;
}

// Two results of the same size.
template <class F, class T>
struct MapBoth {
  using C = ComputeType<T>;
  const T *dy, *a, *b;
  T *da, *db;
  template <int N>
  __device__ __forceinline__ void Run(int64_t i) const {
    const Pack<T, N> at_dy = LoadPack<N>(dy + i), at_a = LoadPack<N>(a + i),
                     at_b = LoadPack<N>(b + i);
    Pack<C, N> first, second;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const C g = ConvertTo<C>(at_dy.v[k]), x = ConvertTo<C>(at_a.v[k]);
      first.v[k] = F::A(g, x, ConvertTo<C>(at_b.v[k]));
      second.v[k] = F::B(g, x);
    }
    StorePack(da + i, ConvertPack<T>(first));
    StorePack(db + i, ConvertPack<T>(second));
  }
};

template <class T>
size_t WorkspaceBytes(int64_t outer, int64_t axis, int64_t inner, const DeviceLimits& limits) {
  BinaryBackwardRun run{};
  run.outer = outer, run.axis = axis, run.inner = inner;
  if (outer * inner <= 1) return 0;
  int64_t most = 0;  // of what may be aligned and what is not
  for (const int width : {1, kPackSize<T>}) {
    const int64_t sums = ByColumns(run) ? axis * inner * ColumnsOf(run, width, limits).parts
                                        : axis * RowsOf(run, width, limits).parts.value;
    if (sums > most) most = sums;
  }
  return static_cast<size_t>(most) * sizeof(ComputeType<T>);
}

template <class F, int N, class T>
cudaError_t LaunchMap(const BinaryBackwardRun& run, const DeviceLimits& limits,
                      cudaStream_t stream) {
  using C = ComputeType<T>;
  const T *dy = static_cast<const T*>(run.dy), *a = static_cast<const T*>(run.a),
          *b = static_cast<const T*>(run.b);
  T *da = static_cast<T*>(run.da), *db = static_cast<T*>(run.db);
  C* workspace = static_cast<C*>(run.workspace);
  int64_t parts, each = 1;
  cudaError_t error;
  if (ByColumns(run)) {
    const MapColumns p = ColumnsOf(run, N, limits);
    parts = p.parts, each = run.inner;
    const MapSums<T> out{parts * each > 1 ? workspace : nullptr, db, p.columns};
    error = Launch(MapColumnsKernel<F, N, T>, p.tiles.value * parts, P::kThreads, 0, stream, p, dy,
                   a, b, da, out);
  } else {
    const MapRows p = RowsOf(run, N, limits);
    parts = p.parts.value;
    const MapSums<T> out{parts > 1 ? workspace : nullptr, db, run.axis};
    error = Launch(MapRowsKernel<F, N, T>, CeilDiv(run.axis * parts, P::kThreads >> p.lanes_log2),
                   P::kThreads, 0, stream, p, dy, a, b, da, out);
  }
  if (error != cudaSuccess || parts * each == 1) return error;
  const int lanes_log2 = Log2From(P::kThreads, 31) - Log2From(Min(parts, P::kMergeWays), 31);
  return LaunchAs({1, false, limits.clusters}, MergePartsKernel<T>,
                  CeilDiv(run.axis, int64_t{1} << lanes_log2), P::kThreads, 0, stream, parts,
                  run.axis, each, lanes_log2, static_cast<const C*>(workspace), db);
}

template <class F, class T>
cudaError_t LaunchBackward(const BinaryBackwardRun& run, const DeviceLimits& limits,
                           cudaStream_t stream) {
  if (run.axis == 0) return cudaSuccess;
  if (run.outer * run.inner == 0) return cudaMemsetAsync(run.db, 0, run.axis * sizeof(T), stream);
  if (run.outer * run.inner == 1) {
    const MapBoth<F, T> both{static_cast<const T*>(run.dy), static_cast<const T*>(run.a),
                             static_cast<const T*>(run.b), static_cast<T*>(run.da),
                             static_cast<T*>(run.db)};
    return ForPacks<kPackSize<T>>(run.axis, both, stream);
  }
  return WidthOf<T>(run) == 1 ? LaunchMap<F, 1, T>(run, limits, stream)
                              : LaunchMap<F, kPackSize<T>, T>(run, limits, stream);
}

}  // namespace

BinaryBackwardLaunchers FindBinaryBackward(BinaryOp op, DType dtype) {
  return VisitDeviceFloating<BinaryBackwardLaunchers>(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    BinaryBackwardLaunchers found;
    if (op == BinaryOp::kMul) found = {&WorkspaceBytes<T>, &LaunchBackward<MulSlopes, T>};
    if (op == BinaryOp::kPrelu) found = {&WorkspaceBytes<T>, &LaunchBackward<PreluSlopes, T>};
    return found;
  });
}

}  // namespace cuda
}  // namespace oneflow_lite
