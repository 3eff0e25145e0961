// SPDX-License-Identifier: Apache-2.0
//
// What the kernels of cross entropy see of their tensors: logits [rows, classes] and numbers of the
// rows.
#pragma once

#include "kernels/primitive_kernel.h"
#include "oneflow_lite/core/row_stride.h"
#include "primitive/cross_entropy_split.h"

namespace oneflow_lite {

// Logits may be some columns of a wider tensor: a vocabulary without its padding.
inline bool IsRows(const Tensor& logits) { return RowStrideOf(logits, 1) > 0; }

// The distance of neighbouring elements of a 1-D tensor.
inline int64_t StrideOf(const Tensor& t) { return t.numel() > 1 ? t.strides()[0] : 0; }

// By the attributes ignore_index, label_smoothing, first and classes, of which 0 stands for those
// of the logits.
inline ClassPartShape ClassPartShapeOf(const KernelContext& c, const Tensor& logits) {
  const int64_t here = logits.shape()[1], classes = c.attr<int64_t>(3);
  return {.rows = logits.shape()[0],
          .classes = classes == 0 ? here : classes,
          .first = c.attr<int64_t>(2),
          .count = here,
          .ignore_index = c.attr<int64_t>(0),
          .smoothing = c.attr<double>(1),
          .row_stride = RowStrideOf(logits, 1)};
}

}  // namespace oneflow_lite
