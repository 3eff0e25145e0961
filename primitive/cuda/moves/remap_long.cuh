// SPDX-License-Identifier: Apache-2.0
//
// Long rows of whole packs that are read in runs. A thread writes an aligned pack from the two that
// it lies in; of the few packs that lie in no run or in two, the elements one by one.
#pragma once

#include "primitive/cuda/chip/launch.cuh"
#include "primitive/cuda/moves/remap_rows.cuh"

namespace oneflow_lite {
namespace cuda {

// docs/lab/56-reductions-of-whole-rows.md has the figures.
inline constexpr int kLongThreads = 128;
inline constexpr int kLeastLongPacks = 512;  // of a row: one warp of sixteen meets its ends

// Whether rows of `pack` elements to a pack are such ones.
inline bool ServesLongRows(const RemapRows& r, int pack) {
  return r.last.stride == 1 && r.last.mode != RemapMode::kFlip && r.count > 0 &&
         r.width % pack == 0 && r.width >= kLeastLongPacks * pack &&
         r.beside() < kLeastLongPacks * pack / 32;
}

template <class Word>
__global__ void __launch_bounds__(kLongThreads)
    LongRowsKernel(const __grid_constant__ RemapRows r, Word fill, const Word* x, Word* y) {
  constexpr int N = kPackSize<Word>;
  const uint32_t i = (blockIdx.x * kLongThreads + threadIdx.x) * N;
  if (i >= r.numel) return;
  int32_t column;
  const uint32_t row = r.RowOf(i, &column);
  const int32_t begin = r.OffsetOf(row);
  bool in_run = false;
  int32_t by = 0;
#pragma unroll
  for (int k = 0; k < RemapRows::kMostRuns; ++k) {
    const ColumnRun& run = r.runs[k];
    if (k < r.count && column >= run.from && column + N <= run.to) in_run = true, by = run.by;
  }
  Pack<Word, N> pack;
  if (in_run && begin >= 0) {
    pack = LoadShiftedPack<N>(x + (begin + column + by));
  } else {
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const int32_t place = r.last.PlaceAs(column + k);
      pack.v[k] = (place | begin) >= 0 ? x[begin + place] : fill;
    }
  }
  StorePack<N>(y + i, pack);
}

template <class Word>
cudaError_t LaunchLongRows(const RemapRows& rows, Word fill, const Word* x, Word* y,
                           cudaStream_t stream) {
  const int64_t threads = rows.numel / kPackSize<Word>;
  return Launch(LongRowsKernel<Word>, CeilDiv(threads, kLongThreads), kLongThreads, 0, stream, rows,
                fill, x, y);
}

}  // namespace cuda
}  // namespace oneflow_lite
