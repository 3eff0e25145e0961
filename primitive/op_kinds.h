// SPDX-License-Identifier: Apache-2.0
//
// Which function a family's primitive computes. Apart from the families' headers, and C++17, so
// that .cu files can include it.
#pragma once

#include <cstdint>

namespace oneflow_lite {

// neg, relu and abs: all but bool; the others: floats.
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
