// SPDX-License-Identifier: Apache-2.0
//
// Rotary position embedding (Su et al., 2021, "RoFormer").
#pragma once

#include <optional>

#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite::functional {

// x [..., length, heads * size] with the features i and size / 2 + i of a head turned by the angle
// whose cosine and sine are cos[place, i] and sin[place, i], both [length, size / 2]. Of the heads
// that `rotated` features make, the first ones; others are copied. Computed in float32, in float64
// of float64. The tables have no gradient. ShapeError, DTypeError, ValueError.
OFL_API StatusOr<Tensor> RotaryEmbedding(const Tensor& x, const Tensor& cos, const Tensor& sin,
                                         std::optional<int64_t> rotated = {});
// The op itself: tables of the compute type, and which way.
StatusOr<Tensor> Rotated(const Tensor& x, const Tensor& cos, const Tensor& sin, int64_t rotated,
                         bool inverse);

}  // namespace oneflow_lite::functional
