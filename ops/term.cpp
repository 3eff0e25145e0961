// SPDX-License-Identifier: Apache-2.0
#include "ops/term.h"

#include <utility>

#include "functional/binary.h"
#include "functional/copy.h"
#include "functional/reduce.h"
#include "functional/ternary.h"
#include "functional/unary.h"
#include "functional/view.h"

namespace oneflow_lite {

Term::Term() = default;
Term::Term(StatusOr<Tensor> v) : value(std::move(v)) {}
Term::Term(const Term& o) = default;
Term::Term(Term&& o) noexcept = default;
Term& Term::operator=(const Term& o) = default;
Term& Term::operator=(Term&& o) noexcept = default;
Term::~Term() = default;

Term operator-(const Term& a) {
  return !a.ok() || a.nothing() ? a : Term{functional::Neg(*a.value)};
}
Term operator+(const Term& a, const Term& b) {
  if (a.nothing()) return b;
  if (b.nothing()) return a;
  return Combine(a, b, [](auto& x, auto& y) { return functional::Add(x, y); });
}
Term operator-(const Term& a, const Term& b) {
  if (a.nothing()) return -b;
  if (b.nothing()) return a;
  return Combine(a, b, [](auto& x, auto& y) { return functional::Sub(x, y); });
}
Term operator*(const Term& a, const Term& b) {
  if (a.nothing()) return a;
  if (b.nothing()) return b;
  return Combine(a, b, [](auto& x, auto& y) { return functional::Mul(x, y); });
}
Term operator*(const Term& a, double b) {
  return !a.ok() || a.nothing() ? a : Term{functional::Mul(*a.value, Scalar(b))};
}
Term operator/(const Term& a, const Term& b) {
  if (a.nothing()) return a;
  return Combine(a, b, [](auto& x, auto& y) { return functional::Div(x, y); });
}

Term operator+(const Term& a, double b) {
  return a.ok() ? Term{functional::Add(*a.value, Scalar(b))} : a;
}
Term operator-(double a, const Term& b) {
  return b.ok() ? Term{functional::Sub(Scalar(a), *b.value)} : b;
}
Term Apply(StatusOr<Tensor> (*f)(const Tensor&), const Term& a) {
  return a.ok() ? Term{f(*a.value)} : a;
}

Term Within(double most, const Term& x) {
  if (!x.ok()) return x;
  return Term{functional::Clamp(*x.value, Operand(Scalar(-most)), Operand(Scalar(most)))};
}

Term SumOver(const Term& a, int64_t dim) {
  if (!a.ok() || a.nothing()) return a;
  const Dims dims = a.value->ndim() == 0 ? Dims{} : Dims{dim};
  return {functional::Sum(*a.value, dims, /*keepdim=*/true)};
}
Term SumFrom(const Term& a, int axis) {
  if (!a.ok() || a.nothing()) return a;
  Dims dims;
  for (int d = axis; d < a.value->ndim(); ++d) dims.push_back(d);
  return {functional::Sum(*a.value, dims, /*keepdim=*/true)};
}

Term SumTo(const Term& a, const Shape& shape) {
  return !a.ok() || a.nothing() ? a : Term{functional::SumToShape(*a.value, shape)};
}
Term As(const Term& a, DType dtype, const Shape& shape) {
  if (!a.ok() || a.nothing()) return a;
  StatusOr<Tensor> t = a.value;
  if (t->shape() != shape) t = functional::Expand(*t, shape);
  if (t.ok() && t->dtype() != dtype) t = functional::Cast(*t, dtype);
  return {std::move(t)};
}

}  // namespace oneflow_lite
