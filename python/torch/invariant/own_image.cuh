// SPDX-License-Identifier: Apache-2.0
//
// Images: parts of a row in shared memory, in packs that are counted from the row's own first
// column on, while memory has the row in aligned words that begin anywhere in such a pack.
#pragma once

#include <utility>

#include "primitive/cuda/chip/launch.cuh"
#include "primitive/cuda/rows/io.cuh"

namespace oneflow_lite {
namespace cuda {

// A Store functor (primitive/cuda/rows/io.cuh) of packs that begin at multiples of their size in
// the row. `image`: where the row's first column would be in the window of shared memory.
template <class T>
struct ImageStore {
  using Element = T;
  T* y;
  int64_t row_stride;
  uint32_t image = 0;

  __device__ __forceinline__ ImageStore At(int64_t row) const {
    return {y + row * row_stride, 0, image};
  }
  __device__ __forceinline__ int Head(int64_t) const { return 0; }
  template <int N>
  __device__ __forceinline__ void Store(int64_t row, int64_t col,
                                        const Pack<ComputeType<T>, N>& v) const {
    const Pack<T, N> pack = ConvertPack<T>(v);
    if constexpr (N == 1) {
      y[row * row_stride + col] = pack.v[0];
    } else {
      static_assert(N == kPackSize<T>, "a pack is a word");
      uint4 word;
      memcpy(&word, &pack, sizeof(word));
      asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};"
                   :
                   : "r"(image + static_cast<uint32_t>(col) * static_cast<uint32_t>(sizeof(T))),
                     "r"(word.x), "r"(word.y), "r"(word.z), "r"(word.w)
                   : "memory");
    }
  }
};

namespace internal {

// Whether an algorithm writes rows, by an ImageStore that is its member `store`.
template <class A, class = void>
struct HasImage : std::false_type {};
template <class A>
struct HasImage<A, std::void_t<decltype(std::declval<A&>().store.image)>> : std::true_type {};

// The pack that begins `past` < 16 bytes behind the word at `at` in shared memory; kSkip is past /
// 4, or -1 where past is 0. The next word is read as well: two accesses without a bank conflict,
// where ShiftedPackOnChip, which knows no kSkip, has three with conflicts.
template <int kSkip, class T>
__device__ __forceinline__ StowedPack<T, kPackSize<T>> LoadSkipped(const char* at, unsigned past) {
  constexpr int kFirst = kSkip < 0 ? 0 : kSkip;
  uint4 words[2];
  words[0] = reinterpret_cast<const uint4*>(at)[0];
  if (kSkip >= 0) words[1] = reinterpret_cast<const uint4*>(at)[1];
  uint32_t w[8];
  memcpy(w, words, sizeof(w));
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    w[i] = kSkip >= 0 && sizeof(T) < 4
               ? __funnelshift_r(w[kFirst + i], w[kFirst + i + 1], past % 4 * 8)
               : w[kFirst + i];
  }
  Pack<T, kPackSize<T>> pack;
  memcpy(&pack, w, sizeof(pack));
  return StowedPack<T, kPackSize<T>>::Of(pack);
}

// Moves `elements`, at most kWords * `size` words' worth, or any number where kWords is 0, from
// `image` to y, which is aligned to its element, by `size` threads, at least 14. Shared memory is
// read up to a pack behind the image.
template <int kWords, class T>
__device__ __forceinline__ void CopyImage(const char* image, int elements, T* y, int rank,
                                          int size) {
  constexpr int N = kPackSize<T>;
  constexpr int kAtOnce = kWords == 0 ? 2 : kWords < 3 ? kWords : 3;  // no load passes a store
  const int boundary = ElementsToBoundary(y);
  const int head = boundary < elements ? boundary : elements;  // before the first whole word
  const int words = (elements - head) / N, tail = elements - head - words * N;
  const auto past = static_cast<unsigned>(head * sizeof(T));
  const auto copy_some = [&](auto skip, int begin) {
    StowedPack<T, N> packs[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int w = begin + k * size;
      if (w >= words) continue;
      packs[k] = LoadSkipped<decltype(skip)::value, T>(image + w * kPackBytes, past);
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int w = begin + k * size;
      if (w < words) StoreAlignedPack(y + head + w * N, packs[k].Get());
    }
  };
  const auto copy = [&](auto skip) {
    if constexpr (kWords == 0) {
#pragma unroll 1
      for (int begin = rank; begin < words; begin += kAtOnce * size) copy_some(skip, begin);
    } else {
#pragma unroll
      for (int k = 0; k < kWords; k += kAtOnce) copy_some(skip, rank + k * size);
    }
  };
  if (past == 0) copy(std::integral_constant<int, -1>());
  VisitWordShift<T>(past, copy);
  if (rank < head + tail) {
    const int at = rank < head ? rank : words * N + rank;
    y[at] = reinterpret_cast<const T*>(image)[at];
  }
}

}  // namespace internal
}  // namespace cuda
}  // namespace oneflow_lite
