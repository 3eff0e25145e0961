// SPDX-License-Identifier: Apache-2.0
//
// Copies of rows that begin otherwise within 16 bytes in dst than in src, or end within 16 bytes. A
// thread writes one aligned pack of dst, from the two of src that it lies in; at the ends of a row
// the elements of the pack that are the row's.
#include "primitive/cuda/moves/copy_launch.h"
#include "primitive/cuda/strided/elements.cuh"
#include "primitive/cuda/strided/wanted.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

constexpr int kThreads = 128;

// Blocks of the parts take turns, so that the parts of a row are written at about the same time
// (docs/lab/55-rearrangements-in-packs.md).
template <bool kOne, class Word>
__global__ void __launch_bounds__(kThreads, 16)
    CopyRowsKernel(const __grid_constant__ ShiftedRows rows) {
  constexpr int N = kPackSize<Word>;
  const auto parts = static_cast<uint32_t>(kOne ? 1 : rows.count);
  const uint32_t block = blockIdx.x / parts;
  const ShiftedRows::Part& part = rows.part[kOne ? 0 : blockIdx.x - block * parts];
  const uint32_t i = block * kThreads + threadIdx.x;
  if (i >= part.packs) return;
  const uint32_t row = part.row_packs.Quotient(i);
  const uint32_t at = i - row * static_cast<uint32_t>(part.row_packs.value);
  int64_t offsets[2];
  OffsetsOf<2, uint32_t>(part.rows, row, offsets);
  Word* to = static_cast<Word*>(part.dst) + offsets[1];
  const int32_t past = static_cast<int32_t>(BytesPastBoundary(to) / sizeof(Word));
  const int32_t column = static_cast<int32_t>(at * N) - past;
  if (column >= part.length) return;
  const int lo = max(-column, 0), hi = min(part.length - column, N);
  const Word* from = static_cast<const Word*>(part.src) + offsets[0];
  const Pack<Word, N> pack = LoadWanted<N>(from + column, lo, hi);
  to += column;
  if (hi - lo == N) {
    StoreAlignedPack<N>(to, pack);
    return;
  }
#pragma unroll
  for (int k = 0; k < N; ++k) {
    if (k >= lo && k < hi) to[k] = pack.v[k];
  }
}

template <class Word>
cudaError_t CopyWords(const ShiftedRows& rows, cudaStream_t stream) {
  int64_t blocks = 0;  // of the largest part
  for (int p = 0; p < rows.count; ++p) {
    const int64_t own = CeilDiv(rows.part[p].packs, int64_t{kThreads});
    blocks = own > blocks ? own : blocks;
  }
  const auto kernel = rows.count == 1 ? CopyRowsKernel<true, Word> : CopyRowsKernel<false, Word>;
  return Launch(kernel, blocks * rows.count, kThreads, 0, stream, rows);
}

}  // namespace

cudaError_t LaunchShiftedRows(const ShiftedRows& rows, cudaStream_t stream) {
  switch (rows.element_bytes) {
    case 1:
      return CopyWords<uint8_t>(rows, stream);
    case 2:
      return CopyWords<uint16_t>(rows, stream);
    case 4:
      return CopyWords<uint32_t>(rows, stream);
    default:
      return CopyWords<uint64_t>(rows, stream);
  }
}

}  // namespace cuda
}  // namespace oneflow_lite
