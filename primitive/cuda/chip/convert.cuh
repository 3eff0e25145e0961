// SPDX-License-Identifier: Apache-2.0
//
// Element types: the one that kernels compute in, and conversion between any two.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

#include <type_traits>

#include "primitive/cuda/chip/inline.cuh"

namespace oneflow_lite::cuda {

template <class T>
inline constexpr bool kIsShortFloat = std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>;
// The type in which kernels compute: float for the 16-bit floats, else the type itself.
template <class T>
using ComputeType = std::conditional_t<kIsShortFloat<T>, float, T>;
// Two 16-bit floats.
template <class T>
using PairOf = std::conditional_t<std::is_same_v<T, __half>, __half2, __nv_bfloat162>;

// C++'s conversions; the 16-bit floats go through float and round to nearest even; to bool it is
// x != 0. A float outside an integer's range, or NaN, becomes the smallest int64 (int32 on the way
// to narrower integers), which narrower integers then truncate: what the CPU does too.
template <class To, class From>
OFL_DEVICE To ConvertTo(From x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (std::is_same_v<From, __half>) {
    return ConvertTo<To>(__half2float(x));
  } else if constexpr (std::is_same_v<From, __nv_bfloat16>) {
    return ConvertTo<To>(__bfloat162float(x));
  } else if constexpr (std::is_same_v<To, __half>) {
    return __float2half_rn(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, __nv_bfloat16>) {
    return __float2bfloat16_rn(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    using Wide = std::conditional_t<sizeof(To) == 8, int64_t, int32_t>;
    constexpr Wide kHalf = Wide{1} << (8 * sizeof(Wide) - 2);
    constexpr From kLimit = 2 * static_cast<From>(kHalf);  // one past the largest Wide
    return static_cast<To>(x >= -kLimit && x < kLimit ? static_cast<Wide>(x) : -kHalf - kHalf);
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace oneflow_lite::cuda
