// SPDX-License-Identifier: Apache-2.0
//
// A map of two operands that also sums by column or by row: each element of dy and a gives one of
// da and a term of db, whose sum is taken as it passes. A block leaves the sums of its part, and a
// second launch adds up those of all parts; where there is one part, it stores the results itself.
//
// What differs is a type F, of values in the compute type:
//
//   struct MulSlopes {
//     template <class C> __device__ static C A(C dy, C a, C b) { return dy * b; }
//     template <class C> __device__ static C B(C dy, C a) { return dy * a; }
//   };
#pragma once

#include "primitive/cuda/chip/async_copy.cuh"
#include "primitive/cuda/chip/group.cuh"
#include "primitive/cuda/chip/launch.cuh"
#include "primitive/cuda/chip/pack.cuh"
#include "primitive/cuda/strided/divisor.cuh"

namespace oneflow_lite {
namespace cuda {

struct MapSumPolicy {
  static constexpr int kThreads = 256;
  static constexpr int kPlaces = 2;      // packs of dy and of a under way in a thread,
  static constexpr int kOnePlaces = 4;   // and elements of 16 bits
  static constexpr int kResident = 4;    // blocks of a multiprocessor, for which there are parts
  static constexpr int kShortRun = 32;   // elements of one b that are spread over columns
  static constexpr int kFewUnits = 128;  // packs of a b that lanes of a warp take,
  static constexpr int kManyRows = 32;   // or any number where so many b of a multiprocessor
                                         // are there
  static constexpr int kMergeWays = 32;  // threads that add up the parts of a result, at most
};

// Sums of parts, [part][column] with `run` columns of a result; or of one part the results.
template <class T>
struct MapSums {
  using C = ComputeType<T>;
  C* partial;  // null where there is one part, of one column each
  T* y;
  int64_t columns;
  __device__ __forceinline__ void Store(int64_t part, int64_t column,
                                        const CompensatedSum<C>& sum) const {
    if (partial) {
      partial[part * columns + column] = sum.Get();
    } else {
      y[column] = ConvertTo<T>(sum.Get());
    }
  }
};

// K packs of N neighbours at such places: da is stored, and take(i, sum) gets the sum of the K
// terms of neighbours i.
template <class F, int N, int K, class T, class B, class Take>
__device__ __forceinline__ void MapPacks(const T* dy, const T* a, T* da, const int64_t (&places)[K],
                                         const B& b, const Take& take) {
  using C = ComputeType<T>;
  Pack<T, N> at_dy[K], at_a[K];
#pragma unroll
  for (int k = 0; k < K; ++k) {
    at_dy[k] = LoadAlignedPack<N>(dy + places[k]);
    at_a[k] = LoadAlignedPack<N>(a + places[k]);
  }
  C sums[N] = {};
#pragma unroll
  for (int k = 0; k < K; ++k) {
    Pack<C, N> mapped;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const C g = ConvertTo<C>(at_dy[k].v[i]), x = ConvertTo<C>(at_a[k].v[i]);
      mapped.v[i] = F::A(g, x, b(i));
      sums[i] += F::B(g, x);
    }
    StoreAlignedPack(da + places[k], ConvertPack<T>(mapped));
  }
#pragma unroll
  for (int i = 0; i < N; ++i) take(i, sums[i]);
}
template <int N, class T>
inline constexpr int kMapPlaces = N == 1 && sizeof(T) == 2 ? MapSumPolicy::kOnePlaces
                                                           : MapSumPolicy::kPlaces;

// rows x columns; column c has b[c / run]. A block takes `lanes` times N columns of the rows that
// are its part's, which take turns.
struct MapColumns {
  int64_t rows, columns;
  Divisor run, tiles;
  int lanes_log2;
  int64_t parts;
};
template <class F, int N, class T>
__global__ void __launch_bounds__(MapSumPolicy::kThreads, MapSumPolicy::kResident)
    MapColumnsKernel(const __grid_constant__ MapColumns p, const T* __restrict__ dy,
                     const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ da,
                     MapSums<T> out) {
  using C = ComputeType<T>;
  constexpr int kThreads = MapSumPolicy::kThreads, K = kMapPlaces<N, T>;
  __shared__ CompensatedSum<C> slots[kThreads * N];
  AllowNextKernel();
  const int lanes = 1 << p.lanes_log2, lane = threadIdx.x & (lanes - 1);
  const int way = threadIdx.x >> p.lanes_log2, ways = kThreads >> p.lanes_log2;
  const int64_t part = p.tiles.Quotient(blockIdx.x);
  const int64_t first = (blockIdx.x - part * p.tiles.value) * lanes * N, column = first + lane * N;
  CompensatedSum<C> sums[N];
  if (column < p.columns) {
    C weights[N];
#pragma unroll
    for (int i = 0; i < N; ++i) weights[i] = ConvertTo<C>(b[p.run.QuotientOfAny(column + i)]);
    const auto weight = [&](int i) { return weights[i]; };
    const auto take = [&](int i, C term) { sums[i].Add(term); };
    const int64_t step = p.parts * ways * K;
#pragma unroll 1
    for (int64_t row = part * ways * K + way; row < p.rows; row += step) {
      const auto place = [&](int64_t r) { return r * p.columns + column; };
      if (row + (K - 1) * ways < p.rows) {
        int64_t places[K];
#pragma unroll
        for (int k = 0; k < K; ++k) places[k] = place(row + k * ways);
        MapPacks<F, N, K>(dy, a, da, places, weight, take);
      } else {
#pragma unroll 1
        for (int64_t r = row; r < p.rows; r += ways) {
          const int64_t places[1] = {place(r)};
          MapPacks<F, N, 1>(dy, a, da, places, weight, take);
        }
      }
    }
  }
#pragma unroll
  for (int i = 0; i < N; ++i) slots[(way * N + i) * lanes + lane] = sums[i];
  __syncthreads();
#pragma unroll 1
  for (int c = threadIdx.x; c < lanes * N; c += kThreads) {
    CompensatedSum<C> sum;
    for (int w = 0; w < ways; ++w) sum = MergeCompensated{}(sum, slots[w * lanes * N + c]);
    const int64_t to = first + (c & (lanes - 1)) * N + (c >> p.lanes_log2);
    if (to < p.columns) out.Store(part, to, sum);
  }
}

// [outer, axis, packs of N]: element o, i has b[i]. A team of lanes of a warp, or a block, takes
// the part of one b; parts take turns.
struct MapRows {
  int64_t outer, axis;
  Divisor packs, parts;
  int lanes_log2;
};
template <class F, int N, class T>
__global__ void __launch_bounds__(MapSumPolicy::kThreads, MapSumPolicy::kResident)
    MapRowsKernel(const __grid_constant__ MapRows p, const T* __restrict__ dy,
                  const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ da,
                  MapSums<T> out) {
  using C = ComputeType<T>;
  constexpr int kThreads = MapSumPolicy::kThreads, K = kMapPlaces<N, T>;
  __shared__ CompensatedSum<C> slots[kThreads / kWarp];
  AllowNextKernel();
  const int lanes = 1 << p.lanes_log2, rank = threadIdx.x & (lanes - 1);
  const int64_t task =
      int64_t{blockIdx.x} * (kThreads >> p.lanes_log2) + (threadIdx.x >> p.lanes_log2);
  const int64_t row = p.parts.QuotientOfAny(task), part = task - row * p.parts.value;
  const int64_t units = row < p.axis ? p.outer * p.packs.value : 0;
  const C number = units > 0 ? ConvertTo<C>(b[row]) : C(0);
  const auto weight = [&](int) { return number; };
  C terms(0);
  const auto take = [&](int, C term) { terms += term; };
  const auto place = [&](int64_t unit) {
    const int64_t o = p.packs.QuotientOfAny(unit);
    return ((o * p.axis + row) * p.packs.value + unit - o * p.packs.value) * N;
  };
  CompensatedSum<C> sum;
#pragma unroll 1
  for (int64_t unit = part * lanes * K + rank; unit < units; unit += p.parts.value * lanes * K) {
    if (unit + (K - 1) * lanes < units) {
      int64_t places[K];
#pragma unroll
      for (int k = 0; k < K; ++k) places[k] = place(unit + k * lanes);
      MapPacks<F, N, K>(dy, a, da, places, weight, take);
    } else {
#pragma unroll 1
      for (int64_t u = unit; u < units; u += lanes) {
        const int64_t places[1] = {place(u)};
        MapPacks<F, N, 1>(dy, a, da, places, weight, take);
      }
    }
    sum.Add(terms);
    terms = C(0);
  }
#pragma unroll 1
  for (int delta = 1; delta < lanes && delta < kWarp; delta *= 2) {
    sum = MergeCompensated{}(sum, ShuffleXor(sum, delta));
  }
  if (lanes > kWarp) {
    if (threadIdx.x % kWarp == 0) slots[threadIdx.x / kWarp] = sum;
    __syncthreads();
    if (rank != 0) return;
    sum = slots[0];
    for (int w = 1; w < kThreads / kWarp; ++w) sum = MergeCompensated{}(sum, slots[w]);
  }
  if (rank == 0 && row < p.axis) out.Store(part, row, sum);
}

// y[i]: the sum of its `run` columns of all parts. A block has `lanes` results, and each so many
// threads as are left.
template <class T>
__global__ void __launch_bounds__(MapSumPolicy::kThreads)
    MergePartsKernel(int64_t parts, int64_t axis, int64_t run, int lanes_log2,
                     const ComputeType<T>* partial, T* y) {
  using C = ComputeType<T>;
  constexpr int kThreads = MapSumPolicy::kThreads;
  __shared__ CompensatedSum<C> slots[kThreads];
  const int lanes = 1 << lanes_log2, ways = kThreads >> lanes_log2;
  const int lane = threadIdx.x & (lanes - 1), way = threadIdx.x >> lanes_log2;
  const int64_t i = int64_t{blockIdx.x} * lanes + lane;
  CompensatedSum<C> sum;
  WaitForPreviousKernel();
  if (i < axis) {
#pragma unroll 1
    for (int64_t k = 0; k < run; ++k) {
#pragma unroll 4
      for (int64_t part = way; part < parts; part += ways) {
        sum.Add(partial[(part * axis + i) * run + k]);
      }
    }
  }
  slots[threadIdx.x] = sum;
  __syncthreads();
  if (way != 0 || i >= axis) return;
  for (int w = 1; w < ways && w < parts; ++w) {
    sum = MergeCompensated{}(sum, slots[w * lanes + lane]);
  }
  y[i] = ConvertTo<T>(sum.Get());
}

}  // namespace cuda
}  // namespace oneflow_lite
