// SPDX-License-Identifier: Apache-2.0
//
// New tensors: constants, sequences, random numbers; and overwriting with a constant.
//
//   OFL_ASSIGN_OR_RETURN(Tensor x, functional::Randn({4, 5}, {}, DType::kFloat32, device));
#pragma once

#include <optional>

#include "oneflow_lite/core/generator.h"
#include "oneflow_lite/core/scalar.h"
#include "oneflow_lite/core/tensor.h"
#include "oneflow_lite/framework/function.h"

namespace oneflow_lite::functional {

using SizeList = absl::Span<const int64_t>;

// RuntimeError where a tensor is to require grad and its dtype does not allow it: before it is
// made.
Status CheckLeaf(const char* name, DType dtype, bool requires_grad);

// The dtype is float32 and the device the CPU where absent. ValueError for negative dims.
OFL_API StatusOr<Tensor> Empty(SizeList size, std::optional<DType> dtype = {},
                               std::optional<Device> device = {}, bool requires_grad = false);
OFL_API StatusOr<Tensor> Zeros(SizeList size, std::optional<DType> dtype = {},
                               std::optional<Device> device = {}, bool requires_grad = false);
OFL_API StatusOr<Tensor> Ones(SizeList size, std::optional<DType> dtype = {},
                              std::optional<Device> device = {}, bool requires_grad = false);
// The dtype is that of the number (bool, int64, float32) where absent; OverflowError
// where the dtype does not hold it.
OFL_API StatusOr<Tensor> Full(SizeList size, Scalar value, std::optional<DType> dtype = {},
                              std::optional<Device> device = {}, bool requires_grad = false);
// start, start + step, ... before end; with one number, from 0 to it. int64 where all are integers,
// else float32.
OFL_API StatusOr<Tensor> Arange(Scalar start, std::optional<Scalar> end = {},
                                std::optional<Scalar> step = {}, std::optional<DType> dtype = {},
                                std::optional<Device> device = {}, bool requires_grad = false);
// `steps` numbers from start to end, both included, equally far apart, and powers of base with such
// exponents; float32 where no dtype is given. Of an integer dtype the ends lose their fractions
// first; OverflowError where the dtype does not hold one.
OFL_API StatusOr<Tensor> Linspace(Scalar start, Scalar end, int64_t steps,
                                  std::optional<DType> dtype = {},
                                  std::optional<Device> device = {}, bool requires_grad = false);
OFL_API StatusOr<Tensor> Logspace(Scalar start, Scalar end, int64_t steps, double base = 10,
                                  std::optional<DType> dtype = {},
                                  std::optional<Device> device = {}, bool requires_grad = false);
// Uniform in [0, 1), and normal with mean 0 and variance 1, from the generator given or the
// device's.
OFL_API StatusOr<Tensor> Rand(SizeList size, Ref<Generator> generator = {},
                              std::optional<DType> dtype = {}, std::optional<Device> device = {},
                              bool requires_grad = false);
OFL_API StatusOr<Tensor> Randn(SizeList size, Ref<Generator> generator = {},
                               std::optional<DType> dtype = {}, std::optional<Device> device = {},
                               bool requires_grad = false);
// In the shape, dtype and device of x, where no others are given; of a global x they lie as x does.
OFL_API StatusOr<Tensor> EmptyLike(const Tensor& x, std::optional<DType> dtype = {},
                                   std::optional<Device> device = {}, bool requires_grad = false);
OFL_API StatusOr<Tensor> ZerosLike(const Tensor& x, std::optional<DType> dtype = {},
                                   std::optional<Device> device = {}, bool requires_grad = false);
OFL_API StatusOr<Tensor> OnesLike(const Tensor& x, std::optional<DType> dtype = {},
                                  std::optional<Device> device = {}, bool requires_grad = false);
OFL_API StatusOr<Tensor> FullLike(const Tensor& x, Scalar value, std::optional<DType> dtype = {},
                                  std::optional<Device> device = {}, bool requires_grad = false);
OFL_API StatusOr<Tensor> RandLike(const Tensor& x, std::optional<DType> dtype = {},
                                  std::optional<Device> device = {}, bool requires_grad = false);
OFL_API StatusOr<Tensor> RandnLike(const Tensor& x, std::optional<DType> dtype = {},
                                   std::optional<Device> device = {}, bool requires_grad = false);
// x's shape, dtype and device filled as FillInto fills.
OFL_API StatusOr<Tensor> Fill(const Tensor& x, const Operand& value);
// The generator's 32-bit integers themselves, as int64: the same on every device.
OFL_API StatusOr<Tensor> RandomBits(SizeList size, Ref<Generator> generator = {},
                                    std::optional<Device> device = {});

// self = value, in place: a number, or a tensor of 0 dims, which gets the gradient that flows to
// self (ShapeError for more dims). Returns self. OverflowError where the dtype does not hold the
// number.
OFL_API StatusOr<Tensor> FillInto(const Tensor& self, const Operand& value);
OFL_API StatusOr<Tensor> ZeroInto(const Tensor& self);

}  // namespace oneflow_lite::functional
