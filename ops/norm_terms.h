// SPDX-License-Identifier: Apache-2.0
//
// The normalised values from whatever a norm's backward was given, in the compute type, so that
// gradients of gradients can be composed of them.
#pragma once

#include "functional/binary.h"
#include "functional/copy.h"
#include "functional/norm.h"
#include "functional/unary.h"
#include "ops/term.h"

namespace oneflow_lite {

// |weight| of less than 1e-5 counts as 1e-5 where y is divided by it, as in the primitives.
inline Term ClampedWeight(const Term& weight) {
  if (!weight.ok() || weight.nothing()) return weight;
  const Tensor& w = *weight.value;
  const auto as_number = [&](StatusOr<Tensor> mask) -> Term {
    return {mask.ok() ? functional::Cast(*mask, w.dtype()) : mask};
  };
  const Term sign =
      as_number(functional::Ge(w, Scalar(0.0))) - as_number(functional::Lt(w, Scalar(0.0)));
  const Term size = weight * sign;
  if (!size.ok()) return size;
  StatusOr<Tensor> missing = functional::Sub(Scalar(1e-5), *size.value);
  if (missing.ok()) missing = functional::Relu(*missing);
  return weight + sign * Term{std::move(missing)};
}

struct NormTerms {
  // x_hat = v rstd with v = x - mean, or v / divisor with v = y - bias; the divisor is nothing
  // without a weight, and where x is known.
  Term dy, rstd, weight, divisor, v, x_hat;

  explicit NormTerms(const functional::NormGradientInputs& in) {
    const DType compute = in.rstd.dtype();
    const auto wide = [&](const Tensor& t) -> Term {
      if (!t.defined() || t.dtype() == compute) return {t};
      return {functional::Cast(t, compute)};
    };
    dy = wide(in.dy);
    rstd = wide(in.rstd);
    weight = wide(in.weight);
    if (in.y.defined()) {
      divisor = ClampedWeight(weight);
      v = wide(in.y) - wide(in.bias);
      x_hat = divisor.nothing() ? v : v / divisor;
    } else {
      v = wide(in.x) - wide(in.mean);
      x_hat = v * rstd;
    }
  }
};

}  // namespace oneflow_lite
