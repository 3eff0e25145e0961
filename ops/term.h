// SPDX-License-Identifier: Apache-2.0
//
// Formulas over tensors that read as formulas. A Term is a tensor, nothing (zero, where a gradient
// did not flow), or the error of a step before; each operation is a functor, so the result can be
// differentiated again.
//
//   Term u = rstd * (g - h * b);
//   return c.Set(0, u.value);
#pragma once

#include "functional/binary.h"
#include "functional/copy.h"
#include "functional/reduce.h"
#include "functional/ternary.h"
#include "functional/unary.h"
#include "functional/view.h"

namespace oneflow_lite {

struct Term {
  StatusOr<Tensor> value = Tensor();

  bool ok() const { return value.ok(); }
  bool nothing() const { return value.ok() && !value->defined(); }
};

template <class F>
Term Combine(const Term& a, const Term& b, F f) {
  if (!a.ok()) return a;
  if (!b.ok()) return b;
  return {f(*a.value, *b.value)};
}

inline Term operator-(const Term& a) {
  return !a.ok() || a.nothing() ? a : Term{functional::Neg(*a.value)};
}
inline Term operator+(const Term& a, const Term& b) {
  if (a.nothing()) return b;
  if (b.nothing()) return a;
  return Combine(a, b, [](auto& x, auto& y) { return functional::Add(x, y); });
}
inline Term operator-(const Term& a, const Term& b) {
  if (a.nothing()) return -b;
  if (b.nothing()) return a;
  return Combine(a, b, [](auto& x, auto& y) { return functional::Sub(x, y); });
}
inline Term operator*(const Term& a, const Term& b) {
  if (a.nothing()) return a;
  if (b.nothing()) return b;
  return Combine(a, b, [](auto& x, auto& y) { return functional::Mul(x, y); });
}
inline Term operator*(const Term& a, double b) {
  return !a.ok() || a.nothing() ? a : Term{functional::Mul(*a.value, Scalar(b))};
}
// Precondition: b is something.
inline Term operator/(const Term& a, const Term& b) {
  if (a.nothing()) return a;
  return Combine(a, b, [](auto& x, auto& y) { return functional::Div(x, y); });
}

// A number beside a tensor. Precondition: the Term is something.
inline Term operator+(const Term& a, double b) {
  return a.ok() ? Term{functional::Add(*a.value, Scalar(b))} : a;
}
inline Term operator-(double a, const Term& b) {
  return b.ok() ? Term{functional::Sub(Scalar(a), *b.value)} : b;
}
// f of a tensor, as in Apply(functional::Exp, x). Precondition: a is something.
inline Term Apply(StatusOr<Tensor> (*f)(const Tensor&), const Term& a) {
  return a.ok() ? Term{f(*a.value)} : a;
}

// x, or the nearer of -most and most: where a formula is 0 beyond them, which would be multiplied
// by infinity. Precondition: x is something.
inline Term Within(double most, const Term& x) {
  if (!x.ok()) return x;
  return Term{functional::Clamp(*x.value, Operand(Scalar(-most)), Operand(Scalar(most)))};
}

// The sum over one dim, which stays as size 1; a 0-dim tensor is its own sum.
inline Term SumOver(const Term& a, int64_t dim) {
  if (!a.ok() || a.nothing()) return a;
  const Dims dims = a.value->ndim() == 0 ? Dims{} : Dims{dim};
  return {functional::Sum(*a.value, dims, /*keepdim=*/true)};
}
// The sum over the dims from `axis` on, which stay as size 1.
inline Term SumFrom(const Term& a, int axis) {
  if (!a.ok() || a.nothing()) return a;
  Dims dims;
  for (int d = axis; d < a.value->ndim(); ++d) dims.push_back(d);
  return {functional::Sum(*a.value, dims, /*keepdim=*/true)};
}

// The sum over what was broadcast from `shape`.
inline Term SumTo(const Term& a, const Shape& shape) {
  return !a.ok() || a.nothing() ? a : Term{functional::SumToShape(*a.value, shape)};
}
// As a gradient of a tensor of this dtype and shape, to which it broadcasts.
inline Term As(const Term& a, DType dtype, const Shape& shape) {
  if (!a.ok() || a.nothing()) return a;
  StatusOr<Tensor> t = a.value;
  if (t->shape() != shape) t = functional::Expand(*t, shape);
  if (t.ok() && t->dtype() != dtype) t = functional::Cast(*t, dtype);
  return {std::move(t)};
}

}  // namespace oneflow_lite
