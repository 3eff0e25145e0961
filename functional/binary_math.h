// SPDX-License-Identifier: Apache-2.0
//
// Divisions with a rounded quotient, functions of integers, logical functions and mathematical
// functions of two operands, broadcast and promoted as in binary.h. Those of floats cast integers
// and bool to float32.
//
//   OFL_ASSIGN_OR_RETURN(Tensor angle, functional::Atan2(y, x));
#pragma once

#include <optional>
#include <string>

#include "oneflow_lite/framework/function.h"

namespace oneflow_lite::functional {

// C's fmod; the rest that goes with FloorDivide, of b's sign; a / b rounded down and towards 0.
// Of integers over 0 the quotients are 0 and the rests a. Quotients have gradients of 0.
OFL_API StatusOr<Tensor> Fmod(const Operand& a, const Operand& b);
OFL_API StatusOr<Tensor> Remainder(const Operand& a, const Operand& b);
OFL_API StatusOr<Tensor> FloorDivide(const Operand& a, const Operand& b);
OFL_API StatusOr<Tensor> TruncDivide(const Operand& a, const Operand& b);

// Div with a rounded quotient: rounding_mode is "floor", "trunc" or none (ValueError for another).
OFL_API StatusOr<Tensor> Div(const Operand& a, const Operand& b,
                             const std::optional<std::string>& rounding_mode);

// Of integers. Shifts by fewer than 0 places, or more than there are, leave 0, or the sign.
OFL_API StatusOr<Tensor> Gcd(const Operand& a, const Operand& b);
OFL_API StatusOr<Tensor> Lcm(const Operand& a, const Operand& b);
OFL_API StatusOr<Tensor> BitwiseLeftShift(const Operand& a, const Operand& b);
OFL_API StatusOr<Tensor> BitwiseRightShift(const Operand& a, const Operand& b);

// Of every dtype, as bool: whether both, one, exactly one is not 0.
OFL_API StatusOr<Tensor> LogicalAnd(const Operand& a, const Operand& b);
OFL_API StatusOr<Tensor> LogicalOr(const Operand& a, const Operand& b);
OFL_API StatusOr<Tensor> LogicalXor(const Operand& a, const Operand& b);

// The larger and the smaller, of a number and NaN the number. Equal operands share the gradient.
OFL_API StatusOr<Tensor> Fmax(const Operand& a, const Operand& b);
OFL_API StatusOr<Tensor> Fmin(const Operand& a, const Operand& b);

OFL_API StatusOr<Tensor> Hypot(const Operand& a, const Operand& b);
OFL_API StatusOr<Tensor> Atan2(const Operand& a, const Operand& b);
OFL_API StatusOr<Tensor> LogAddExp(const Operand& a, const Operand& b);
OFL_API StatusOr<Tensor> LogAddExp2(const Operand& a, const Operand& b);
// a log(b), a log(1 + b); 0 where a is 0, unless b is NaN.
OFL_API StatusOr<Tensor> XLogY(const Operand& a, const Operand& b);
OFL_API StatusOr<Tensor> XLog1PY(const Operand& a, const Operand& b);
OFL_API StatusOr<Tensor> CopySign(const Operand& a, const Operand& b);
OFL_API StatusOr<Tensor> NextAfter(const Operand& a, const Operand& b);  // of floats, as they are
OFL_API StatusOr<Tensor> Ldexp(const Operand& a, const Operand& b);
OFL_API StatusOr<Tensor> Heaviside(const Operand& x, const Operand& at_0);  // of every dtype
// Pow in float64.
OFL_API StatusOr<Tensor> FloatPower(const Operand& a, const Operand& b);

// In place, as AddInto.
OFL_API StatusOr<Tensor> DivInto(const Tensor& self, const Operand& other,
                                 const std::optional<std::string>& rounding_mode);
OFL_API StatusOr<Tensor> FmodInto(const Tensor& self, const Operand& other);
OFL_API StatusOr<Tensor> RemainderInto(const Tensor& self, const Operand& other);
OFL_API StatusOr<Tensor> FloorDivideInto(const Tensor& self, const Operand& other);
OFL_API StatusOr<Tensor> TruncDivideInto(const Tensor& self, const Operand& other);
OFL_API StatusOr<Tensor> GcdInto(const Tensor& self, const Operand& other);
OFL_API StatusOr<Tensor> LcmInto(const Tensor& self, const Operand& other);
OFL_API StatusOr<Tensor> HypotInto(const Tensor& self, const Operand& other);
OFL_API StatusOr<Tensor> Atan2Into(const Tensor& self, const Operand& other);
OFL_API StatusOr<Tensor> XLogYInto(const Tensor& self, const Operand& other);
OFL_API StatusOr<Tensor> CopySignInto(const Tensor& self, const Operand& other);
OFL_API StatusOr<Tensor> NextAfterInto(const Tensor& self, const Operand& other);
OFL_API StatusOr<Tensor> LdexpInto(const Tensor& self, const Operand& other);
OFL_API StatusOr<Tensor> HeavisideInto(const Tensor& self, const Operand& at_0);
// 0 and 1 in self's dtype.
OFL_API StatusOr<Tensor> LogicalAndInto(const Tensor& self, const Operand& other);
OFL_API StatusOr<Tensor> LogicalOrInto(const Tensor& self, const Operand& other);
OFL_API StatusOr<Tensor> LogicalXorInto(const Tensor& self, const Operand& other);
OFL_API StatusOr<Tensor> PowInto(const Tensor& self, const Operand& exponent);
OFL_API StatusOr<Tensor> BitwiseAndInto(const Tensor& self, const Operand& other);
OFL_API StatusOr<Tensor> BitwiseOrInto(const Tensor& self, const Operand& other);
OFL_API StatusOr<Tensor> BitwiseXorInto(const Tensor& self, const Operand& other);
OFL_API StatusOr<Tensor> BitwiseLeftShiftInto(const Tensor& self, const Operand& other);
OFL_API StatusOr<Tensor> BitwiseRightShiftInto(const Tensor& self, const Operand& other);

}  // namespace oneflow_lite::functional
