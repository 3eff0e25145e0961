// SPDX-License-Identifier: Apache-2.0
//
// Conversion between element types, of one value and of many in a row.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "oneflow_lite/core/dtype.h"
#include "oneflow_lite/core/scalar.h"

namespace oneflow_lite {

// As C++ converts where that is defined; to bool, v != 0. What C++ leaves undefined, a floating
// value beyond the integer's range or NaN, becomes the smallest int64 (int32 on the way to narrower
// integers), which narrower integers then truncate. Neither To nor From is a 16-bit float.
template <class To, class From>
inline To Cast(From v) {
  if constexpr (std::is_same_v<To, bool>) {
    return v != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    using Wide = std::conditional_t<sizeof(To) == 8, int64_t, int32_t>;
    constexpr From kLow = static_cast<From>(std::numeric_limits<Wide>::min());
    // A selection before the conversion, not a branch around it, so that loops vectorise.
    return static_cast<To>(static_cast<Wide>((v >= kLow) & (v < -kLow) ? v : kLow));
  } else {
    return static_cast<To>(v);
  }
}

// A caller's number as an element; 16-bit floats are rounded once.
template <class T>
inline T CastScalar(const Scalar& s) {
  if constexpr (sizeof(T) == 2 && !std::is_integral_v<T>) {
    return s.to<T>();
  } else {
    return s.is_float() ? Cast<T>(s.to<double>()) : Cast<T>(s.to<int64_t>());
  }
}

// Converts n elements that lie in a row; src and dst do not overlap.
using ConvertFunction = void (*)(int64_t n, const void* src, void* dst);
ConvertFunction FindConvert(DType from, DType to);

// The dtype in which reductions of `t` run: int64 for bool and integers, else its compute type.
constexpr DType AccumulateType(DType t) { return IsFloating(t) ? ComputeType(t) : DType::kInt64; }

}  // namespace oneflow_lite
