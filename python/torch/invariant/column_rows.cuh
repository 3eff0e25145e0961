// SPDX-License-Identifier: Apache-2.0
//
// The launch of a row algorithm (primitive/cuda/rows/row.cuh) whose results for a row depend on
// neither the number of rows nor where the row lies in memory: the kernel follows from the width
// and the dtype alone, and thread t of a row always has its columns t, t + threads and so on. So
// rows move element by element.
#pragma once

#include "primitive/cuda/chip/launch.cuh"
#include "primitive/cuda/rows/registers.cuh"
#include "primitive/cuda/rows/streamed.cuh"

namespace oneflow_lite {
namespace cuda {

// The algorithm with packs of one column, which lie alike wherever a row begins.
template <class A>
struct ByColumns : A {
  static constexpr int kPack = 1;
  static constexpr unsigned kOffers = (A::kOffers | RowOffers::kAt) & ~RowOffers::kLoadsPacks;
  __host__ __device__ __forceinline__ explicit ByColumns(const A& a) : A(a) {}
  __device__ __forceinline__ ByColumns At(int64_t row) const {
    return ByColumns(AtRow(static_cast<const A&>(*this), row));
  }
  __device__ __forceinline__ int Head(int64_t) const { return 0; }
  __device__ __forceinline__ bool IsAligned(int64_t, int64_t) const { return true; }
};

// A block that holds a row. Two inputs, or doubles, take twice the registers.
template <class A>
struct ColumnShape {
  static constexpr bool kAligned = true;
  static constexpr bool kHeavy = A::kInputs == 2 || sizeof(typename A::C) == 8;
  static constexpr int kThreads = 512, kBlocks = kHeavy ? 1 : 2;  // per multiprocessor
  static constexpr int kPacks = 16;                               // columns of a thread
  static constexpr int64_t kMost = int64_t{kThreads} * kPacks;
};

// A row per group of kLanes lanes; the grid covers all rows.
template <int kLanes, int kColumns, class A>
__global__ void __launch_bounds__(RowPolicy::kGroupThreads)
    ColumnGroupKernel(A a, int64_t rows, int64_t cols) {
  internal::Alone<LaneGroup<kLanes>> group;
  const int64_t row =
      int64_t{blockIdx.x} * (RowPolicy::kGroupThreads / kLanes) + threadIdx.x / kLanes;
  internal::RowInRegisters<kColumns, 1, true>(a, row, row < rows, static_cast<int>(cols), group);
}

template <int kLanes, int kColumns, class A>
cudaError_t LaunchColumnGroups(const A& a, int64_t rows, int64_t cols, cudaStream_t stream) {
  constexpr int kThreads = RowPolicy::kGroupThreads;
  const int64_t blocks = CeilDiv(rows, kThreads / kLanes);
  if (blocks > kMaxBlocks) return cudaErrorInvalidConfiguration;
  return Launch(ColumnGroupKernel<kLanes, kColumns, A>, blocks, kThreads, 0, stream, a, rows, cols);
}

// The widest rows that groups of lanes have.
inline constexpr int64_t kMostGroupColumns = 256;

// Rows of any width and alignment. Neither allocates nor synchronises.
template <class A>
cudaError_t LaunchByColumns(const A& algorithm, int64_t rows, int64_t cols, cudaStream_t stream) {
  using Columns = ByColumns<A>;
  using Shape = ColumnShape<Columns>;
  if (rows <= 0 || cols <= 0) return cudaSuccess;
  const Columns a(algorithm);
  if (cols <= 32) return LaunchColumnGroups<8, 4>(a, rows, cols, stream);
  if (cols <= kMostGroupColumns) return LaunchColumnGroups<kWarp, 8>(a, rows, cols, stream);
  if (cols <= Shape::kMost) {
    const auto warps = static_cast<int>(CeilDiv(cols, kWarp * Shape::kPacks));
    return Launch(RowBlockKernel<false, Columns, Shape>, rows, warps * kWarp, 0, stream, a, rows,
                  cols);
  }
  return Launch(RowStreamedKernel<false, Columns>, rows, RowPolicy::kWideThreads, kRowScratchBytes,
                stream, a, rows, cols);
}

}  // namespace cuda
}  // namespace oneflow_lite
