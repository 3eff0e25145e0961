// SPDX-License-Identifier: Apache-2.0
//
// The number in a 0-dim tensor on the CPU.
#pragma once

#include "oneflow_lite/core/scalar.h"
#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite {

inline Scalar NumberIn(const Tensor& t) {
  return VisitAll(t.dtype(), [&]<class T>(Tag<T>) -> Scalar {
    const T v = *t.data<T>();
    if constexpr (std::is_same_v<T, bool>)
      return Scalar(v);
    else if constexpr (std::is_integral_v<T>)
      return Scalar(static_cast<int64_t>(v));
    else
      return Scalar(static_cast<double>(static_cast<ComputeOf<T>>(v)));
  });
}

}  // namespace oneflow_lite
