// SPDX-License-Identifier: Apache-2.0
//
// Copies: to another dtype, device or layout, and into an existing tensor.
#pragma once

#include <optional>

#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite::functional {

// x in another dtype; x itself where it has it. Conversions as in C++ (floats truncate towards 0).
OFL_API StatusOr<Tensor> Cast(const Tensor& x, DType dtype);
// A copy of its own, contiguous.
OFL_API StatusOr<Tensor> Clone(const Tensor& x);
// x itself where contiguous, else a contiguous copy.
OFL_API StatusOr<Tensor> Contiguous(const Tensor& x);
// The same data outside autograd.
OFL_API StatusOr<Tensor> Detach(const Tensor& x);
// x on a device and in a dtype; x itself where nothing changes, unless copy.
OFL_API StatusOr<Tensor> To(const Tensor& x, std::optional<Device> device,
                            std::optional<DType> dtype, bool copy = false);
// x in the dtype of another tensor; x itself where it has it.
OFL_API StatusOr<Tensor> TypeAs(const Tensor& x, const Tensor& other);
// self = src, broadcast and cast, in place; src may be on another device. Returns self.
OFL_API StatusOr<Tensor> CopyInto(const Tensor& self, const Tensor& src);

}  // namespace oneflow_lite::functional
