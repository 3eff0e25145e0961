// SPDX-License-Identifier: Apache-2.0
//
// Inputs that are broadcast, and those that are one number.
#pragma once

#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite {

// Strides of t seen under the broadcast shape: 0 where it is repeated.
inline Dims BroadcastStrides(const Tensor& t, const Shape& shape) {
  const int extra = shape.ndim() - t.ndim();
  Dims strides(shape.ndim(), 0);
  for (int d = 0; d < t.ndim(); ++d) {
    if (t.shape()[d] != 1) strides[d + extra] = t.strides()[d];
  }
  return strides;
}

// Whether the host can read t as one number; beside tensors of another device it has to.
inline bool IsNumber(const Tensor& t) {
  return t.ndim() == 0 && t.device().type == DeviceType::kCPU;
}

}  // namespace oneflow_lite
