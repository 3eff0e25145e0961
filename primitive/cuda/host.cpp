// SPDX-License-Identifier: Apache-2.0
#include "primitive/cuda/host.h"

#include <cstring>
#include <limits>

namespace oneflow_lite::cuda {
namespace {

// As C++ converts; a floating number outside an integer's range becomes the smallest int64 (int32
// on the way to narrower integers), as in the copy primitive.
template <class T>
T CastScalar(const Scalar& s) {
  if constexpr (std::is_same_v<T, bool>) {
    return s.is_float() ? s.to<double>() != 0 : s.to<int64_t>() != 0;
  } else if constexpr (std::is_integral_v<T>) {
    if (!s.is_float()) return static_cast<T>(s.to<int64_t>());
    using Wide = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
    constexpr double kLow = static_cast<double>(std::numeric_limits<Wide>::min());
    const double v = s.to<double>();
    return static_cast<T>(v >= kLow && v < -kLow ? static_cast<Wide>(v)
                                                 : std::numeric_limits<Wide>::min());
  } else {
    return s.to<T>();
  }
}

}  // namespace

ScalarBits BitsOf(const Scalar& scalar, DType dtype) {
  return VisitAll(dtype, [&]<class T>(Tag<T>) {
    const T value = CastScalar<T>(scalar);
    ScalarBits bits = 0;
    std::memcpy(&bits, &value, sizeof(T));
    return bits;
  });
}

}  // namespace oneflow_lite::cuda
