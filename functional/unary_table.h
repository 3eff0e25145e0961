// SPDX-License-Identifier: Apache-2.0
//
// The elementwise ops of one input. A row is an op (ops/unary.cpp), which functors of
// functional/unary.cpp call; kernels/unary.cpp binds it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace oneflow_lite {

struct UnaryRow {
  // What the op takes, and what the function makes of other dtypes.
  enum Rule : uint8_t {
    kFloat,   // floats; integers and bool are cast to float32 first
    kWhole,   // floats; integers and bool are copied
    kNumber,  // all but bool
    kTruth,   // all; gives bool
    kBits,    // integers and bool
  };
  // Where the gradient comes from.
  enum Gradient : uint8_t {
    kNone,        // the result is not differentiable
    kZero,        // it is 0 everywhere
    kFormula,     // ops/unary.cpp has it
    kFromInput,   // op <name>_backward(dy, input)
    kFromOutput,  // op <name>_backward(dy, output)
  };
  const char* name;
  Rule rule;
  Gradient gradient;
  const char* doc;
  const char* attrs[3] = {};  // names; floats
};

// clang-format off
inline constexpr UnaryRow kUnaryRows[] = {
    {"neg", UnaryRow::kNumber, UnaryRow::kFormula, "Negates each element."},
    {"exp", UnaryRow::kFloat, UnaryRow::kFormula, "e to the power of each element."},
    {"log", UnaryRow::kFloat, UnaryRow::kFormula, "Natural logarithm of each element."},
    {"relu", UnaryRow::kNumber, UnaryRow::kFormula, "max(x, 0) of each element."},
    {"abs", UnaryRow::kNumber, UnaryRow::kFromInput, "|x| of each element."},
    {"sqrt", UnaryRow::kFloat, UnaryRow::kFromOutput, "Square root of each element."},
    {"rsqrt", UnaryRow::kFloat, UnaryRow::kFromOutput, "1 / sqrt(x) of each element."},
    // The powers that are roots: they keep what pow keeps for backward, the input.
    {"pow_half", UnaryRow::kFloat, UnaryRow::kFormula, "x^0.5 of each element."},
    {"pow_minus_half", UnaryRow::kFloat, UnaryRow::kFormula, "x^-0.5 of each element."},
    {"tanh", UnaryRow::kFloat, UnaryRow::kFromOutput, "Hyperbolic tangent of each element."},
    {"sigmoid", UnaryRow::kFloat, UnaryRow::kFromOutput, "1 / (1 + exp(-x)) of each element."},
    {"sin", UnaryRow::kFloat, UnaryRow::kFromInput, "Sine of each element."},
    {"cos", UnaryRow::kFloat, UnaryRow::kFromInput, "Cosine of each element."},
    {"erf", UnaryRow::kFloat, UnaryRow::kFromInput, "The error function of each element."},
    {"floor", UnaryRow::kWhole, UnaryRow::kZero, "The largest integer not above each element."},
    {"gelu_tanh", UnaryRow::kFloat, UnaryRow::kFormula,
     "x / (1 + exp(-2 u)), u = sqrt(2 / pi) (x + 0.044715 x^3)."},
    {"gelu", UnaryRow::kFloat, UnaryRow::kFormula,
     "x P(N <= x) of each element, of a standard normal N."},
    // Rounding and arithmetic.
    {"ceil", UnaryRow::kWhole, UnaryRow::kZero, "The smallest integer not below each element."},
    {"trunc", UnaryRow::kWhole, UnaryRow::kZero, "Each element without its fraction."},
    {"round", UnaryRow::kWhole, UnaryRow::kZero,
     "The integer nearest to each element, of two the even one."},
    {"round_decimals", UnaryRow::kWhole, UnaryRow::kZero,
     "Each element rounded to a multiple of 1 / scale, or, where before is not 0, of scale.",
     {"scale", "before"}},
    {"frac", UnaryRow::kFloat, UnaryRow::kFormula, "The fraction of each element, with its sign."},
    {"sign", UnaryRow::kNumber, UnaryRow::kZero,
     "1, 0 or -1 of each element; NaN where it is; its gradient is 0."},
    {"square", UnaryRow::kNumber, UnaryRow::kFromInput, "x^2 of each element; of bool as int64."},
    {"reciprocal", UnaryRow::kFloat, UnaryRow::kFromOutput, "1 / x of each element."},
    {"deg2rad", UnaryRow::kFloat, UnaryRow::kFormula, "Degrees as radians."},
    {"rad2deg", UnaryRow::kFloat, UnaryRow::kFormula, "Radians as degrees."},
    {"nan_to_num", UnaryRow::kWhole, UnaryRow::kFromInput,
     "NaN and the infinities replaced by numbers.", {"nan", "posinf", "neginf"}},
    // Exponentials and logarithms.
    {"exp2", UnaryRow::kFloat, UnaryRow::kFromOutput, "2 to the power of each element."},
    {"expm1", UnaryRow::kFloat, UnaryRow::kFromOutput,
     "exp(x) - 1 of each element, for small x too."},
    {"log1p", UnaryRow::kFloat, UnaryRow::kFromInput,
     "log(1 + x) of each element, for small x too."},
    {"log2", UnaryRow::kFloat, UnaryRow::kFromInput, "Logarithm to the base 2 of each element."},
    {"log10", UnaryRow::kFloat, UnaryRow::kFromInput, "Logarithm to the base 10 of each element."},
    {"logit", UnaryRow::kFloat, UnaryRow::kFromInput,
     "log(x / (1 - x)) of each element; where eps >= 0, of x moved into [eps, 1 - eps].",
     {"eps"}},
    // Trigonometric and hyperbolic functions.
    {"tan", UnaryRow::kFloat, UnaryRow::kFromOutput, "Tangent of each element."},
    {"sinh", UnaryRow::kFloat, UnaryRow::kFromInput, "Hyperbolic sine of each element."},
    {"cosh", UnaryRow::kFloat, UnaryRow::kFromInput, "Hyperbolic cosine of each element."},
    {"asin", UnaryRow::kFloat, UnaryRow::kFromInput, "Arc sine of each element, in radians."},
    {"acos", UnaryRow::kFloat, UnaryRow::kFromInput, "Arc cosine of each element, in radians."},
    {"atan", UnaryRow::kFloat, UnaryRow::kFromInput, "Arc tangent of each element, in radians."},
    {"asinh", UnaryRow::kFloat, UnaryRow::kFromInput, "Inverse hyperbolic sine of each element."},
    {"acosh", UnaryRow::kFloat, UnaryRow::kFromInput, "Inverse hyperbolic cosine of each element."},
    {"atanh", UnaryRow::kFloat, UnaryRow::kFromInput,
     "Inverse hyperbolic tangent of each element."},
    {"sinc", UnaryRow::kFloat, UnaryRow::kFromInput, "sin(pi x) / (pi x) of each element; 1 at 0."},
    // Special functions.
    {"erfc", UnaryRow::kFloat, UnaryRow::kFromInput,
     "1 - erf(x) of each element, for large x too."},
    {"erfinv", UnaryRow::kFloat, UnaryRow::kFromOutput,
     "Where the error function has each element's value."},
    {"lgamma", UnaryRow::kFloat, UnaryRow::kFromInput, "log |gamma(x)| of each element."},
    {"digamma", UnaryRow::kFloat, UnaryRow::kFromInput,
     "The derivative of log gamma at each element."},
    {"i0", UnaryRow::kFloat, UnaryRow::kFromInput,
     "The modified Bessel function of the first kind and order 0 of each element."},
    // functional/special.h
    {"ndtr", UnaryRow::kFloat, UnaryRow::kFromInput,
     "P(N <= x) of each element, of a standard normal N."},
    {"log_ndtr", UnaryRow::kFloat, UnaryRow::kFromInput,
     "The logarithm of P(N <= x) of each element, for small ones too."},
    {"ndtri", UnaryRow::kFloat, UnaryRow::kFromOutput,
     "Where P(N <= y) is each element, of a standard normal N."},
    {"entr", UnaryRow::kFloat, UnaryRow::kFromInput,
     "-x log(x) of each element: 0 at 0, -inf below."},
    {"erfcx", UnaryRow::kFloat, UnaryRow::kFromInput, "exp(x^2) erfc(x) of each element."},
    {"i0e", UnaryRow::kFloat, UnaryRow::kFromInput, "exp(-|x|) i0(x) of each element."},
    {"i1", UnaryRow::kFloat, UnaryRow::kFromInput,
     "The modified Bessel function of the first kind and order 1 of each element."},
    {"i1e", UnaryRow::kFloat, UnaryRow::kFromInput, "exp(-|x|) i1(x) of each element."},
    {"polygamma", UnaryRow::kFloat, UnaryRow::kFromInput,
     "The derivative of that order of digamma at each element.", {"n"}},
    {"mvlgamma", UnaryRow::kFloat, UnaryRow::kFromInput,
     "The logarithm of the gamma function of p dims at each element.", {"p"}},
    // Truths and bits.
    {"isnan", UnaryRow::kTruth, UnaryRow::kNone, "Whether each element is NaN."},
    {"isinf", UnaryRow::kTruth, UnaryRow::kNone, "Whether each element is infinite."},
    {"isfinite", UnaryRow::kTruth, UnaryRow::kNone,
     "Whether each element is neither infinite nor NaN."},
    {"isposinf", UnaryRow::kTruth, UnaryRow::kNone,
     "Whether each element is the positive infinity."},
    {"isneginf", UnaryRow::kTruth, UnaryRow::kNone,
     "Whether each element is the negative infinity."},
    {"signbit", UnaryRow::kTruth, UnaryRow::kNone,
     "Whether each element has a minus sign, -0 and NaN with one too."},
    {"logical_not", UnaryRow::kTruth, UnaryRow::kNone, "Whether each element is 0."},
    {"bitwise_not", UnaryRow::kBits, UnaryRow::kNone,
     "The bits that each element has not; of bool, whether it does not hold."},
};
// clang-format on
inline constexpr size_t kNumUnaryRows = sizeof(kUnaryRows) / sizeof(kUnaryRows[0]);

// The row of that name; a name without one does not compile where a constant is wanted.
constexpr size_t UnaryRowOf(absl::string_view name) {
  for (size_t i = 0; i < kNumUnaryRows; ++i) {
    if (absl::string_view(kUnaryRows[i].name) == name) return i;
  }
  return size_t{0} - 1;
}

}  // namespace oneflow_lite
