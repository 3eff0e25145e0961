// SPDX-License-Identifier: Apache-2.0
//
// Matrix products as in NumPy's matmul, and the affine map of a linear layer.
#pragma once

#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite::functional {

// 1-D operands are row (first) or column (second) vectors whose dim goes from the result; with more
// than 2 dims the leading ones are a batch and broadcast. ShapeError, DTypeError.
OFL_API StatusOr<Tensor> Matmul(const Tensor& a, const Tensor& b);
// x [..., in] times weight [out, in] transposed, plus bias [out] where given. A weight [in] gives
// [...].
OFL_API StatusOr<Tensor> Linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});
// a b in float32 of two matrices, or of two batches of them, of 16-bit floats.
StatusOr<Tensor> WideMatmul(const Tensor& a, const Tensor& b);
// self = a b + bias of matrices, or self += a b where `accumulate`; the rows of self may lie apart.
// Returns self. For gradients: autograd refuses it.
StatusOr<Tensor> MatmulInto(const Tensor& self, const Tensor& a, const Tensor& b,
                            const Tensor& bias = {}, bool accumulate = false);

}  // namespace oneflow_lite::functional
