// SPDX-License-Identifier: Apache-2.0
//
// Which function a family's primitive computes. Apart from the families' headers, and C++17, so
// that .cu files can include it.
#pragma once

#include <cstdint>

namespace oneflow_lite {

// y = f(x) of one element. neg, relu, abs, sign, square: all but bool; kLogicalNot and what begins
// with kIs, which give bool, all; kBitwiseNot: integers and bool; the others: floats.
enum class UnaryOp : uint8_t {
  kNeg,
  kExp,
  kLog,
  kRelu,
  kAbs,
  kSqrt,
  kRsqrt,
  kTanh,
  kSigmoid,
  kSin,
  kCos,
  kErf,
  kFloor,
  kSilu,
  kGeluTanh,  // the approximation of gelu by tanh
  kGelu,
  // Rounding and arithmetic.
  kCeil,
  kTrunc,
  kRound,          // halves to the even integer
  kRoundDecimals,  // params: 10^|decimals|, and 1 where decimals < 0
  kFrac,
  kSign,
  kSquare,
  kReciprocal,
  kDeg2rad,
  kRad2deg,
  kNanToNum,  // params: what replaces NaN, inf and -inf
  // Exponentials and logarithms.
  kExp2,
  kExpm1,
  kLog1p,
  kLog2,
  kLog10,
  kLogit,  // params: eps; negative: none
  // Trigonometric and hyperbolic functions.
  kTan,
  kSinh,
  kCosh,
  kAsin,
  kAcos,
  kAtan,
  kAsinh,
  kAcosh,
  kAtanh,
  kSinc,
  // Special functions.
  kErfc,
  kErfinv,
  kLgamma,
  kDigamma,
  kI0,
  // Truths and bits.
  kIsNan,
  kIsInf,
  kIsFinite,
  kIsPosInf,
  kIsNegInf,
  kIsSigned,  // whether the sign bit is set
  kLogicalNot,
  kBitwiseNot,
};
// Whether the result is bool.
constexpr bool IsTruth(UnaryOp op) { return op >= UnaryOp::kIsNan && op <= UnaryOp::kLogicalNot; }

// The numbers that a function takes beside its element.
struct UnaryParams {
  double v[3] = {};
};

// Arithmetic gives the operands' dtype; integers wrap around; kDiv is for floats only. On bool,
// kAdd is or, kMul is and, kSub has no code. Comparisons give bool. kReluBackward is
// a = dy, b = y: b <= 0 ? 0 : a (floats). kGeluBackward and kGeluTanhBackward are a = dy times the
// slope at b = x (floats). kMaximum and kMinimum give NaN where an operand is NaN.
// kPow is not for bool; of integers, a negative power is the reciprocal rounded towards 0, and of 0
// it is 0. The bitwise ones are for integers and bool.
enum class BinaryOp : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kReluBackward,
  kGeluBackward,
  kGeluTanhBackward,
  kMaximum,
  kMinimum,
  kPow,
  kAnd,
  kOr,
  kXor,
};
constexpr bool IsComparison(BinaryOp op) { return op >= BinaryOp::kEq && op <= BinaryOp::kGe; }

enum class ReduceOp : uint8_t { kSum, kMean, kMax };

enum class Distribution : uint8_t {
  kUniform,  // [0, 1)
  kNormal,   // mean 0, variance 1, by Box and Muller's transform
  kBits,     // uniform 32-bit integers, as int64
};

}  // namespace oneflow_lite
