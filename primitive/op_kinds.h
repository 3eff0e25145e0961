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
  // Of the normal distribution, Bessel functions, derivatives of log gamma: normal_math.h,
  // zeta_math.h, special_math.h.
  kNdtr,
  kLogNdtr,
  kNdtri,
  kEntr,
  kErfcx,
  kI0e,
  kI1,
  kI1e,
  kPolygamma,  // params: the order
  kMvlgamma,   // params: the dim
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

  // Divisions, of numbers. kFmod has the sign of a, kRemainder that of b; kFloorDivide and
  // kTruncDivide round the ratio down and towards 0. Of integers over 0 the quotient is 0 and the
  // rest is a.
  kFmod,
  kRemainder,
  kFloorDivide,
  kTruncDivide,
  // Of integers. Shifts by fewer than 0 places, or by more than there are, leave 0, or the sign.
  kGcd,
  kLcm,
  kShiftLeft,
  kShiftRight,
  // Whether both, one, or exactly one is not 0: bool, of every dtype.
  kLogicalAnd,
  kLogicalOr,
  kLogicalXor,
  // Of floats. kFmax and kFmin give the number where one operand is NaN. kXLogY and kXLog1PY are 0
  // where a is 0 and b is not NaN. kLdexp is a 2^b. kNextAfter steps in the operands' own dtype.
  kFmax,
  kFmin,
  kHypot,
  kAtan2,
  kLogAddExp,
  kLogAddExp2,
  kXLogY,
  kXLog1PY,
  kCopySign,
  kNextAfter,
  kLdexp,
  kZeta,       // Hurwitz's, of a = the power and b = where it starts
  kHeaviside,  // of every dtype: 0 below 0, b at 0, 1 above; NaN stays
  kPrelu,      // of floats: a where it is positive, else a b
};
// Whether the result is bool.
constexpr bool IsComparison(BinaryOp op) {
  return (op >= BinaryOp::kEq && op <= BinaryOp::kGe) ||
         (op >= BinaryOp::kLogicalAnd && op <= BinaryOp::kLogicalXor);
}

// Of operands a, b, c and a number v. All but kAddCMul, kClamp and kIsClose are for floats only.
// Those after kIsClose are slopes times a = the gradient g, of functions of b and c.
enum class TernaryOp : uint8_t {
  kLerp,         // a + c (b - a), from the end that is nearer
  kAddCMul,      // a + v b c; integers wrap around
  kAddCDiv,      // a + v b / c
  kMulDiv,       // v a (b / c)
  kClamp,        // a, not below b and then not above c; NaN where one of the three is
  kClampInside,  // whether b < a < c, as bool; infinite bounds stand for none
  kClampShare,   // 0, a half or 1: of kClamp's gradient, for a where v = 0, b where 1, c where 2
  kIsClose,      // |a - b| <= atol + rtol |b|, as bool; c is not read
  kPowSlopeA,
  kPowSlopeB,
  kMaximumSlope,  // of the first operand, b; half at a tie
  kMinimumSlope,
  kFmaxSlope,
  kFminSlope,
  kFmodSlopeB,      // of the divisor, c
  kAtan2SlopeA,     // c / (b^2 + c^2)
  kLogAddExpSlope,  // 1 / (1 + exp(v (c - b)))
  kXLogYSlopeA,     // log(c + v), with v 0 or 1
  kXLogYSlopeB,     // b / (c + v)
  kCopySignSlope,
  kPreluSlopeA,  // of the element, b: a where it is positive, else a c
  kPreluSlopeB,  // of the weight: 0 where b is positive, else a c; c is the element again
};
constexpr bool IsComparison(TernaryOp op) {
  return op == TernaryOp::kClampInside || op == TernaryOp::kIsClose;
}
// What a TernaryOp takes beside its operands: the number v, for integers `whole`; atol is v too.
struct TernaryNumbers {
  double v = 1;
  int64_t whole = 1;
  double rtol = 0;
  bool equal_nan = false;
};

}  // namespace oneflow_lite
