// SPDX-License-Identifier: Apache-2.0
//
// The second derivatives of gelu and of its approximation by tanh, for the gradients of
// gelu_backward and gelu_tanh_backward.
#pragma once

#include <cmath>
#include <numbers>

#include "functional/copy.h"
#include "functional/unary.h"
#include "oneflow_lite/framework/autograd.h"
#include "ops/term.h"

namespace oneflow_lite {

// Of x P(N <= x), N standard normal with density p: p(x) (2 - x^2).
inline Term GeluBend(const Term& given) {
  const Term x = Within(40, given), square = x * x;
  const double scale = 1 / std::sqrt(2 * std::numbers::pi);
  return Apply(functional::Exp, square * -0.5) * scale * (2 - square);
}

// Of x s, s = 1 / (1 + exp(-v)), v = a x + b x^3: s (1 - s) (2 v' + x v'' + x v'^2 (1 - 2 s)).
inline Term GeluTanhBend(const Term& given) {
  const double a = 2 * std::sqrt(2 / std::numbers::pi), b = 0.044715 * a;
  const Term x = Within(40, given), square = x * x;
  const Term s = Apply(functional::Sigmoid, x * (square * b + a));
  const Term slope = square * (3 * b) + a;  // v'
  const Term bend = slope * 2 + square * (6 * b) + x * slope * slope * (1 - s * 2);
  return s * (1 - s) * bend;
}

// The gradient of dy f'(x) with respect to x, g dy f''(x), computed as kernels do: the 16-bit
// floats in float32, rounded once.
template <Term (*kBend)(const Term& x)>
StatusOr<Tensor> BendGradient(const GradContext& c) {
  const DType dtype = c.grad(0).dtype(), wide = ComputeType(dtype);
  const Term g{functional::Cast(c.grad(0), wide)}, dy{functional::Cast(c.input(0), wide)};
  const Term x{functional::Cast(c.input(1), wide)};
  OFL_ASSIGN_OR_RETURN(const Tensor product, (g * dy * kBend(x)).value);
  return functional::Cast(product, dtype);
}

}  // namespace oneflow_lite
