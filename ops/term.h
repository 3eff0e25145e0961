// SPDX-License-Identifier: Apache-2.0
//
// Formulas over tensors that read as formulas. A Term is a tensor, nothing (zero, where a gradient
// did not flow), or the error of a step before; each operation is a functor, so the result can be
// differentiated again.
//
//   Term u = rstd * (g - h * b);
//   return c.Set(0, u.value);
#pragma once

#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite {

// Copied and destroyed in term.cpp: inlined, that is most of the code of a formula, and of the time
// that compiling it takes.
struct Term {
  Term();
  Term(StatusOr<Tensor> v);
  Term(const Term& o);
  Term(Term&& o) noexcept;
  Term& operator=(const Term& o);
  Term& operator=(Term&& o) noexcept;
  ~Term();

  bool ok() const { return value.ok(); }
  bool nothing() const { return value.ok() && !value->defined(); }

  StatusOr<Tensor> value = Tensor();
};

template <class F>
Term Combine(const Term& a, const Term& b, F f) {
  if (!a.ok()) return a;
  if (!b.ok()) return b;
  return {f(*a.value, *b.value)};
}

Term operator-(const Term& a);
Term operator+(const Term& a, const Term& b);
Term operator-(const Term& a, const Term& b);
Term operator*(const Term& a, const Term& b);
Term operator*(const Term& a, double b);
// Precondition: b is something.
Term operator/(const Term& a, const Term& b);

// A number beside a tensor. Precondition: the Term is something.
Term operator+(const Term& a, double b);
Term operator-(double a, const Term& b);
// f of a tensor, as in Apply(functional::Exp, x). Precondition: a is something.
Term Apply(StatusOr<Tensor> (*f)(const Tensor&), const Term& a);

// x, or the nearer of -most and most: where a formula is 0 beyond them, which would be multiplied
// by infinity. Precondition: x is something.
Term Within(double most, const Term& x);

// The sum over one dim, which stays as size 1; a 0-dim tensor is its own sum.
Term SumOver(const Term& a, int64_t dim);
// The sum over the dims from `axis` on, which stay as size 1.
Term SumFrom(const Term& a, int axis);

// The sum over what was broadcast from `shape`.
Term SumTo(const Term& a, const Shape& shape);
// As a gradient of a tensor of this dtype and shape, to which it broadcasts.
Term As(const Term& a, DType dtype, const Shape& shape);

}  // namespace oneflow_lite
