// SPDX-License-Identifier: Apache-2.0
//
// tril and triu: a thread writes 16 bytes of the result, and reads them where the triangle keeps
// any.
#include "primitive/cuda/moves/remap_launch.h"
#include "primitive/cuda/strided/divisor.cuh"
#include "primitive/cuda/strided/elements.cuh"
#include "primitive/cuda/strided/wanted.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

// In Index elements are counted, in Int places of a matrix.
template <class Index, class Int, class Word>
struct TriangleRun {
  Divisor rows, cols;
  Index numel;
  Int diagonal;
  bool lower, aligned;  // x is, to 16 bytes
  const Word* x;
  Word* y;

  __device__ __forceinline__ bool Keeps(Int row, Int column) const {
    return lower ? column - row <= diagonal : column - row >= diagonal;
  }
};

// The grid covers all packs.
template <class Index, class Int, class Word>
__global__ void __launch_bounds__(kElementwiseThreads)
    TriangleKernel(const __grid_constant__ TriangleRun<Index, Int, Word> t) {
  constexpr int N = kPackSize<Word>;
  const Index i = (static_cast<Index>(blockIdx.x) * kElementwiseThreads + threadIdx.x) * N;
  if (i >= t.numel) return;
  const Index line = t.cols.Quotient(i);
  auto column = static_cast<Int>(i - line * static_cast<Index>(t.cols.value));
  auto row = static_cast<Int>(line - t.rows.Quotient(line) * static_cast<Index>(t.rows.value));
  if (column + N <= static_cast<Int>(t.cols.value)) {
    const bool first = t.Keeps(row, column), last = t.Keeps(row, column + N - 1);
    Pack<Word, N> pack = {};
    if (first || last) {
      pack = t.aligned ? LoadAlignedPack<N>(t.x + i) : LoadWanted<N>(t.x + i, 0, N);
      if (!first || !last) {
#pragma unroll
        for (int k = 0; k < N; ++k) {
          if (!t.Keeps(row, column + k)) pack.v[k] = Word(0);
        }
      }
    }
    StorePack<N>(t.y + i, pack);
    return;
  }
#pragma unroll 1
  for (int k = 0; k < N && i + k < t.numel; ++k, ++column) {
    if (column == static_cast<Int>(t.cols.value)) {
      column = 0, ++row;
      if (row == static_cast<Int>(t.rows.value)) row = 0;
    }
    t.y[i + k] = t.Keeps(row, column) ? t.x[i + k] : Word(0);
  }
}

template <class Index, class Int, class Word>
cudaError_t LaunchWords(const TriangleProblem& p, const void* x, void* y, cudaStream_t stream) {
  const int64_t numel = p.matrices * p.rows * p.cols;
  const TriangleRun<Index, Int, Word> run{Divisor(p.rows),
                                          Divisor(p.cols),
                                          static_cast<Index>(numel),
                                          static_cast<Int>(p.diagonal),
                                          p.lower,
                                          reinterpret_cast<uintptr_t>(x) % kPackBytes == 0,
                                          static_cast<const Word*>(x),
                                          static_cast<Word*>(y)};
  return Launch(TriangleKernel<Index, Int, Word>,
                CeilDiv(numel, int64_t{kPackSize<Word>} * kElementwiseThreads), kElementwiseThreads,
                0, stream, run);
}

template <class Word>
cudaError_t TriangleWords(const TriangleProblem& p, const void* x, void* y, cudaStream_t stream) {
  // Sums and differences of rows, columns and the diagonal have 32 bits. That index of a thread
  // which is behind the last element does, too.
  constexpr int64_t kNear = (int64_t{1} << 31) - kElementwiseThreads * kPackBytes;
  if (p.matrices * p.rows * p.cols <= 0) return cudaSuccess;
  return p.matrices * p.rows * p.cols < kNear && p.rows < kNear / 2 && p.cols < kNear / 2
             ? LaunchWords<uint32_t, int32_t, Word>(p, x, y, stream)
             : LaunchWords<int64_t, int64_t, Word>(p, x, y, stream);
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
