// SPDX-License-Identifier: Apache-2.0
//
// Tensors that can be read as rows without a copy: a slice of the columns of a wider tensor,
// one of several heads.
#pragma once

#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite {

// The distance of x's rows in elements, where it is seen as rows x cols with the dims from `axis`
// on as columns; 0 where it cannot be without a copy.
inline int64_t RowStrideOf(const Tensor& x, int64_t axis) {
  int64_t dense = 1, stride = 0, rows = 1;
  for (int d = x.ndim() - 1; d >= 0; --d) {
    const int64_t size = x.shape()[d], step = x.strides()[d];
    if (size == 1) continue;
    if (d >= axis) {
      if (step != dense) return 0;
      dense *= size;
    } else if (stride == 0) {
      if (step < dense) return 0;
      stride = step;
      rows = size;
    } else {
      if (step != stride * rows) return 0;
      rows *= size;
    }
  }
  return stride == 0 ? dense : stride;
}

}  // namespace oneflow_lite
