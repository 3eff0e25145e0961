// SPDX-License-Identifier: Apache-2.0
//
// Gather where all rows share one index: a block's places stay in its registers, and rows come one
// after the other through shared memory, the next ones under way while one is read.
#pragma once

#include "primitive/cuda/chip/async_copy.cuh"
#include "primitive/cuda/chip/launch.cuh"
#include "primitive/cuda/chip/pack.cuh"
#include "primitive/places.h"

namespace oneflow_lite {
namespace cuda {

// docs/lab/55-rearrangements-in-packs.md has the figures.
inline constexpr int kColumnsThreads = 512;
inline constexpr int kColumnsPlaces = 16;  // of a thread
inline constexpr int kColumnsBlocks = 3;   // of a multiprocessor
inline constexpr int kMostStages = kMaxPendingCopies + 1;

struct ColumnsShape {
  int rows, size, count;  // rows, columns of x, and of y
  int64_t x_row, y_row;   // strides
  bool from_end;
  int stages;  // rows of a block in shared memory

  // Whether the places are worth their registers, and rows are whole packs. The caller sets all but
  // the stages.
  template <class T>
  bool Serve(const DeviceLimits& limits, const int64_t* index, const void* x, const void* y) {
    constexpr int N = kPackSize<T>, kLeastRows = 8, kLeastColumns = 2048;
    const auto past = reinterpret_cast<uintptr_t>(index) | reinterpret_cast<uintptr_t>(x) |
                      reinterpret_cast<uintptr_t>(y);
    const bool packs =
        size % N == 0 && count % N == 0 && x_row % N == 0 && y_row % N == 0 && past % 16 == 0;
    const int64_t row_bytes = int64_t{size} * static_cast<int64_t>(sizeof(T));
    const int64_t room = limits.shared_per_multiprocessor / kColumnsBlocks - kReservedSharedBytes;
    if (!packs || size <= 0 || size >= kNoColumn || count < kLeastColumns) return false;
    const int64_t fit = room / row_bytes;
    stages = static_cast<int>(fit < kMostStages ? fit : kMostStages);
    return stages >= 2 && stages * row_bytes <= limits.shared_per_block &&
           rows >= kLeastRows * kColumnsBlocks * limits.multiprocessors;
  }
  static constexpr int kNoColumn = 0xffff;  // places have 16 bits
};

// Blocks along x share the rows out among themselves; a block along y has kColumnsThreads *
// kColumnsPlaces columns of y.
template <class T>
__global__ void __launch_bounds__(kColumnsThreads, kColumnsBlocks)
    ColumnsKernel(ColumnsShape s, const int64_t* index, const T* x, T missing, T* y) {
  extern __shared__ uint4 memory[];
  constexpr int N = kPackSize<T>, kPacks = kColumnsPlaces / N;
  const int row_packs = s.size / N;
  const int first =
      (static_cast<int>(blockIdx.y) * kPacks * kColumnsThreads + static_cast<int>(threadIdx.x)) * N;
  constexpr int kStep = kColumnsThreads * N;  // from a thread's pack to its next
  uint32_t places[kPacks][N / 2];             // two in each
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    const int i = first + p * kStep;
    if (i >= s.count) continue;
#pragma unroll
    for (int e = 0; e < N; e += 2) {
      const Pack<int64_t, 2> two = LoadAlignedPack<2>(index + i + e);
      const auto low = static_cast<uint32_t>(FindPlace(two.v[0], s.size, s.from_end));
      const auto high = static_cast<uint32_t>(FindPlace(two.v[1], s.size, s.from_end));
      places[p][e / 2] = (low & ColumnsShape::kNoColumn) | high << 16;
    }
  }
  const auto fetch = [&](int64_t row, int stage) {
    if (row < s.rows) {
      const T* from = x + row * s.x_row;
      for (int k = static_cast<int>(threadIdx.x); k < row_packs; k += kColumnsThreads) {
        CopyAsync(memory + stage * row_packs + k, from + k * N, kPackBytes);
      }
    }
    CommitCopies();
  };
  const int64_t step = gridDim.x;
  for (int k = 0; k + 1 < s.stages; ++k) fetch(blockIdx.x + k * step, k);
  int stage = 0, free = s.stages - 1;
  for (int64_t row = blockIdx.x; row < s.rows; row += step) {
    WaitForCopies(s.stages - 2);
    __syncthreads();  // all have the row, and are done with the one before
    fetch(row + (s.stages - 1) * step, free);
    const T* held = reinterpret_cast<const T*>(memory + stage * row_packs);
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int i = first + p * kStep;
      if (i >= s.count) continue;
      Pack<T, N> pack;
#pragma unroll
      for (int e = 0; e < N; ++e) {
        const uint32_t two = places[p][e / 2];
        const uint32_t place = e % 2 ? two >> 16 : two & ColumnsShape::kNoColumn;
        pack.v[e] = place == ColumnsShape::kNoColumn ? missing : held[place];
      }
      StoreAlignedPack<N>(y + row * s.y_row + i, pack);
    }
    free = stage;
    stage = stage + 1 == s.stages ? 0 : stage + 1;
  }
}

template <class T>
cudaError_t LaunchColumns(const ColumnsShape& s, const DeviceLimits& limits, const int64_t* index,
                          const T* x, T missing, T* y, cudaStream_t stream) {
  constexpr auto kernel = ColumnsKernel<T>;
  const cudaError_t error = AllowAllShared<kernel>(limits);
  if (error != cudaSuccess) return error;
  const auto blocks = static_cast<unsigned>(kColumnsBlocks * limits.multiprocessors);
  const auto parts = static_cast<unsigned>(CeilDiv(s.count, kColumnsThreads * kColumnsPlaces));
  const size_t shared = static_cast<size_t>(s.stages) * static_cast<size_t>(s.size) * sizeof(T);
  const LaunchConfig config({}, dim3(blocks, parts), kColumnsThreads, shared, stream);
  return cudaLaunchKernelEx(config.get(), kernel, s, index, x, missing, y);
}

}  // namespace cuda
}  // namespace oneflow_lite
