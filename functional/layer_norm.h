// SPDX-License-Identifier: Apache-2.0
//
// Layer normalisation over the last dims.
//
//   OFL_ASSIGN_OR_RETURN(Tensor y, functional::LayerNorm(x, {768}, weight, bias));
#pragma once

#include "functional/norm.h"

namespace oneflow_lite::functional {

// (x - mean) / sqrt(var + eps) * weight + bias over the dims that normalized_shape names, which
// must be the last of x. weight and bias have that shape, and x's dtype or float32; either may be
// absent. Statistics are computed in float32 (float64 for float64); var divides by the count.
//
// memory_efficient keeps y for backward, not x: x_hat = (y - bias) / weight, where a weight nearer
// to 0 than 1e-5 counts as 1e-5. A weight that is exactly 0 gets the gradient 0 and stays 0.
//
// ShapeError, DTypeError; ValueError for a negative eps.
OFL_API StatusOr<Tensor> LayerNorm(const Tensor& x, absl::Span<const int64_t> normalized_shape,
                                   const Tensor& weight = {}, const Tensor& bias = {},
                                   double eps = 1e-5, bool memory_efficient = false);

// The residual connection and the norm behind it in one pass: (LayerNorm(s), s) with
// s = x + residual, rounded to x's dtype. residual has x's shape and dtype.
OFL_API StatusOr<TensorList> AddLayerNorm(const Tensor& x, const Tensor& residual,
                                          absl::Span<const int64_t> normalized_shape,
                                          const Tensor& weight = {}, const Tensor& bias = {},
                                          double eps = 1e-5, bool memory_efficient = false);

// `axis` is the first normalised dim, `wanted` a set of bits.
OFL_API StatusOr<NormGradients> LayerNormBackward(const NormGradientInputs& in, int64_t axis,
                                                  int64_t wanted);

}  // namespace oneflow_lite::functional
