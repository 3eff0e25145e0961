// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include "primitive/cuda/chip/group.cuh"

namespace oneflow_lite::cuda {

// A sum with its rounding error beside it (Knuth's TwoSum, as in Neumaier's summation), so that
// large terms of both signs may cancel and leave a small sum right. Integers need no such care.
template <class C>
struct CompensatedSum {
  C high = 0;
  C low = 0;

  __device__ __forceinline__ void Add(C value) {
    const C sum = high + value;
    if constexpr (std::is_floating_point_v<C>) {
      const C part = sum - high;
      low += (high - (sum - part)) + (value - part);
    }
    high = sum;
  }
  // An infinite sum has a NaN for its error.
  __device__ __forceinline__ C Get() const {
    const C sum = high + low;
    return sum == sum ? sum : high;
  }
};

template <class C>
__device__ __forceinline__ CompensatedSum<C> ShuffleXor(CompensatedSum<C> v, int mask) {
  v.high = ShuffleXor(v.high, mask);
  v.low = ShuffleXor(v.low, mask);
  return v;
}

// Symmetric to the last bit.
struct MergeCompensated {
  template <class C>
  __device__ __forceinline__ CompensatedSum<C> operator()(const CompensatedSum<C>& a,
                                                          const CompensatedSum<C>& b) const {
    CompensatedSum<C> merged{a.high, a.low + b.low};
    merged.Add(b.high);
    return merged;
  }
};

}  // namespace oneflow_lite::cuda
