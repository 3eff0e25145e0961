// SPDX-License-Identifier: Apache-2.0
//
// Each element of a line several times in a row: dst[i] = src[i / times]. A thread writes packs of
// 16 bytes, and divides once for each. Or the line itself several times, read once.
#include "primitive/cuda/moves/copy_launch.h"
#include "primitive/cuda/strided/divisor.cuh"
#include "primitive/cuda/strided/elements.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

enum class Times {
  kTwo,   // a pack has N / 2 elements
  kFew,   // less than N
  kMany,  // a pack has at most two elements
};

// N elements from index i on, all of them within the result.
template <int N, Times kTimes, class Word>
__device__ __forceinline__ Pack<Word, N> LoadRepeated(const Divisor& times, int64_t i,
                                                      const Word* src) {
  const int64_t at = times.QuotientOfAny(i);
  const auto past = static_cast<int>(i - at * times.value);  // of `at`, in the pack before this one
  Pack<Word, N> pack;
  if constexpr (kTimes == Times::kTwo && N > 1) {
    const Pack<Word, N / 2> once = LoadPack<N / 2>(src + at);
#pragma unroll
    for (int e = 0; e < N; ++e) pack.v[e] = once.v[e / 2];
  } else if constexpr (kTimes == Times::kFew) {
    // Which element each one is comes first, so that no load waits for another one.
    const Word* from[N];
    int in_row = past, ahead = 0;
#pragma unroll
    for (int e = 0; e < N; ++e) {
      from[e] = src + at + ahead;
      const bool ends = ++in_row == static_cast<int>(times.value);
      in_row = ends ? 0 : in_row;
      ahead += ends;
    }
#pragma unroll
    for (int e = 0; e < N; ++e) pack.v[e] = *from[e];
  } else {
    const int64_t left = times.value - past;  // of `at`
    const Word first = src[at], second = src[left < N ? at + 1 : at];
#pragma unroll
    for (int e = 0; e < N; ++e) pack.v[e] = e < left ? first : second;
  }
  return pack;
}

template <int N, Times kTimes, class Word>
__global__ void __launch_bounds__(kElementwiseThreads)
    RepeatKernel(int64_t total, Divisor times, const Word* src, Word* dst) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x * N;
  for (int64_t i = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * N; i < total; i += step) {
    if (i + N <= total) {
      StorePack<N>(dst + i, LoadRepeated<N, kTimes>(times, i, src));
    } else {
      for (int64_t j = i; j < total; ++j) dst[j] = src[times.QuotientOfAny(j)];
    }
  }
}

// Of a thread, side by side in its block, where each element is whole packs of the result
// (docs/lab/55-rearrangements-in-packs.md).
constexpr int kWholePacks = 2;

// `per`: packs of an element. The grid covers all packs, which dst is aligned to.
template <class Word>
__global__ void __launch_bounds__(kElementwiseThreads)
    RepeatWholeKernel(uint32_t packs, Divisor per, const Word* src, Word* dst) {
  constexpr int N = kPackSize<Word>;
  const uint32_t first = blockIdx.x * (kElementwiseThreads * kWholePacks) + threadIdx.x;
  Word values[kWholePacks];
#pragma unroll
  for (int w = 0; w < kWholePacks; ++w) {
    const uint32_t i = first + w * kElementwiseThreads;
    if (i < packs) values[w] = src[per.Quotient(i)];
  }
#pragma unroll
  for (int w = 0; w < kWholePacks; ++w) {
    const uint32_t i = first + w * kElementwiseThreads;
    if (i < packs) StoreAlignedPack<N>(dst + int64_t{i} * N, FilledPack<N>(values[w]));
  }
}

template <class Word>
cudaError_t LaunchRepeat(int64_t count, int64_t times, const void* src, void* dst,
                         cudaStream_t stream) {
  constexpr int kPack = kPackSize<Word>;
  if (count <= 0 || times <= 0) return cudaSuccess;
  const int64_t total = count * times;
  const bool aligned = reinterpret_cast<uintptr_t>(dst) % kPackBytes == 0;
  if (times % kPack == 0 && aligned && total / kPack < (int64_t{1} << 31) - (1 << 16)) {
    const int64_t packs = total / kPack;
    return Launch(RepeatWholeKernel<Word>,
                  CeilDiv(packs, int64_t{kWholePacks} * kElementwiseThreads), kElementwiseThreads,
                  0, stream, static_cast<uint32_t>(packs), Divisor(times / kPack),
                  static_cast<const Word*>(src), static_cast<Word*>(dst));
  }
  const auto kernel = times == 2      ? RepeatKernel<kPack, Times::kTwo, Word>
                      : times < kPack ? RepeatKernel<kPack, Times::kFew, Word>
                                      : RepeatKernel<kPack, Times::kMany, Word>;
  return Launch(kernel, CeilDiv(total, int64_t{kPack} * kElementwiseThreads), kElementwiseThreads,
                0, stream, total, Divisor(times), static_cast<const Word*>(src),
                static_cast<Word*>(dst));
}

__global__ void __launch_bounds__(kElementwiseThreads)
    RepeatLineKernel(int64_t words, int64_t times, const uint4* src, uint4* dst) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < words; i += step) {
    const uint4 word = src[i];
#pragma unroll 1
    for (int64_t k = 0; k < times; ++k) StoreWord(dst + k * words + i, word);
  }
}

}  // namespace

cudaError_t LaunchRepeatLine(int64_t bytes, int64_t times, const void* src, void* dst,
                             cudaStream_t stream) {
  const int64_t words = bytes / kPackBytes;
  if (words <= 0 || times <= 0) return cudaSuccess;
  return Launch(RepeatLineKernel, CeilDiv(words, int64_t{kElementwiseThreads}), kElementwiseThreads,
                0, stream, words, times, static_cast<const uint4*>(src), static_cast<uint4*>(dst));
}

RepeatLauncher FindRepeat(int element_bytes) {
  switch (element_bytes) {
    case 1:
      return &LaunchRepeat<uint8_t>;
    case 2:
      return &LaunchRepeat<uint16_t>;
    case 4:
      return &LaunchRepeat<uint32_t>;
    default:
      return &LaunchRepeat<uint64_t>;
  }
}

}  // namespace cuda
}  // namespace oneflow_lite
