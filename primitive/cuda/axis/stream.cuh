// SPDX-License-Identifier: Apache-2.0
//
// Work along the middle axis of outer x axis x inner where a slab is too large for the chip, or
// where there are too few slabs to fill the device: it is read twice. With workspace, the axis is
// cut among blocks, which gather in one launch and write in the next; without, the blocks of a
// cluster do both. See axis/slab.cuh for the algorithm A.
#pragma once

#include "primitive/cuda/axis/slab.cuh"

namespace oneflow_lite::cuda {

enum class AxisPhase { kGather, kWrite, kBoth };

// f(raw, count) for batches of packs, along the axis; offset: of the first.
template <class A, class F>
OFL_DEVICE void VisitBatches(const A& a, const AxisThread<A::N>& me, F f) {
  constexpr int N = A::N, kBatch = AxisPolicy::kBatch / A::kInputs;
  int64_t offset = me.offset;
  for (int64_t left = me.rest; left > 0; left -= kBatch * me.stride) {
    typename A::Raw raw[kBatch];
    int count = 0;
#pragma unroll
    for (int u = 0; u < kBatch; ++u) {
      if (u * me.stride >= left) continue;
      count = u + 1;
#pragma unroll
      for (int i = 0; i < A::kInputs; ++i) {
        raw[u].input[i] =
            StowedPack<typename A::T, N>::Of(LoadAlignedPack<N>(a.Input(i) + offset + u * me.step));
      }
    }
    f(offset, raw, count);
    offset += kBatch * me.step;
  }
}

// `parts` blocks share a tile; partial[part][column] in workspace.
template <class A>
__global__ void __launch_bounds__(AxisPolicy::kMaxThreads, 2)
    AxisStreamKernel(A a, AxisShape p, AxisPhase phase, int parts, typename A::Stat* partial) {
  constexpr int N = A::N;
  constexpr int kBatch = AxisPolicy::kBatch / A::kInputs;
  using Stat = typename A::Stat;
  extern __shared__ __align__(16) char shared[];
  const int size = static_cast<int>(internal::ClusterSize());
  AxisExchangeOf<A> exchange(shared, p);
  if (phase == AxisPhase::kBoth && size > 1) exchange.Open();
  const auto as_is = [](const Stat& s) { return s; };
  const auto conclude = [&](const Stat& s) { return a.Conclude(s); };
  // What was read last is read first the second time: the L2 may have it still.
  const int64_t block = phase == AxisPhase::kWrite ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
  const int64_t tile = block / parts;
  const int part = static_cast<int>(block - tile * parts);
  const AxisThread<N> me(p, tile, part, parts);
  Stat stat[N];
#pragma unroll
  for (Stat& s : stat) s = Stat();
  if (phase != AxisPhase::kWrite) {
    VisitBatches(a, me, [&](int64_t, const typename A::Raw(&raw)[kBatch], int count) {
      a.AddBatch(raw, count, stat);
    });
    for (int mask = p.lanes; mask < kWarp; mask *= 2) {
#pragma unroll
      for (int i = 0; i < N; ++i) stat[i] = typename A::Merge{}(stat[i], ShuffleXor(stat[i], mask));
    }
    if (phase == AxisPhase::kGather) {
      exchange.MergeBlock(stat, as_is);
      const int64_t column = tile * p.lanes + me.lane;
      if (threadIdx.x < static_cast<unsigned>(p.lanes) && column < p.columns) {
#pragma unroll
        for (int i = 0; i < N; ++i) partial[(part * p.columns + column) * N + i] = stat[i];
      }
      return;
    }
    if (size > 1) {
      exchange.MergeCluster(stat, conclude);
    } else {
      exchange.MergeBlock(stat, conclude);
    }
  } else {
    const auto at = [&](int column) {  // element i of lane l is i * lanes + l
      const int i = column / p.lanes;
      const int64_t pack = tile * p.lanes + column - i * p.lanes;
      return [&p, partial, pack, i](int row) {
        return pack < p.columns ? partial[(row * p.columns + pack) * N + i] : Stat();
      };
    };
    exchange.MergeMemory(at, parts, stat, conclude);
  }
  VisitBatches(a, me, [&](int64_t offset, const typename A::Raw(&raw)[kBatch], int count) {
#pragma unroll
    for (int u = 0; u < kBatch; ++u) {
      if (u < count) {
        StoreAlignedPack<N>(a.Output() + offset + u * me.step,
                            a.template Result<false>(raw[u], stat));
      }
    }
  });
}

}  // namespace oneflow_lite::cuda
