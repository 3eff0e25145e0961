// SPDX-License-Identifier: Apache-2.0
//
// Root-mean-square normalisation over the last dims.
//
//   OFL_ASSIGN_OR_RETURN(Tensor y, functional::RmsNorm(x, {4096}, weight));
#pragma once

#include <optional>

#include "functional/norm.h"

namespace oneflow_lite::functional {

// x / sqrt(mean(x^2) + eps) * weight over the dims that normalized_shape names. Without an eps,
// that of the compute type: 2^-23, for float64 2^-52. weight has any floating dtype, as its
// gradient then; otherwise as LayerNorm.
OFL_API StatusOr<Tensor> RmsNorm(const Tensor& x, absl::Span<const int64_t> normalized_shape,
                                 const Tensor& weight = {}, std::optional<double> eps = {},
                                 bool memory_efficient = false);

// (RmsNorm(s), s) with s = x + residual; otherwise as AddLayerNorm.
OFL_API StatusOr<TensorList> AddRmsNorm(const Tensor& x, const Tensor& residual,
                                        absl::Span<const int64_t> normalized_shape,
                                        const Tensor& weight = {}, std::optional<double> eps = {},
                                        bool memory_efficient = false);

// `axis` is the first normalised dim, `wanted` a set of bits.
OFL_API StatusOr<NormGradients> RmsNormBackward(const NormGradientInputs& in, int64_t axis,
                                                int64_t wanted);

}  // namespace oneflow_lite::functional
