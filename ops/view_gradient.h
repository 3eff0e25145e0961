// SPDX-License-Identifier: Apache-2.0
//
// Gradients of views that leave elements out of their input, or name them several times.
#pragma once

#include "oneflow_lite/core/status.h"
#include "oneflow_lite/core/tensor.h"
#include "oneflow_lite/framework/op_def.h"

namespace oneflow_lite {

// Whether (shape, strides) lies within `available` elements from `offset` on.
bool Fits(const Dims& shape, const Dims& strides, int64_t offset, int64_t available);
// Whether no two indices name one element.
bool IsInjective(const Dims& shape, const Dims& strides);

// Zeros of the shape of a dense input, with grad where the view is; no two elements of the view are
// one of the input.
StatusOr<Tensor> PutInto(const Shape& input, const Tensor& grad, const Geometry& view);
// The same, where each element of the input gets the sum of all that name it. With
// `input_strides`, those of an input that is not dense (empty: dense), the view is one of storage,
// which may lie beside the input; elements of the input that are one place share its gradient
// evenly.
StatusOr<Tensor> AddInto(const Shape& input, const Dims& input_strides, const Tensor& grad,
                         const Geometry& view);

}  // namespace oneflow_lite
