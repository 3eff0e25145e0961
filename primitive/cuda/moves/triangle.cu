// SPDX-License-Identifier: Apache-2.0
//
// tril and triu: a thread writes 16 bytes of the result.
#include "primitive/cuda/moves/remap_launch.h"
#include "primitive/cuda/strided/divisor.cuh"
#include "primitive/cuda/strided/elements.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

// A pack that the triangle keeps, leaves out, or cuts.
template <class Word>
struct TriangleRun {
  Divisor rows, cols;
  int64_t diagonal;
  bool lower;
  const Word* x;
  Word* y;

  __device__ bool Keeps(int64_t row, int64_t column) const {
    return lower ? column - row <= diagonal : column - row >= diagonal;
  }
  template <int N>
  __device__ void Run(int64_t i) const {
    int64_t row, column;
    if ((i >> 31) == 0) {
      const auto at = static_cast<uint32_t>(i);
      const uint32_t line = cols.Quotient(at);
      column = at - line * static_cast<uint32_t>(cols.value);
      row = line - rows.Quotient(line) * static_cast<uint32_t>(rows.value);
    } else {
      const int64_t line = i / cols.value;
      column = i - line * cols.value;
      row = line % rows.value;
    }
    Pack<Word, N> pack;
    const bool in_row = column + N <= cols.value;
    const bool first = Keeps(row, column), last = Keeps(row, column + N - 1);
    if (in_row && !first && !last) {
#pragma unroll
      for (int k = 0; k < N; ++k) pack.v[k] = Word(0);
    } else {
      pack = LoadPack<N>(x + i);
      if (!in_row || !first || !last) {
#pragma unroll
        for (int k = 0; k < N; ++k) {
          if (column == cols.value) column = 0, row = row + 1 == rows.value ? 0 : row + 1;
          if (!Keeps(row, column)) pack.v[k] = Word(0);
          ++column;
        }
      }
    }
    StorePack<N>(y + i, pack);
  }
};

template <class Word>
cudaError_t TriangleWords(const TriangleProblem& p, const void* x, void* y, cudaStream_t stream) {
  const TriangleRun<Word> run{
      Divisor(p.rows),      Divisor(p.cols), p.diagonal, p.lower, static_cast<const Word*>(x),
      static_cast<Word*>(y)};
  return ForPacks<kPackSize<Word>>(p.matrices * p.rows * p.cols, run, stream);
}

}  // namespace

cudaError_t LaunchTriangle(int item, const TriangleProblem& p, const void* x, void* y,
                           cudaStream_t stream) {
  switch (item) {
    case 1:
      return TriangleWords<uint8_t>(p, x, y, stream);
    case 2:
      return TriangleWords<uint16_t>(p, x, y, stream);
    case 4:
      return TriangleWords<uint32_t>(p, x, y, stream);
    default:
      return TriangleWords<uint64_t>(p, x, y, stream);
  }
}

}  // namespace cuda
}  // namespace oneflow_lite
