// SPDX-License-Identifier: Apache-2.0
//
// Several small copies in one launch, whose time would be that of their launches: a thread moves
// one word.
#include "primitive/cuda/chip/launch.cuh"
#include "primitive/cuda/moves/copy_launch.h"

namespace oneflow_lite {
namespace cuda {
namespace {

constexpr int kThreads = 256;

template <class Word>
__global__ void __launch_bounds__(kThreads)
    CopyPartsKernel(const __grid_constant__ CopyParts parts) {
  int p = 0;
  while (p + 1 < parts.count && blockIdx.x >= parts.part[p + 1].first_block) ++p;
  const CopyParts::Part& part = parts.part[p];
  const uint32_t i = (blockIdx.x - part.first_block) * kThreads + threadIdx.x;
  if (i >= part.words) return;
  const uint32_t row = part.row_words.Quotient(i);
  const uint32_t column = i - row * static_cast<uint32_t>(part.row_words.value);
  static_cast<Word*>(part.dst)[row * part.dst_row + column] =
      static_cast<const Word*>(part.src)[row * part.src_row + column];
}

}  // namespace

cudaError_t LaunchCopyParts(CopyParts parts, cudaStream_t stream) {
  uint32_t blocks = 0;
  for (int i = 0; i < parts.count; ++i) {
    parts.part[i].first_block = blocks;
    blocks += static_cast<uint32_t>(CeilDiv(parts.part[i].words, kThreads));
  }
  switch (parts.word_bytes) {
    case 1:
      return Launch(CopyPartsKernel<uint8_t>, blocks, kThreads, 0, stream, parts);
    case 2:
      return Launch(CopyPartsKernel<uint16_t>, blocks, kThreads, 0, stream, parts);
    case 4:
      return Launch(CopyPartsKernel<uint32_t>, blocks, kThreads, 0, stream, parts);
    case 8:
      return Launch(CopyPartsKernel<uint2>, blocks, kThreads, 0, stream, parts);
    default:
      return Launch(CopyPartsKernel<uint4>, blocks, kThreads, 0, stream, parts);
  }
}

}  // namespace cuda
}  // namespace oneflow_lite
