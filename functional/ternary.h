// SPDX-License-Identifier: Apache-2.0
//
// Elementwise functions of three operands, broadcast and promoted as in binary.h.
//
//   OFL_ASSIGN_OR_RETURN(Tensor y, functional::Lerp(x, end, Scalar(0.3)));
#pragma once

#include <optional>

#include "oneflow_lite/framework/function.h"

namespace oneflow_lite::functional {

// x + weight (end - x), from the end that is nearer: weights 0 and 1 give the ends. Integers are
// cast to float32.
OFL_API StatusOr<Tensor> Lerp(const Operand& x, const Operand& end, const Operand& weight);
// x + value a b. OverflowError for a value that an integer dtype does not hold.
OFL_API StatusOr<Tensor> AddCMul(const Operand& x, const Operand& a, const Operand& b,
                                 Scalar value = 1);
// x + value a / b; integers are cast to float32.
OFL_API StatusOr<Tensor> AddCDiv(const Operand& x, const Operand& a, const Operand& b,
                                 Scalar value = 1);
// x, not below `min` and not above `max`, where they are given; NaN stays. At a bound that is a
// number the gradient is 0, at one that is a tensor x shares it. A number that the dtype does not
// hold is its nearest end. ValueError for neither.
OFL_API StatusOr<Tensor> Clamp(const Tensor& x, const std::optional<Operand>& min,
                               const std::optional<Operand>& max = {});
OFL_API StatusOr<Tensor> ClampMin(const Tensor& x, const Operand& min);
OFL_API StatusOr<Tensor> ClampMax(const Tensor& x, const Operand& max);
// In place, as AddInto (binary.h).
OFL_API StatusOr<Tensor> LerpInto(const Tensor& self, const Operand& end, const Operand& weight);
OFL_API StatusOr<Tensor> AddCMulInto(const Tensor& self, const Operand& a, const Operand& b,
                                     Scalar value = 1);
OFL_API StatusOr<Tensor> AddCDivInto(const Tensor& self, const Operand& a, const Operand& b,
                                     Scalar value = 1);
OFL_API StatusOr<Tensor> ClampInto(const Tensor& self, const std::optional<Operand>& min,
                                   const std::optional<Operand>& max = {});
OFL_API StatusOr<Tensor> ClampMinInto(const Tensor& self, const Operand& min);
OFL_API StatusOr<Tensor> ClampMaxInto(const Tensor& self, const Operand& max);
// Where |a - b| <= atol + rtol |b|; infinities are close to themselves, NaN to NaN with equal_nan.
// ValueError for a negative tolerance.
OFL_API StatusOr<Tensor> IsClose(const Tensor& a, const Tensor& b, double rtol = 1e-5,
                                 double atol = 1e-8, bool equal_nan = false);

// For add and sub with alpha: a + sign alpha b, in the name of `op`; the same into self.
StatusOr<Tensor> AddTimes(absl::string_view op, const Operand& a, const Tensor& b, Scalar alpha,
                          int sign);
StatusOr<Tensor> AddTimesInto(absl::string_view op, const Tensor& self, const Tensor& b,
                              Scalar alpha, int sign);

// For gradients, of floats of one dtype. value a (b / c):
OFL_API StatusOr<Tensor> MulDiv(const Tensor& a, const Tensor& b, const Tensor& c,
                                Scalar value = 1);
// g times the slope of a function of a and b: by a where the name does not say b.
OFL_API StatusOr<Tensor> PowSlopeA(const Tensor& g, const Tensor& a, const Tensor& b);
OFL_API StatusOr<Tensor> PowSlopeB(const Tensor& g, const Tensor& a, const Tensor& b);
OFL_API StatusOr<Tensor> MaximumSlope(const Tensor& g, const Tensor& a, const Tensor& b);
OFL_API StatusOr<Tensor> MinimumSlope(const Tensor& g, const Tensor& a, const Tensor& b);
OFL_API StatusOr<Tensor> FmaxSlope(const Tensor& g, const Tensor& a, const Tensor& b);
OFL_API StatusOr<Tensor> FminSlope(const Tensor& g, const Tensor& a, const Tensor& b);
OFL_API StatusOr<Tensor> FmodSlopeB(const Tensor& g, const Tensor& a, const Tensor& b);
OFL_API StatusOr<Tensor> Atan2SlopeA(const Tensor& g, const Tensor& a, const Tensor& b);
OFL_API StatusOr<Tensor> CopySignSlope(const Tensor& g, const Tensor& a, const Tensor& b);
// Of prelu by the element x; and by the weight, where factor is x again: g factor, 0 where x > 0.
OFL_API StatusOr<Tensor> PreluSlopeA(const Tensor& g, const Tensor& x, const Tensor& weight);
OFL_API StatusOr<Tensor> PreluSlopeB(const Tensor& g, const Tensor& x, const Tensor& factor);
// Of log(e^(value a) + e^(value b)) / value; of a log(b + value), value 0 or 1.
OFL_API StatusOr<Tensor> LogAddExpSlope(const Tensor& g, const Tensor& a, const Tensor& b,
                                        Scalar value);
OFL_API StatusOr<Tensor> XLogYSlopeA(const Tensor& g, const Tensor& a, const Tensor& b,
                                     Scalar value);
OFL_API StatusOr<Tensor> XLogYSlopeB(const Tensor& g, const Tensor& a, const Tensor& b,
                                     Scalar value);
// Whether x is strictly between the bounds; infinite ones stand for none.
OFL_API StatusOr<Tensor> ClampInside(const Tensor& x, const Tensor& min, const Tensor& max);
// The share of clamp's gradient that x (which = 0), min (1) or max (2) has: 1 for what clamp gives,
// max where the bounds are in the wrong order; a half each for x and the bound that it equals, all
// for x where the bounds are equal, too, or beside NaN.
OFL_API StatusOr<Tensor> ClampShare(const Tensor& x, const Tensor& min, const Tensor& max,
                                    int64_t which);

}  // namespace oneflow_lite::functional
