// SPDX-License-Identifier: Apache-2.0
//
// softmax(scale * x + mask) of rows that are no whole packs, or whose masks are not: column by
// column, a row per group of lanes. Neighbouring lanes have neighbouring columns, so that neither x
// nor mask need lie in any way.
#pragma once

#include "primitive/cuda/chip/group.cuh"
#include "primitive/cuda/rows/policy.h"
#include "primitive/cuda/scale_mask/rows.cuh"
#include "primitive/cuda/softmax/math.cuh"

namespace oneflow_lite::cuda {

// What a lane's columns hold, kLanes apart: scores, of which `left` columns on from the first are
// visible; -inf behind them.
template <int kLanes, int kColumns, class T>
struct MaskedColumns {
  using C = ComputeType<T>;
  C score[kColumns];

  OFL_DEVICE void Load(const MaskedRows<T, uint32_t>& row, int rank, int left) {
    T x[kColumns];
    LoadColumns(row.x + rank, 1, left, x);
#pragma unroll
    for (C& v : score) v = MinusInfinity<C>();
    switch (row.type) {
      case MaskType::kNone:
#pragma unroll
        for (int k = 0; k < kColumns; ++k) {
          if (k * kLanes < left) score[k] = ConvertTo<C>(x[k]) * row.scale;
        }
        break;
      case MaskType::kBool:
        return Form<bool>(row, rank, left, x);
      case MaskType::kOwn:
        return Form<T>(row, rank, left, x);
      case MaskType::kWide:
        if constexpr (!std::is_same_v<T, C>) Form<C>(row, rank, left, x);
    }
  }

 private:
  template <class M>
  static OFL_DEVICE void LoadColumns(const M* p, int64_t stride, int left, M (&values)[kColumns]) {
#pragma unroll
    for (int k = 0; k < kColumns; ++k) {
      if (k * kLanes < left) values[k] = p[k * kLanes * stride];
    }
  }
  template <class M>
  OFL_DEVICE void Form(const MaskedRows<T, uint32_t>& row, int rank, int left,
                       const T (&x)[kColumns]) {
    const int64_t stride = row.where.col_stride;
    const M* p = reinterpret_cast<const M*>(row.mask) + rank * stride;
    M mask[kColumns];
    if (stride == 1) {  // addresses that differ by constants
      LoadColumns(p, 1, left, mask);
    } else {
      LoadColumns(p, stride, left, mask);
    }
#pragma unroll
    for (int k = 0; k < kColumns; ++k) {
      if (k * kLanes < left) score[k] = row.Score(ConvertTo<C>(x[k]), mask[k]);
    }
  }
};

// The grid covers all rows, of at most kLanes * kColumns columns.
template <int kLanes, int kColumns, class T>
__global__ void __launch_bounds__(RowPolicy::kGroupThreads)
    MaskedColumnsKernel(MaskedRows<T, uint32_t> every, int64_t rows, int cols) {
  using C = ComputeType<T>;
  constexpr int kRows = RowPolicy::kGroupThreads / kLanes;
  LaneGroup<kLanes> group;
  const int64_t place = int64_t{blockIdx.x} * kRows + threadIdx.x / kLanes;
  const bool active = place < rows;  // else the lanes still take part in their warp's reductions
  const auto row = every.At(active ? place : 0);
  const int rank = group.rank(), visible = row.Visible(), mine = active ? cols - rank : 0;
  MaskedColumns<kLanes, kColumns, T> columns;
  columns.Load(row, rank, active ? (visible < cols ? visible : cols) - rank : 0);
  auto& v = columns.score;
  C max = v[0];
#pragma unroll
  for (int k = 1; k < kColumns; ++k) max = Larger{}(max, v[k]);
  const RowExponential<C> exp(group.Reduce(max, Larger{}, MinusInfinity<C>()));
  C sum = 0;
#pragma unroll
  for (C& e : v) {
    e = exp(e);
    sum += e;
  }
  const C gain = row.GainOf(group.Reduce(sum, Plus{}, C(0)));
  T* y = row.y.y + rank;
#pragma unroll
  for (int k = 0; k < kColumns; ++k) {
    if (k * kLanes < mine) y[k * kLanes] = ConvertTo<T>(v[k] * gain);
  }
}

}  // namespace oneflow_lite::cuda
