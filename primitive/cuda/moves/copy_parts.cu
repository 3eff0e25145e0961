// SPDX-License-Identifier: Apache-2.0
//
// Several copies in one launch: small ones, whose time would be that of their launches, a word by
// each thread; and lines of which each gives every second, third or fourth element of the result.
#include "primitive/cuda/moves/copy_launch.h"
#include "primitive/cuda/strided/elements.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

constexpr int kThreads = 256;

constexpr int kPartWords = 4;  // of a thread, in flight

template <class Word>
__global__ void __launch_bounds__(kThreads)
    CopyPartsKernel(const __grid_constant__ CopyParts parts) {
  int p = 0;
  while (p + 1 < parts.count && blockIdx.x >= parts.part[p + 1].first_block) ++p;
  const CopyParts::Part& part = parts.part[p];
  const uint32_t first = (blockIdx.x - part.first_block) * (kPartWords * kThreads) + threadIdx.x;
  Word words[kPartWords];
#pragma unroll
  for (int k = 0; k < kPartWords; ++k) {
    const uint32_t i = first + k * kThreads;
    if (i >= part.words) break;
    const uint32_t row = part.row_words.Quotient(i);
    const uint32_t column = i - row * static_cast<uint32_t>(part.row_words.value);
    words[k] = static_cast<const Word*>(part.src)[row * part.src_row + column];
  }
#pragma unroll
  for (int k = 0; k < kPartWords; ++k) {
    const uint32_t i = first + k * kThreads;
    if (i >= part.words) break;
    const uint32_t row = part.row_words.Quotient(i);
    const uint32_t column = i - row * static_cast<uint32_t>(part.row_words.value);
    StoreWord(static_cast<Word*>(part.dst) + row * part.dst_row + column, words[k]);
  }
}

// Elements of each line that make packs of the result: one pack, so that those of neighbouring
// threads follow each other, or else kLines packs.
template <class Word, int kLines>
constexpr int kTurns = kPackSize<Word> % kLines == 0 ? kPackSize<Word> / kLines : kPackSize<Word>;
constexpr int kUnits = 4;  // of so many turns that a thread reads before it writes

template <class Word, int kLines>
__global__ void __launch_bounds__(kThreads)
    InterleaveKernel(const __grid_constant__ InterleavedLines lines, Word* y) {
  constexpr int E = kTurns<Word, kLines>, kAll = E * kLines;
  constexpr int N = kAll < kPackSize<Word> ? kAll : kPackSize<Word>;
  const int64_t first = (int64_t{blockIdx.x} * kUnits * kThreads + threadIdx.x) * E;
  Pack<Word, E> line[kUnits][kLines];
#pragma unroll
  for (int u = 0; u < kUnits; ++u) {
    const int64_t i = first + u * kThreads * E;
    if (i + E > lines.length) break;
#pragma unroll
    for (int l = 0; l < kLines; ++l) {
      line[u][l] = LoadPack<E>(static_cast<const Word*>(lines.line[l]) + i);
    }
  }
#pragma unroll
  for (int u = 0; u < kUnits; ++u) {
    const int64_t i = first + u * kThreads * E;
    if (i + E > lines.length) {
      for (int64_t k = i; k < lines.length; ++k) {
#pragma unroll
        for (int l = 0; l < kLines; ++l) {
          y[k * kLines + l] = static_cast<const Word*>(lines.line[l])[k];
        }
      }
      return;
    }
#pragma unroll
    for (int p = 0; p < kAll; p += N) {
      Pack<Word, N> pack;
#pragma unroll
      for (int k = 0; k < N; ++k) pack.v[k] = line[u][(p + k) % kLines].v[(p + k) / kLines];
      StorePack<N>(y + i * kLines + p, pack);
    }
  }
}

template <class Word>
cudaError_t InterleaveWords(const InterleavedLines& lines, void* y, cudaStream_t stream) {
  const auto launch = [&](auto kernel, int turns) {
    return Launch(kernel, CeilDiv(lines.length, int64_t{kUnits} * kThreads * turns), kThreads, 0,
                  stream, lines, static_cast<Word*>(y));
  };
  if (lines.count == 2) return launch(InterleaveKernel<Word, 2>, kTurns<Word, 2>);
  if (lines.count == 3) return launch(InterleaveKernel<Word, 3>, kTurns<Word, 3>);
  return launch(InterleaveKernel<Word, 4>, kTurns<Word, 4>);
}

}  // namespace

cudaError_t LaunchInterleave(const InterleavedLines& lines, void* y, cudaStream_t stream) {
  switch (lines.word_bytes) {
    case 1:
      return InterleaveWords<uint8_t>(lines, y, stream);
    case 2:
      return InterleaveWords<uint16_t>(lines, y, stream);
    case 4:
      return InterleaveWords<uint32_t>(lines, y, stream);
    default:
      return InterleaveWords<uint64_t>(lines, y, stream);
  }
}

cudaError_t LaunchCopyParts(CopyParts parts, cudaStream_t stream) {
  uint32_t blocks = 0;
  for (int i = 0; i < parts.count; ++i) {
    parts.part[i].first_block = blocks;
    blocks += static_cast<uint32_t>(CeilDiv(parts.part[i].words, kPartWords * kThreads));
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
