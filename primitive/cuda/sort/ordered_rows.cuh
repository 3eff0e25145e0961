// SPDX-License-Identifier: Apache-2.0
//
// Keys read from elements and elements copied, by their size: one instance for all dtypes of it.
#pragma once

#include "primitive/cuda/chip/launch.cuh"
#include "primitive/cuda/sort/launch.h"

namespace oneflow_lite {
namespace cuda {

// Element i of x as a key, of 32 bits for elements of at most 4 bytes or of 64.
template <class Key>
__device__ __forceinline__ Key KeyAt(const KeyCode& code, const void* x, int64_t i) {
  if constexpr (sizeof(Key) == 8) {
    if (code.bits == 64) return code.Encode<Key>(static_cast<const uint64_t*>(x)[i]);
  }
  if (code.bits == 32) return code.Encode<Key>(static_cast<const uint32_t*>(x)[i]);
  if (code.bits == 16) return code.Encode<Key>(static_cast<const uint16_t*>(x)[i]);
  return code.Encode<Key>(static_cast<const uint8_t*>(x)[i]);
}

// The bits of the elements at `from`, all loads under way before the first is waited for; 0 where
// from is negative. Elements are no wider than Key.
template <class Key, int N>
__device__ __forceinline__ void LoadBits(int bits, const void* x, const int64_t (&from)[N],
                                         Key (&raw)[N]) {
  const auto load = [&](const auto* elements) {
#pragma unroll
    for (int k = 0; k < N; ++k)
      raw[k] = from[k] >= 0 ? static_cast<Key>(elements[from[k]]) : Key{0};
  };
  if constexpr (sizeof(Key) == 8) {
    if (bits == 64) return load(static_cast<const uint64_t*>(x));
  }
  if constexpr (sizeof(Key) >= 4) {
    if (bits == 32) return load(static_cast<const uint32_t*>(x));
  }
  if (bits == 16) return load(static_cast<const uint16_t*>(x));
  load(static_cast<const uint8_t*>(x));
}

__device__ __forceinline__ void StoreBits(int bits, uint64_t raw, void* y, int64_t i) {
  if (bits == 64) {
    static_cast<uint64_t*>(y)[i] = raw;
  } else if (bits == 32) {
    static_cast<uint32_t*>(y)[i] = static_cast<uint32_t>(raw);
  } else if (bits == 16) {
    static_cast<uint16_t*>(y)[i] = static_cast<uint16_t>(raw);
  } else {
    static_cast<uint8_t*>(y)[i] = static_cast<uint8_t>(raw);
  }
}

// y[i] = x[from], elements of so many bits.
__device__ __forceinline__ void CopyElement(int bits, const void* x, int64_t from, void* y,
                                            int64_t i) {
  if (bits == 64) {
    static_cast<uint64_t*>(y)[i] = static_cast<const uint64_t*>(x)[from];
  } else if (bits == 32) {
    static_cast<uint32_t*>(y)[i] = static_cast<const uint32_t*>(x)[from];
  } else if (bits == 16) {
    static_cast<uint16_t*>(y)[i] = static_cast<const uint16_t*>(x)[from];
  } else {
    static_cast<uint8_t*>(y)[i] = static_cast<const uint8_t*>(x)[from];
  }
}

}  // namespace cuda
}  // namespace oneflow_lite
