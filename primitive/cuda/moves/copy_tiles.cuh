// SPDX-License-Identifier: Apache-2.0
//
// Transposes: dst is dense along the last dim, src along the one before it. A block moves a tile
// through shared memory, so that it reads along src's dense dim and writes along dst's.
#pragma once

#include "primitive/cuda/strided/elements.cuh"

namespace oneflow_lite {
namespace cuda {

inline constexpr int kTileThreads = 256;
// Blocks of a multiprocessor; with 8, registers would be spilled.
template <int kColBytes>
inline constexpr int kTileBlocks = kColBytes > 128 ? 4 : 6;
// Of dst, where its rows have so many: those of 256 bytes are better for 16 bits and 32
// (docs/lab/55-rearrangements-in-packs.md).
inline constexpr int kTileBytes = 128, kWideTileBytes = 256;

// A tile in shared memory, column by column as src has it. T is any type of the element's size.
template <class T, int kAccess, int kColBytes = kTileBytes>
struct CopyTile {
  static constexpr int kSize = sizeof(T);
  static constexpr int kPack = kAccess / kSize;
  // Whole cache lines in both directions, and 8 KB (wide ones, and of bytes: 16).
  static constexpr int kCols = kColBytes / kSize;  // along dst's dense dim
  static constexpr int kRows = 128 / kSize < 64 ? 64 : 128 / kSize;
  // Columns are multiples of 128 bytes long, and a warp reads elements of the columns j * kPack + k
  // for a few rows: shifted by a pack each, they fall into banks of their own.
  static constexpr int kSkew = kAccess < 4 ? 4 / kSize : kPack;

  alignas(16) T elements[kCols * kRows + kCols / kPack * kSkew];

