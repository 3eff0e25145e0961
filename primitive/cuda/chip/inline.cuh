// SPDX-License-Identifier: Apache-2.0
//
// How functions that kernels call are declared: all are inlined, so that what they are given in
// registers stays there. And how code is repeated for each element of an array in registers.
#pragma once

#define OFL_DEVICE __device__ __forceinline__

namespace oneflow_lite::cuda {

// use(0), use(1) and so on, without a loop: an array that these index stays in registers.
//
//   Unroll<kPacks>([&](int k) { packs[k].Pin(); });
template <int kCount, class Use>
OFL_DEVICE void Unroll(Use&& use) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) use(i);
}
// The same of the elements of an array.
template <class T, int kCount, class Use>
OFL_DEVICE void Unroll(T (&values)[kCount], Use&& use) {
#pragma unroll
  for (T& value : values) use(value);
}

}  // namespace oneflow_lite::cuda
