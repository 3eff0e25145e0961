// SPDX-License-Identifier: Apache-2.0
//
// Packs of which some elements alone are there.
#pragma once

#include "oneflow_lite/core/host_device.h"
#include "primitive/cuda/chip/pack.cuh"

namespace oneflow_lite {
namespace cuda {

// N elements from p on at any alignment, of which [lo, hi) are wanted: of the two aligned accesses
// neither is made that holds none of those.
template <int N, class T>
OFL_HOST_DEVICE Pack<T, N> LoadWanted(const T* p, int lo, int hi) {
#ifdef __CUDA_ARCH__
  constexpr int kWords = kPackBytes / 4;  // elements would be spread over registers
  const unsigned past = BytesPastBoundary(p);
  const auto* aligned = reinterpret_cast<const uint32_t*>(reinterpret_cast<const char*>(p) - past);
  const int boundary = N - static_cast<int>(past / sizeof(T));  // of the elements from p on
  Pack<uint32_t, kWords> low = {}, high = {};
  if (lo < boundary) low = LoadAlignedPack<kWords>(aligned);
  if (hi > boundary) high = LoadAlignedPack<kWords>(aligned + kWords);
  low = ShiftPacks(low, high, past);
  Pack<T, N> pack;
  memcpy(&pack, &low, sizeof(pack));
  return pack;
#else
  Pack<T, N> pack = {};
  for (int k = lo; k < hi; ++k) pack.v[k] = p[k];
  return pack;
#endif
}

}  // namespace cuda
}  // namespace oneflow_lite
