// SPDX-License-Identifier: Apache-2.0
//
// The row kernel of narrow rows that lie anyhow: read and written column by column, a row per group
// of lanes. A group may have two rows at once, so that their loads and reductions overlap.
#pragma once

#include "primitive/cuda/chip/launch.cuh"
#include "primitive/cuda/rows/load.cuh"
#include "primitive/cuda/rows/policy.h"

namespace oneflow_lite {
namespace cuda {
namespace internal {

// What a thread's columns have in all rows, where the algorithm says so.
template <int kLanes, int kColumns, class A, bool = Offers<A, RowOffers::kColumnConstants>>
struct OfColumns {
  __device__ __forceinline__ void Ask(const A&, int) {}
  __device__ __forceinline__ void Take(const A&) {}
  template <class Value, class Total>
  __device__ __forceinline__ void Store(const A& a, int64_t row, int col, int k, const Value& value,
                                        const Total& total) const {
    a.template Store<1>(row, col + k * kLanes, value, total);
  }
};
template <int kLanes, int kColumns, class A>
struct OfColumns<kLanes, kColumns, A, true> {
  typename A::template ColumnConstants<kColumns> constants;
  __device__ __forceinline__ void Ask(const A& a, int col) {
    a.template Ask<kLanes>(col, constants);
  }
  __device__ __forceinline__ void Take(const A& a) { a.Take(constants); }
  template <class Value, class Total>
  __device__ __forceinline__ void Store(const A& a, int64_t row, int col, int k, const Value& value,
                                        const Total& total) const {
    a.StoreColumn(row, col + k * kLanes, value, total, constants, k);
  }
};

template <int kRound, int kTogether, int kColumns, class A, class Value, class Group, class Total>
__device__ __forceinline__ void RunColumnRounds(const A& a, Value (&value)[kTogether][kColumns],
                                                int cols, Group& group, Total (&total)[kTogether]) {
  if constexpr (kRound < A::kRounds) {
    const JoinOf<kRound, A> join;
    const auto identity = IdentityOf<kRound, A>();
    auto found = a.template Visit<kRound>(value[0][0], false, total[0]);
    decltype(found) sum[kTogether];
#pragma unroll
    for (int r = 0; r < kTogether; ++r) {
      sum[r] = identity;
#pragma unroll
      for (int k = 0; k < kColumns; ++k) {
        const bool present = group.rank() + k * Group::kLanes < cols;
        sum[r] = join(sum[r], a.template Visit<kRound>(value[r][k], present, total[r]));
      }
    }
#pragma unroll
    for (int r = 0; r < kTogether; ++r) sum[r] = group.Reduce(sum[r], join, identity);
#pragma unroll
    for (int r = 0; r < kTogether; ++r) a.template Finish<kRound>(sum[r], total[r]);
    RunColumnRounds<kRound + 1>(a, value, cols, group, total);
  }
}

}  // namespace internal

// kTogether rows at once per group of kLanes lanes. The grid covers all rows; cols <= kLanes *
// kColumns.
template <int kLanes, int kColumns, int kTogether, class A>
__global__ void __launch_bounds__(RowPolicy::kGroupThreads)
    RowColumnsKernel(A every, int64_t rows, int cols) {
  constexpr int kGroups = RowPolicy::kGroupThreads / kLanes;
  LaneGroup<kLanes> group;
  const int64_t first = int64_t{blockIdx.x} * (kGroups * kTogether) + threadIdx.x / kLanes;
  const int col = group.rank();
  typename A::template Raw<1> raw[kTogether][kColumns];
  internal::OfColumns<kLanes, kColumns, A> of_columns;
  typename A::Total total[kTogether];
#pragma unroll
  for (int r = 0; r < kTogether; ++r) {
    const int64_t row = first + r * kGroups;
    if (row >= rows) continue;
    const A a = AtRow(every, row);
    total[r] = a.Begin(row);
#pragma unroll
    for (int k = 0; k < kColumns; ++k) {
      if (col + k * kLanes < cols) {
        raw[r][k] = a.template Load<Access::kAny, 1>(row, col + k * kLanes);
      }
    }
  }
  of_columns.Ask(every, col);
  typename A::template Value<1> value[kTogether][kColumns];
#pragma unroll
  for (int r = 0; r < kTogether; ++r) {
#pragma unroll
    for (int k = 0; k < kColumns; ++k) {
      value[r][k] =
          every.template Open<1>(raw[r][k], col + k * kLanes < cols, col + k * kLanes, total[r]);
    }
  }
  internal::RunColumnRounds<0>(every, value, cols, group, total);
  of_columns.Take(every);
#pragma unroll
  for (int r = 0; r < kTogether; ++r) {
    const int64_t row = first + r * kGroups;
    if (row >= rows) continue;
    const A a = AtRow(every, row);
#pragma unroll
    for (int k = 0; k < kColumns; ++k) {
      if (col + k * kLanes < cols) of_columns.Store(a, row, col, k, value[r][k], total[r]);
    }
    if (col == 0) a.End(row, total[r]);
  }
}

// The most columns of a row here: kMostColumns where rows lie otherwise when read than when
// written, kFewColumns where they lie alike.
inline constexpr int kMostColumns = 128, kFewColumns = 40;

namespace internal {

// The algorithm that serves rows column by column.
template <class A>
auto NarrowOf(const A& a) {
  if constexpr (Offers<A, RowOffers::kNarrow>) {
    return a.Narrow();
  } else {
    return a;
  }
}

template <int kLanes, int kColumns, int kTogether, class A>
cudaError_t LaunchColumnsOf(const A& a, int64_t rows, int64_t cols, cudaStream_t stream) {
  constexpr int kThreads = RowPolicy::kGroupThreads;
  return Launch(RowColumnsKernel<kLanes, kColumns, kTogether, A>,
                CeilDiv(rows, kThreads / kLanes * kTogether), kThreads, 0, stream, a, rows,
                static_cast<int>(cols));
}
// Precondition: cols <= kFewColumns; kMostColumns. Shares of a copy, 49152 rows of half, with one
// and two rows together: softmax of 33 columns 0.80, 0.82, of 128 0.82, 0.76; rms_norm 0.72, 0.70
// (0.82 with its weights converted last) and 0.69, 0.75.
template <class A>
cudaError_t LaunchFewestColumns(const A& a, int64_t rows, int64_t cols, cudaStream_t stream) {
  return LaunchColumnsOf < 8, 5,
         Offers<A, RowOffers::kColumnConstants> ? 1 : 2 > (a, rows, cols, stream);
}
template <class A>
cudaError_t LaunchColumns(const A& a, int64_t rows, int64_t cols, cudaStream_t stream) {
  constexpr bool kWeights = Offers<A, RowOffers::kColumnConstants>;
  if (cols <= kFewColumns) return LaunchFewestColumns(a, rows, cols, stream);
  if (cols <= 64) return LaunchColumnsOf<16, 4, 2>(a, rows, cols, stream);
  return LaunchColumnsOf < 16, 8, kWeights ? 2 : 1 > (a, rows, cols, stream);
}

}  // namespace internal

}  // namespace cuda
}  // namespace oneflow_lite
