// SPDX-License-Identifier: Apache-2.0
//
// What the definitions of layer_norm and rms_norm share. Four ops and two gradients:
//
//   layer_norm(x, weight?, bias?) -> (y, mean, rstd)              rms_norm: no bias, no mean
//   add_layer_norm(x, residual, weight?, bias?) -> (y, sum, mean, rstd)
//   layer_norm_backward(dy, rstd, x?, y?, weight?, dsum?, bias?, mean?) -> (dx, dweight, dbias)
//
// mean and rstd are results like any other: gradients flow through them too, which is how second
// order comes right. With statistics=false they have no elements and are not written; the gradient
// needs them, but for that of bias alone.
#pragma once

#include "oneflow_lite/framework/op_def.h"

namespace oneflow_lite {

struct NormKind {
  bool centred;           // layer_norm
  bool residual = false;  // add_layer_norm, add_rms_norm
};

// Inputs, outputs, attributes, inference, SBP, cost, gradient; the documentation is the caller's.
void DefineNorm(OpDef& op, NormKind kind);
void DefineNormBackward(OpDef& op, NormKind kind);

// Places of the tensors of a gradient op among its inputs.
struct NormBackwardInputs {
  enum { kDy, kRstd, kX, kY, kWeight, kDSum, kBias, kMean };
};
// Its gradient, composed of functors (norm_second_order.cpp).
Status NormSecondOrder(GradContext& c, NormKind kind);

// The first normalised dim, counted from 0.
inline int WrapNormAxis(const Attrs& attrs, int ndim) {
  const int64_t axis = attrs.get<int64_t>(0);
  return static_cast<int>(axis < 0 ? axis + ndim : axis);
}

}  // namespace oneflow_lite
