// SPDX-License-Identifier: Apache-2.0
//
// Packs in shared memory: those that threads put there, and those of rows that were copied there in
// whole words of 16 bytes, as they lie in memory.
#pragma once

#include "primitive/cuda/chip/pack.cuh"

namespace oneflow_lite::cuda {

// A pack in shared memory, moved in accesses of up to 16 bytes.
template <class T, int N>
struct OnChipPack {
  static constexpr int kBytes = N * static_cast<int>(sizeof(T));
  using Word = typename WordOf<(kBytes < kPackBytes ? kBytes : kPackBytes)>::type;
  Word words[kBytes / sizeof(Word)];

  OFL_DEVICE void Put(const Pack<T, N>& pack) {
    Word raw[kBytes / sizeof(Word)];
    memcpy(raw, &pack, kBytes);
#pragma unroll
    for (size_t i = 0; i < kBytes / sizeof(Word); ++i) words[i] = raw[i];
  }
  OFL_DEVICE Pack<T, N> Get() const {
    Word raw[kBytes / sizeof(Word)];
#pragma unroll
    for (size_t i = 0; i < kBytes / sizeof(Word); ++i) raw[i] = words[i];
    Pack<T, N> pack;
    memcpy(&pack, raw, kBytes);
    return pack;
  }
};

// What waits in shared memory in words of 16 bytes that lie `step` words apart, so that those of
// neighbouring threads lie side by side.
template <class T>
OFL_DEVICE T LoadApart(const void* at, int step) {
  constexpr int kWords = (static_cast<int>(sizeof(T)) + kPackBytes - 1) / kPackBytes;
  uint4 words[kWords];
#pragma unroll
  for (int i = 0; i < kWords; ++i) words[i] = static_cast<const uint4*>(at)[i * step];
  T value;
  memcpy(&value, words, sizeof(T));
  return value;
}
template <class T>
OFL_DEVICE void StoreApart(void* at, int step, const T& value) {
  constexpr int kWords = (static_cast<int>(sizeof(T)) + kPackBytes - 1) / kPackBytes;
  uint4 words[kWords];
  memcpy(words, &value, sizeof(T));
#pragma unroll
  for (int i = 0; i < kWords; ++i) static_cast<uint4*>(at)[i * step] = words[i];
}

// The pack that begins `past` < 16 bytes behind the word at `at`; the next word is read as well.
template <class T, int N>
OFL_DEVICE Pack<T, N> ShiftedPackOnChip(const char* at, unsigned past) {
  static_assert(N * sizeof(T) == kPackBytes, "a pack is a word");
  const auto* const halves = reinterpret_cast<const uint2*>(at + (past & 8));
  const uint2 low = halves[0], middle = halves[1];
  uint32_t w[6] = {low.x, low.y, middle.x, middle.y};
  if constexpr (sizeof(T) < 8) {
    const uint2 high = halves[2];
    w[4] = high.x, w[5] = high.y;
#pragma unroll
    for (int i = 0; i < 5; ++i) w[i] = past & 4 ? w[i + 1] : w[i];
  }
  if constexpr (sizeof(T) < 4) {
#pragma unroll
    for (int i = 0; i < 4; ++i) w[i] = __funnelshift_r(w[i], w[i + 1], 8 * (past & 3));
  }
  Pack<T, N> pack;
  memcpy(&pack, w, sizeof(pack));
  return pack;
}

}  // namespace oneflow_lite::cuda
