// SPDX-License-Identifier: Apache-2.0
//
// What becomes of an element `to` that another one, `from`, comes to. What joins with Neutral()
// stays itself.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "primitive/cuda/chip/pack.cuh"

namespace oneflow_lite {
namespace cuda {

struct Put {
  template <class T>
  __device__ T operator()(T, T from) const {
    return from;
  }
};
struct AddTo {
  template <class T>
  __device__ T operator()(T to, T from) const {
    using C = ComputeType<T>;
    return ConvertTo<T>(static_cast<C>(ConvertTo<C>(to) + ConvertTo<C>(from)));
  }
  template <class T>
  __device__ static T Neutral() {
    return T(0);
  }
};
struct MultiplyBy {
  template <class T>
  __device__ T operator()(T to, T from) const {
    if constexpr (std::is_same_v<T, bool>) {
      return to && from;
    } else if constexpr (std::is_integral_v<T>) {  // which wraps around
      return static_cast<T>(static_cast<uint64_t>(to) * static_cast<uint64_t>(from));
    } else {
      using C = ComputeType<T>;
      return ConvertTo<T>(static_cast<C>(ConvertTo<C>(to) * ConvertTo<C>(from)));
    }
  }
  template <class T>
  __device__ static T Neutral() {
    return T(1);
  }
};
// A NaN that comes is taken, one that is there stays.
template <bool kLarger>
struct Keep {
  template <class T>
  __device__ T operator()(T to, T from) const {
    if constexpr (std::is_integral_v<T>) {
      return (kLarger ? from > to : from < to) ? from : to;
    } else {
      using C = ComputeType<T>;
      const C there = ConvertTo<C>(to), value = ConvertTo<C>(from);
      return (kLarger ? value > there : value < there) || value != value ? from : to;
    }
  }
  template <class T>
  __device__ static T Neutral() {
    if constexpr (std::is_integral_v<T>) {
      constexpr int kSigns = std::is_signed_v<T> ? 1 : 0;
      constexpr auto kMost = static_cast<T>(~uint64_t{0} >> (64 - 8 * sizeof(T) + kSigns));
      return kLarger ? static_cast<T>(kSigns ? -kMost - 1 : 0) : kMost;
    } else {
      return static_cast<T>(kLarger ? -INFINITY : INFINITY);
    }
  }
};

}  // namespace cuda
}  // namespace oneflow_lite
