// SPDX-License-Identifier: Apache-2.0
//
// Plain passes that are not one dense run (Walk::kPlainRows, Walk::kPlainTiles), and which elements
// a thread of them has. C++17 for .cu files; nothing here needs a GPU.
//
//   rows:   inputs are dense along the output's rows at any offset within 16 bytes, or have one
//           number for each row. A thread has a pack of the output. Where it is written from rows
//           and numbers alone, which are soon in the caches, the thread has the same pack in some
//           rows that follow each other.
//   tiles:  an input is dense across the output's rows instead. A block has a tile, and exchanges
//           the elements of such an input in shared memory.
#pragma once

#include "primitive/cuda/elementwise/pass.h"

namespace oneflow_lite {
namespace cuda {

inline constexpr int kPlainPack = kPassPack<float>;  // 16 bytes of a 16-bit float
// docs/lab/57-layouts-of-16-bit-passes.md has the figures.
inline constexpr int kPlainThreads = 128;  // of a block of rows
inline constexpr int kPlainRows = 4;       // of a thread

// The output's packs begin at boundaries: the first one of a row that begins beside one has fewer
// elements.
constexpr int64_t MostPlainPacks(int64_t length) {
  return (length + 2 * kPlainPack - 2) / kPlainPack;
}

// A pack: where its first element is, and that element's column. The elements [From(), To(length))
// are those of a row of such a length.
template <int N>
struct PlainPlace {
  const char* in[N];
  char* out;
  int column;
  OFL_HOST_DEVICE int From() const { return column < 0 ? -column : 0; }
  OFL_HOST_DEVICE int To(int length) const {
    return length - column < kPlainPack ? length - column : kPlainPack;
  }
};

// The pack of a thread of one row; at: Divide(pass, its index). False where there is none.
template <int N>
OFL_HOST_DEVICE bool FindPlainPack(const Pass<N>& pass, const Position<N>& at,
                                   PlainPlace<N>* place) {
  place->out = pass.out + at.offset[N];
  const auto address = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(place->out));
  const int past = static_cast<int>((address >> (pass.step[N] - 1)) % kPlainPack);
  place->out -= past * static_cast<int>(pass.step[N]);
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
  for (int i = 0; i < N; ++i) {
    place->in[i] = pass.in[i] + at.offset[i];
    place->in[i] -= past * static_cast<int>(pass.step[i]);
  }
  place->column = static_cast<int>(at.first) * kPlainPack - past;
  return place->From() < place->To(pass.length);
}

// A tile has kRows x kCols elements; a thread has two packs of it.
struct PlainTile {
  static constexpr int kCols = 64, kRows = 64;
  static_assert(kCols * kRows == 2 * kPlainPack * kPassThreads, "two packs of a thread");
  // Along rows: in the same columns of two rows that follow each other.
  static constexpr int kAlong = kCols / kPlainPack;  // packs of a row
  OFL_HOST_DEVICE static int Row(int thread) { return thread / kAlong * 2; }
  OFL_HOST_DEVICE static int Col(int thread) { return thread % kAlong * kPlainPack; }
  // Along columns, where an input is dense: in the same rows of two columns.
  static constexpr int kDown = kRows / kPlainPack;       // packs of a column
  static constexpr int kNextCol = kPassThreads / kDown;  // from one column to the other
  OFL_HOST_DEVICE static int CrossedRow(int thread) { return thread % kDown * kPlainPack; }
  OFL_HOST_DEVICE static int CrossedCol(int thread) { return thread / kDown; }
  // Column by column in shared memory. The columns of a pack lie a pack farther on than those of
  // the pack before, so that a warp's lanes, which read along rows, meet in no bank.
  OFL_HOST_DEVICE static int At(int row, int col) {
    return col * kRows + col / kPlainPack * kPlainPack + row;
  }
  static constexpr int kElements = kCols * kRows + kCols;
};
inline constexpr int kPlainTileBytes = 2 * PlainTile::kElements;  // of shared memory

}  // namespace cuda
}  // namespace oneflow_lite