  __device__ __forceinline__ T* At(int row, int col) {
    return elements + col * kRows + col / kPack * kSkew + row;
  }
};

// N elements from p on, which is aligned to all of them.
template <int N, class T>
__device__ __forceinline__ Pack<T, N> LoadWhole(const T* p) {
  if constexpr (N == 1) {
    return {{*p}};
  } else {
    return LoadAlignedPack<N>(p);
  }
}
template <int N, class T>
__device__ __forceinline__ void StoreWhole(T* p, const Pack<T, N>& pack) {
  if constexpr (N == 1) {
    *p = pack.v[0];
  } else {
    StoreAlignedPack(p, pack);
  }
}
// StoreAlignedPack's, to shared memory.
template <int N, class T>
__device__ __forceinline__ void StoreShared(T* p, const Pack<T, N>& pack) {
  if constexpr (N == 1) {
    *p = pack.v[0];
  } else {
    using Word = typename WordOf<N * sizeof(T)>::type;
    Word word;
    memcpy(&word, &pack, sizeof(Word));
    *reinterpret_cast<Word*>(p) = word;
  }
}

// src[row + col * src_stride] is copied to dst[row * dst_stride + col], for every matrix of a
// batch.
struct TileGrid {
  int64_t rows, cols, src_stride, dst_stride;
  uint32_t row_tiles, col_tiles;
  Strided<2> batch;
};

// A block per tile. In both operands packs of kAccess bytes are whole and aligned.
template <class T, int kAccess, int kColBytes>
__global__ void __launch_bounds__(kTileThreads, kTileBlocks<kColBytes>)
    CopyTilesKernel(TileGrid g, const T* src, T* dst) {
  using Tile = CopyTile<T, kAccess, kColBytes>;
  constexpr int kPack = Tile::kPack;
  __shared__ Tile tile;
  const uint32_t rest = blockIdx.x / g.col_tiles;
  int64_t offsets[2];
  OffsetsOf<2, uint32_t>(g.batch, rest / g.row_tiles, offsets);
  const int64_t first_row = int64_t{rest % g.row_tiles} * Tile::kRows;
  const int64_t first_col = int64_t{blockIdx.x % g.col_tiles} * Tile::kCols;
  const int64_t rows = g.rows - first_row, cols = g.cols - first_col;  // or more than a tile's
  src += offsets[0] + first_row + first_col * g.src_stride;
  dst += offsets[1] + first_col + first_row * g.dst_stride;
  {
    constexpr int kLanes = Tile::kRows / kPack, kStep = kTileThreads / kLanes;
    constexpr int kPasses = Tile::kCols / kStep, kHeld = kPasses < 16 ? kPasses : 16;
    const int row = static_cast<int>(threadIdx.x) % kLanes * kPack;
    const int from = static_cast<int>(threadIdx.x) / kLanes;
#pragma unroll 1
    for (int pass = 0; pass < kPasses; pass += kHeld) {
      // All loads are under way before the first is waited for.
      Pack<T, kPack> packs[kHeld] = {};
#pragma unroll
      for (int k = 0; k < kHeld; ++k) {
        const int col = from + (pass + k) * kStep;
        if (row < rows && col < cols) packs[k] = LoadWhole<kPack>(src + col * g.src_stride + row);
      }
#pragma unroll
      for (int k = 0; k < kHeld; ++k) {
        StoreShared(tile.At(row, from + (pass + k) * kStep), packs[k]);
      }
    }
  }
  __syncthreads();
  constexpr int kLanes = Tile::kCols / kPack, kStep = kTileThreads / kLanes;
  const int col = static_cast<int>(threadIdx.x) % kLanes * kPack;
#pragma unroll(Tile::kRows / kStep < 16 ? Tile::kRows / kStep : 16)
  for (int row = static_cast<int>(threadIdx.x) / kLanes; row < Tile::kRows; row += kStep) {
    Pack<T, kPack> pack;
#pragma unroll
    for (int k = 0; k < kPack; ++k) pack.v[k] = *tile.At(row, col + k);
    if (row < rows && col < cols) StoreWhole<kPack>(dst + row * g.dst_stride + col, pack);
  }
}

// g's innermost dims are dst's dense one and src's; the others are the batch. Precondition: the
// tiles' number is at most kMaxBlocks.
template <class T, int kAccess, int kColBytes = kTileBytes>
cudaError_t LaunchTiles(const Strided<2>& g, const void* src, void* dst, cudaStream_t stream) {
  using Tile = CopyTile<T, kAccess, kColBytes>;
  if (g.numel <= 0) return cudaSuccess;
  if constexpr ((sizeof(T) == 2 || sizeof(T) == 4) && kAccess == 16 && kColBytes == kTileBytes) {
    constexpr int64_t kWide = CopyTile<T, kAccess, kWideTileBytes>::kCols;
    if (g.dims[0] % kWide == 0 || g.dims[0] >= 16 * kWide) {
      return LaunchTiles<T, kAccess, kWideTileBytes>(g, src, dst, stream);
    }
  }
  TileGrid grid = {};
  grid.cols = g.dims[0], grid.rows = g.dims[1];
  grid.src_stride = g.strides[0][0], grid.dst_stride = g.strides[1][1];
  grid.batch.ndim = g.ndim - 2;
  grid.batch.numel = g.numel / (grid.rows * grid.cols);
  for (int d = 0; d < grid.batch.ndim; ++d) {
    grid.batch.dims[d] = g.dims[d + 2];
    grid.batch.multiplier[d] = g.multiplier[d + 2], grid.batch.shift[d] = g.shift[d + 2];
    for (int i = 0; i < 2; ++i) grid.batch.strides[i][d] = g.strides[i][d + 2];
  }
  const int64_t row_tiles = CeilDiv(grid.rows, Tile::kRows);
  const int64_t col_tiles = CeilDiv(grid.cols, Tile::kCols);
  grid.row_tiles = static_cast<uint32_t>(row_tiles);
  grid.col_tiles = static_cast<uint32_t>(col_tiles);
  return Launch(CopyTilesKernel<T, kAccess, kColBytes>, grid.batch.numel * row_tiles * col_tiles,
                kTileThreads, 0, stream, grid, static_cast<const T*>(src), static_cast<T*>(dst));
}

}  // namespace cuda
}  // namespace oneflow_lite
