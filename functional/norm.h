// SPDX-License-Identifier: Apache-2.0
//
// What layer_norm and rms_norm have in common.
#pragma once

#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {

// The first dim that normalized_shape covers, so that it is the shape of x from there on.
// ShapeError, under the name `op`, where it names no dim or is not the end of x's shape.
StatusOr<int64_t> FirstNormalizedDim(const char* op, const Tensor& x,
                                     absl::Span<const int64_t> normalized_shape);

// The outputs of a norm's forward (ops/norm.h); mean and rstd only where a gradient may need them.
StatusOr<TensorList> CallNorm(const OpExpr& op, std::initializer_list<Tensor> inputs, int64_t axis,
                              double eps, bool memory_efficient);

// What the gradients are made from. Either x (what was normalised) and, for layer_norm, mean, or y
// (memory-efficient); weight and bias where the forward had them; dsum where `sum` had a gradient.
struct NormGradientInputs {
  Tensor dy, rstd, x, y, weight, bias, mean, dsum;
};

// Bits of the gradients that are wanted.
inline constexpr int64_t kGradX = 1, kGradWeight = 2, kGradBias = 4;

// Undefined where not wanted.
struct NormGradients {
  Tensor dx, dweight, dbias;
};

}  // namespace oneflow_lite::functional
