// SPDX-License-Identifier: Apache-2.0
//
// Which of N neighbouring columns a boolean mask, or the causal triangle, keeps: the bytes of the
// mask as they lie in memory, applied to whole words of elements.
//
//   Keep<8> keep = LoadKeep<Access::kAligned, 8>(mask, col, 1, true);
//   if (left < 8) keep.HideFrom(left);
//   pack = Kept(pack, keep, fill);
#pragma once

#include "primitive/cuda/rows/broadcast.cuh"

namespace oneflow_lite {
namespace cuda {

// A byte per column: 1 keeps it, 0 does not.
template <int N>
struct Keep {
  static constexpr int kWords = (N + 3) / 4;
  uint32_t words[kWords];

  __device__ __forceinline__ static Keep All() {
    Keep keep;
#pragma unroll
    for (uint32_t& word : keep.words) word = 0x01010101u;
    return keep;
  }
  // Hides the columns from `left` on, which may be negative.
  template <class Column>
  __device__ __forceinline__ void HideFrom(Column left) {
#pragma unroll
    for (int w = 0; w < kWords; ++w) {
      const int stay = static_cast<int>(left < 0 ? Column(0) : left) - 4 * w;
      words[w] &= stay <= 0 ? 0u : stay >= 4 ? ~0u : (1u << 8 * stay) - 1;
    }
  }
  __device__ __forceinline__ bool operator[](int i) const {
    return words[i / 4] >> 8 * (i % 4) & 1;
  }
};

namespace internal {

// Byte i of the result is byte s of `word`, with s nibble i of the selector, or where s > 7 eight
// times the sign of byte s - 8.
template <uint32_t kSelector>
__device__ __forceinline__ uint32_t PickBytes(uint32_t word) {
  uint32_t picked;
  asm("prmt.b32 %0, %1, 0, %2;" : "=r"(picked) : "r"(word), "n"(kSelector));
  return picked;
}
__device__ __forceinline__ uint32_t Choose(uint32_t where, uint32_t a, uint32_t b) {
  return (a & where) | (b & ~where);
}

}  // namespace internal

// The bytes of a mask's row from column `col` on, `stride` apart; all columns where not wanted,
// where nothing is read. kAccess is what rows/io.cuh says of a Load's pack, with a boundary of N
// bytes.
template <Access kAccess, int N>
__device__ __forceinline__ Keep<N> LoadKeep(const bool* mask, int64_t col, int64_t stride,
                                            bool wanted) {
  Keep<N> keep = Keep<N>::All();
  if constexpr (kAccess == Access::kAligned && N > 1) {
    using Word = typename WordOf<N>::type;
    Word word;
    memcpy(&word, keep.words, N);
    word = LoadWordIf(reinterpret_cast<const Word*>(mask + col), wanted, word);
    memcpy(keep.words, &word, N);
    return keep;
  }
  if (!wanted) return keep;
  const bool* p = mask + col * stride;
  if (kAccess == Access::kInside && N == 8 && stride == 1) {
    const unsigned past = static_cast<unsigned>(reinterpret_cast<uintptr_t>(p)) & 7;
    const auto* aligned = reinterpret_cast<const uint2*>(reinterpret_cast<const char*>(p) - past);
    const uint2 low = aligned[0], high = past ? aligned[1] : uint2{};
    const uint32_t w[4] = {low.x, low.y, high.x, high.y};
    const int first = past >= 4;
    uint32_t shifted[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      shifted[i] = __funnelshift_r(first ? w[i + 1] : w[i], first ? w[i + 2] : w[i + 1], 8 * past);
    }
    memcpy(keep.words, shifted, N < 8 ? N : 8);
    return keep;
  }
  // One by one, and not unrolled: this is code for the ends of rows and for strided masks.
  uint64_t bytes = 0;
#pragma unroll 1
  for (int i = N - 1; i >= 0; --i) bytes = bytes << 8 | static_cast<uint64_t>(p[i * stride]);
#pragma unroll
  for (int w = 0; w < Keep<N>::kWords; ++w) keep.words[w] = static_cast<uint32_t>(bytes >> 32 * w);
  return keep;
}

// x where it is kept, else `fill`.
template <int N, class T>
__device__ __forceinline__ Pack<T, N> Kept(Pack<T, N> x, const Keep<N>& keep, T fill) {
  if constexpr (sizeof(T) == 2 && N % 2 == 0) {
    uint32_t w[N / 2], f;
    const Pack<T, 2> fills = {{fill, fill}};
    memcpy(w, &x, sizeof(x));
    memcpy(&f, &fills, sizeof(f));
#pragma unroll
    for (int i = 0; i < N / 2; ++i) {
      const uint32_t signs = keep.words[i / 2] << 7;
      w[i] = internal::Choose(
          i % 2 ? internal::PickBytes<0xbbaa>(signs) : internal::PickBytes<0x9988>(signs), w[i], f);
    }
    memcpy(&x, w, sizeof(x));
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) x.v[i] = keep[i] ? x.v[i] : fill;
  }
  return x;
}

// `fill` from column `left` on. On a stowed pack, because callers branch around this: elements that
// come from two branches would take a register each.
template <int N, class T, class Column>
__device__ __forceinline__ void HideFrom(StowedPack<T, N>& x, Column left, T fill) {
  auto keep = Keep<N>::All();
  keep.HideFrom(left);
  x = StowedPack<T, N>::Of(Kept(x.Get(), keep, fill));
}

}  // namespace cuda
}  // namespace oneflow_lite
