// SPDX-License-Identifier: Apache-2.0
//
// Softmax and log-softmax over any dim.
//
//   OFL_ASSIGN_OR_RETURN(Tensor p, functional::Softmax(logits, 1));
#pragma once

#include <optional>

#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite::functional {

// exp(x - max) / sum exp(x - max) over `dim`, counted from the end where negative. Without a dim:
// 0 where ndim is 0, 1 or 3, else 1, as PyTorch chooses. x is floating, or is cast to `dtype`
// first. IndexError, DTypeError.
OFL_API StatusOr<Tensor> Softmax(const Tensor& x, std::optional<int64_t> dim = {},
                                 std::optional<DType> dtype = {});
// (x - max) - log sum exp(x - max) over `dim`; otherwise as Softmax.
OFL_API StatusOr<Tensor> LogSoftmax(const Tensor& x, std::optional<int64_t> dim = {},
                                    std::optional<DType> dtype = {});

// Gradients from the forward's output y; `axis` is a non-negative dim.
OFL_API StatusOr<Tensor> SoftmaxBackward(const Tensor& y, const Tensor& dy, int64_t axis);
OFL_API StatusOr<Tensor> LogSoftmaxBackward(const Tensor& y, const Tensor& dy, int64_t axis);

}  // namespace oneflow_lite::functional
