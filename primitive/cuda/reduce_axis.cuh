// SPDX-License-Identifier: Apache-2.0
//
// Work along the middle axis of outer x axis x inner. A block takes a tile of neighbouring inner
// columns: its lanes lie along inner, so that accesses are contiguous, its ways along the axis.
// Each thread gathers something over its part of the axis, then the ways merge through shared
// memory.
#pragma once

#include <stdint.h>

namespace oneflow_lite {
namespace cuda {

// outer x axis x inner, dense.
struct AxisProblem {
  int64_t outer, axis, inner;
  int lanes;  // threads of a block along inner; the others lie along the axis
};

// The columns of one thread in one tile.
template <int N>
struct AxisColumns {
  int64_t offset;  // of the first column's element at axis position 0
  int lane, way, ways;
  bool active;

  __device__ __forceinline__ AxisColumns(const AxisProblem& p, int64_t tile, int64_t tiles) {
    lane = threadIdx.x % p.lanes;
    way = threadIdx.x / p.lanes;
    ways = blockDim.x / p.lanes;
    const int64_t outer = tile / tiles;
    const int64_t column = (tile - outer * tiles) * p.lanes * N + int64_t{lane} * N;
    offset = outer * p.axis * p.inner + column;
    active = column < p.inner;
  }
};

__device__ __forceinline__ int64_t TilesPerOuter(const AxisProblem& p, int n) {
  return (p.inner + int64_t{p.lanes} * n - 1) / (int64_t{p.lanes} * n);
}

// Merges the values of the ways, each thread having N, into the same result for all. The order is
// fixed. `slots` holds blockDim.x * N values of S.
template <int N, class S, class Op>
__device__ __forceinline__ void MergeWays(S (&v)[N], const AxisProblem& p, int ways, S* slots,
                                          Op op) {
  const int lane = threadIdx.x % p.lanes, way = threadIdx.x / p.lanes;
  // Column-major over the block, so that neighbouring threads touch neighbouring slots.
#pragma unroll
  for (int i = 0; i < N; ++i) slots[i * blockDim.x + threadIdx.x] = v[i];
  __syncthreads();
  for (int half = ways / 2; half > 0; half /= 2) {
    if (way < half) {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        S* mine = slots + i * blockDim.x + threadIdx.x;
        *mine = op(*mine, mine[half * p.lanes]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < N; ++i) v[i] = slots[i * blockDim.x + lane];
  __syncthreads();  // the next tile writes the slots again
}

}  // namespace cuda
}  // namespace oneflow_lite
