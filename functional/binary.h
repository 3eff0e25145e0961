// SPDX-License-Identifier: Apache-2.0
//
// Elementwise functions of two operands, broadcast against each other and promoted as in PyTorch: a
// number (and, less weakly, a 0-dim tensor) takes the other operand's dtype unless its kind is
// higher. In arithmetic with a 16-bit float it keeps the float32 in which kernels compute; where it
// is compared it is rounded to the dtype. A number that an integer dtype does not hold is an
// OverflowError, but for comparisons, which give the mathematical answer.
//
//   OFL_ASSIGN_OR_RETURN(Tensor z, functional::Mul(x, Scalar(2.0)));
#pragma once

#include "oneflow_lite/framework/function.h"

namespace oneflow_lite::functional {

// The dtype that the two are promoted to; an operand as a tensor of a dtype, numbers of 0 dims.
// OverflowError in the name of `op` for a number that an integer dtype does not hold.
OFL_API DType ResultDType(const Operand& a, const Operand& b);
OFL_API StatusOr<Tensor> ToTensor(absl::string_view op, const Operand& o, DType dtype);

OFL_API StatusOr<Tensor> Add(const Operand& a, const Operand& b);
OFL_API StatusOr<Tensor> Sub(const Operand& a, const Operand& b);  // not on bool
OFL_API StatusOr<Tensor> Mul(const Operand& a, const Operand& b);
OFL_API StatusOr<Tensor> Div(const Operand& a, const Operand& b);  // true division: always floating

// The larger and the smaller; NaN where an operand is. Equal operands share the gradient.
OFL_API StatusOr<Tensor> Maximum(const Operand& a, const Operand& b);
OFL_API StatusOr<Tensor> Minimum(const Operand& a, const Operand& b);
// a to the power of b. Integers take no number below 0, and to the power of a tensor's element
// below 0 they are the reciprocal rounded towards 0.
OFL_API StatusOr<Tensor> Pow(const Operand& a, const Operand& b);

// Bit by bit, of integers and bool.
OFL_API StatusOr<Tensor> BitwiseAnd(const Operand& a, const Operand& b);
OFL_API StatusOr<Tensor> BitwiseOr(const Operand& a, const Operand& b);
OFL_API StatusOr<Tensor> BitwiseXor(const Operand& a, const Operand& b);

// Comparisons give bool. An integer beside a number is compared with its value, whatever it is; a
// floating element with the number rounded to its dtype, or as finite where that rounds to
// infinity.
OFL_API StatusOr<Tensor> Eq(const Operand& a, const Operand& b);
OFL_API StatusOr<Tensor> Ne(const Operand& a, const Operand& b);
OFL_API StatusOr<Tensor> Lt(const Operand& a, const Operand& b);
OFL_API StatusOr<Tensor> Le(const Operand& a, const Operand& b);
OFL_API StatusOr<Tensor> Gt(const Operand& a, const Operand& b);
OFL_API StatusOr<Tensor> Ge(const Operand& a, const Operand& b);
// Whether both have the same shape and the same elements; reading it waits for the device.
OFL_API StatusOr<bool> Equal(const Tensor& x, const Tensor& other);

// a + alpha b and a - alpha b; DTypeError for a fraction as alpha of integers. Rsub: other - alpha
// x.
OFL_API StatusOr<Tensor> Add(const Operand& a, const Operand& b, Scalar alpha);
OFL_API StatusOr<Tensor> Sub(const Operand& a, const Operand& b, Scalar alpha);
OFL_API StatusOr<Tensor> Rsub(const Tensor& x, const Operand& other, Scalar alpha = 1);

// In place: self keeps its shape and dtype (ShapeError, DTypeError where that cannot be) and is
// returned.
OFL_API StatusOr<Tensor> AddInto(const Tensor& self, const Operand& other);
OFL_API StatusOr<Tensor> SubInto(const Tensor& self, const Operand& other);
OFL_API StatusOr<Tensor> AddInto(const Tensor& self, const Operand& other, Scalar alpha);
OFL_API StatusOr<Tensor> SubInto(const Tensor& self, const Operand& other, Scalar alpha);
OFL_API StatusOr<Tensor> MulInto(const Tensor& self, const Operand& other);
OFL_API StatusOr<Tensor> DivInto(const Tensor& self, const Operand& other);

// 0 where y <= 0, else dy, also where y is NaN.
OFL_API StatusOr<Tensor> ReluBackward(const Tensor& dy, const Tensor& y);

// dy times the slope of gelu at x; of its approximation by tanh.
OFL_API StatusOr<Tensor> GeluBackward(const Tensor& dy, const Tensor& x);
OFL_API StatusOr<Tensor> GeluTanhBackward(const Tensor& dy, const Tensor& x);

// Sums x over the dims in which `shape` was broadcast to x's shape; x itself where none.
OFL_API StatusOr<Tensor> SumToShape(const Tensor& x, const Shape& shape);

}  // namespace oneflow_lite::functional
