// SPDX-License-Identifier: Apache-2.0
//
// Packs of neighbouring columns in rows that start anywhere, where neighbouring lanes have
// neighbouring packs: whole words are read and written, shifted into place; single elements only
// where a tile or a row begins or ends.
#pragma once

#include "primitive/cuda/pack.cuh"

namespace oneflow_lite {
namespace cuda {

// How a lane's pack of N columns lies among those of its row.
struct PackPlace {
  int valid;   // columns that are there, from the first on; 0: none
  int next;    // ... of the next lane's pack, if that follows in the same row
  bool first;  // whether the previous lane's pack is not the one before in the same row
};

namespace internal {

// The 16 bytes that begin `past` bytes into low and high.
template <class T>
__device__ __forceinline__ uint4 ShiftWords(const uint4& low, const uint4& high, unsigned past) {
  uint32_t w[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
  for (int i = 0; i < 6; ++i) w[i] = past & 8 ? w[i + 2] : w[i];
#pragma unroll
  for (int i = 0; i < 5; ++i) w[i] = past & 4 ? w[i + 1] : w[i];
  if constexpr (sizeof(T) < 4) {
#pragma unroll
    for (int i = 0; i < 4; ++i) w[i] = past & 2 ? __funnelshift_r(w[i], w[i + 1], 16) : w[i];
  }
  return {w[0], w[1], w[2], w[3]};
}

template <class T>
__device__ __forceinline__ unsigned BytesPast(const T* p) {
  return static_cast<unsigned>(reinterpret_cast<uintptr_t>(p)) & (kPackBytes - 1);
}

}  // namespace internal

// The columns from p on; `nothing` where there is none. A word is read only where it holds one.
template <int N, class T>
__device__ __forceinline__ Pack<T, N> LoadAnywhere(const T* p, int valid, T nothing) {
  static_assert(N * sizeof(T) == kPackBytes, "");
  Pack<T, N> pack;
  if (valid == N) {
    const unsigned past = internal::BytesPast(p);
    const auto* words = reinterpret_cast<const uint4*>(reinterpret_cast<const char*>(p) - past);
    const uint4 low = words[0];
    const uint4 high = words[past != 0];
    const uint4 word = internal::ShiftWords<T>(low, high, past);
    memcpy(&pack, &word, sizeof(pack));
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) pack.v[i] = i < valid ? p[i] : nothing;
  }
  return pack;
}

// Stores the columns from p on. All `lanes` neighbouring lanes (a power of two) of a row must come.
template <int N, class T>
__device__ __forceinline__ void StoreAnywhere(T* p, const Pack<T, N>& pack, const PackPlace& place,
                                              int lanes) {
  const unsigned past = internal::BytesPast(p);
  uint4 own, before;
  memcpy(&own, &pack, sizeof(own));
  before.x = __shfl_up_sync(0xffffffffu, own.x, 1, lanes);
  before.y = __shfl_up_sync(0xffffffffu, own.y, 1, lanes);
  before.z = __shfl_up_sync(0xffffffffu, own.z, 1, lanes);
  before.w = __shfl_up_sync(0xffffffffu, own.w, 1, lanes);
  // The word at p - past holds the last of the pack before and the first `head` of this one. Who
  // has all of those stores it.
  const int head = N - static_cast<int>(past / sizeof(T));
  const bool whole = past == 0 ? place.valid == N : !place.first && place.valid >= head;
  const bool next = place.next >= head;  // stores the rest of this pack
  if (whole) {
    const uint4 word = past == 0 ? own : internal::ShiftWords<T>(before, own, kPackBytes - past);
    StoreWord(reinterpret_cast<uint4*>(reinterpret_cast<char*>(p) - past), word);
  }
  if (whole && (next || past == 0)) return;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if (i < place.valid && !(i < head ? whole : next)) p[i] = pack.v[i];
  }
}

}  // namespace cuda
}  // namespace oneflow_lite
