// SPDX-License-Identifier: Apache-2.0
//
// Packs of which some elements alone are there.
#pragma once

#include "primitive/cuda/chip/pack.cuh"

namespace oneflow_lite {
namespace cuda {

// N elements from p on at any alignment, of which [lo, hi) are wanted: of the two aligned accesses
// neither is made that holds none of those.
template <int N, class T>
__device__ __forceinline__ Pack<T, N> LoadWanted(const T* p, int lo, int hi) {
  const unsigned past = BytesPastBoundary(p);
  const auto* aligned = reinterpret_cast<const T*>(reinterpret_cast<const char*>(p) - past);
  const int boundary = N - static_cast<int>(past / sizeof(T));  // of the elements from p on
  Pack<T, N> low = {}, high = {};
  if (lo < boundary) low = LoadAlignedPack<N>(aligned);
  if (hi > boundary) high = LoadAlignedPack<N>(aligned + N);
  return ShiftPacks(low, high, past);
}

}  // namespace cuda
}  // namespace oneflow_lite
