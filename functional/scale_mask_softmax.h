// SPDX-License-Identifier: Apache-2.0
//
// softmax(scale * x + mask) over the last dim: the scores of attention, in one pass.
//
//   OFL_ASSIGN_OR_RETURN(Tensor p, functional::FusedScaleMaskSoftmax(scores, mask, 0.125));
#pragma once

#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite::functional {

// softmax over the last dim of x [..., queries, keys] times scale, with a mask that broadcasts
// against x: a boolean one keeps where it is true, a floating one (x's dtype, or float32 with the
// 16-bit floats) is added and may require a gradient. With causal, query q sees the keys up to
// keys - queries + q (the diagonal ends in the lower right corner), and no other is read. A row of
// which nothing is left is NaN, or 0 with masked_row "zero".
OFL_API StatusOr<Tensor> FusedScaleMaskSoftmax(const Tensor& x, const Tensor& mask = {},
                                               double scale = 1.0,
                                               absl::string_view masked_row = "nan",
                                               bool causal = false);

// scale y (dy - sum y dy), 0 where causal hides; y is the forward's output.
OFL_API StatusOr<Tensor> ScaleMaskSoftmaxBackward(const Tensor& y, const Tensor& dy, double scale,
                                                  bool causal);

}  // namespace oneflow_lite::functional
