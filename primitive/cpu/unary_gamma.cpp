// SPDX-License-Identifier: Apache-2.0
//
// lgamma, digamma, ndtr and entr of float (and of the 16-bit floats) on vectors of double, rounded
// once to float; unary_special.cpp has those of double, element by element.
#include <limits>

#include "primitive/cpu/simd_targets.h"
#include "primitive/cpu/unary.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/unary_gamma.cpp"
#include "primitive/cpu/foreach_target.h"
// clang-format on
#include "primitive/cpu/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

constexpr double kPi = 3.14159265358979323846;

// F on the elements as doubles.
template <class F>
void Loop(int64_t n, const void* x_data, void* y_data, const UnaryParams&) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> single;
  const float* x = static_cast<const float*>(x_data);
  float* y = static_cast<float*>(y_data);
  const auto one = hn::Set(single, 1.0f);
  ForEachVector(d, n, [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    const auto wide = hn::PromoteTo(d, LoadUpTo(single, x + i, count, one));
    StoreUpTo(hn::DemoteTo(single, F()(d, wide)), single, y + i, count);
  });
}
template <class F>
UnaryCode Single(F) {
  return {&Loop<F>, true};
}

template <class D>
HWY_INLINE hn::Vec<D> Number(D d, double v) {
  return hn::Set(d, v);
}
// The polynomial with these coefficients, that of the highest power first.
template <class D, size_t n>
HWY_INLINE hn::Vec<D> Polynomial(D d, const double (&c)[n], hn::Vec<D> x) {
  auto sum = Number(d, c[0]);
#pragma GCC unroll 16
  for (size_t i = 1; i < n; ++i) sum = hn::MulAdd(sum, x, Number(d, c[i]));
  return sum;
}

// log gamma(x) for x > 0: by the recurrence to x >= 8, and there by Stirling's series.
template <class D>
HWY_INLINE hn::Vec<D> LogGammaOfPositive(D d, hn::Vec<D> x) {
  constexpr double kSeries[] = {1.0 / 156,  -691.0 / 360360, 1.0 / 1188, -1.0 / 1680,
                                1.0 / 1260, -1.0 / 360,      1.0 / 12};
  const auto one = Number(d, 1), small = hn::Lt(x, Number(d, 8));
  const auto near = hn::IfThenElse(small, x, one);
  auto product = near, next = near;
  for (int k = 1; k < 8; ++k) {
    next = hn::Add(next, one);
    product = hn::Mul(product, next);
  }
  const auto z = hn::IfThenElse(small, hn::Add(next, one), x);
  const auto inverse = hn::Div(one, z), square = hn::Mul(inverse, inverse);
  const auto rest = hn::MulAdd(Polynomial(d, kSeries, square), inverse,
                               Number(d, 0.91893853320467274178));  // log(2 pi) / 2
  const auto y = hn::MulAdd(hn::Sub(z, Number(d, 0.5)), hn::Log(d, z), hn::Sub(rest, z));
  return hn::Sub(y, hn::IfThenElseZero(small, hn::Log(d, product)));
}

// Infinite at 0, negative integers and both infinities.
template <class D>
HWY_INLINE hn::Vec<D> LogGammaOf(D d, hn::Vec<D> x) {
  const auto zero = hn::Zero(d), one = Number(d, 1);
  const auto inf = Number(d, std::numeric_limits<double>::infinity());
  const auto above = hn::Gt(x, zero);
  const auto finite = hn::Lt(hn::Abs(x), inf);
  const auto safe = hn::IfThenElse(finite, x, one);
  auto y = LogGammaOfPositive(d, hn::IfThenElse(above, safe, hn::Sub(one, safe)));
  if (!hn::AllTrue(d, above)) {  // log(pi / |sin(pi x)|) - log gamma(1 - x)
    const auto off = hn::Sub(safe, hn::Round(safe));
    const auto sine = hn::Abs(VectorSin(d, hn::Mul(off, Number(d, kPi))));
    const auto pole = hn::Eq(sine, zero);
    const auto ratio = hn::Div(Number(d, kPi), hn::IfThenElse(pole, one, sine));
    const auto mirrored = hn::IfThenElse(pole, inf, hn::Sub(hn::Log(d, ratio), y));
    y = hn::IfThenElse(above, y, mirrored);
  }
  return hn::IfThenElse(finite, y, hn::IfThenElse(hn::IsNaN(x), x, inf));
}

// The sum of 1 / (x + k) for k < 8 as one quotient, and the asymptotic expansion beyond.
template <class D>
HWY_INLINE hn::Vec<D> DigammaOfPositive(D d, hn::Vec<D> x) {
  constexpr double kSeries[] = {-1.0 / 12,  691.0 / 32760, -1.0 / 132, 1.0 / 240,
                                -1.0 / 252, 1.0 / 120,     -1.0 / 12};
  const auto zero = hn::Zero(d), one = Number(d, 1), small = hn::Lt(x, Number(d, 8));
  auto next = hn::IfThenElse(small, x, one);
  auto above = one, below = next;
  for (int k = 1; k < 8; ++k) {
    next = hn::Add(next, one);
    above = hn::MulAdd(above, next, below);
    below = hn::Mul(below, next);
  }
  const auto sum = hn::IfThenElse(small, hn::Div(above, below), zero);
  const auto z = hn::IfThenElse(small, hn::Add(next, one), x);
  const auto inverse = hn::Div(one, z), square = hn::Mul(inverse, inverse);
  const auto series =
      hn::MulAdd(Polynomial(d, kSeries, square), square, hn::Mul(inverse, Number(d, -0.5)));
  return hn::Sub(hn::Add(hn::Log(d, z), series), sum);
}

// -inf at 0, inf at -0, NaN at negative integers and -inf.
template <class D>
HWY_INLINE hn::Vec<D> DigammaOf(D d, hn::Vec<D> x) {
  const auto zero = hn::Zero(d), one = Number(d, 1);
  const auto inf = Number(d, std::numeric_limits<double>::infinity());
  const auto above = hn::Gt(x, zero);
  const auto finite = hn::Lt(hn::Abs(x), inf);
  const auto safe = hn::IfThenElse(finite, x, one);
  auto y = DigammaOfPositive(d, hn::IfThenElse(above, safe, hn::Sub(one, safe)));
  if (!hn::AllTrue(d, above)) {
    const auto off = hn::Mul(hn::Sub(safe, hn::Round(safe)), Number(d, kPi));
    const auto pole = hn::Eq(off, zero);
    const auto angle = hn::IfThenElse(pole, one, off);
    const auto tangent = hn::Div(VectorSin(d, angle), VectorCos(d, angle));
    const auto mirrored = hn::Sub(y, hn::Div(Number(d, kPi), tangent));
    const auto nan = Number(d, std::numeric_limits<double>::quiet_NaN());
    const auto at_pole = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(hn::CopySign(inf, x)), nan);
    y = hn::IfThenElse(above, y, hn::IfThenElse(pole, at_pole, mirrored));
  }
  const auto at_end =
      hn::IfThenElse(hn::Eq(x, inf), inf, Number(d, std::numeric_limits<double>::quiet_NaN()));
  return hn::IfThenElse(finite, y, at_end);
}

// P(N <= x) of a standard normal N.
template <class D>
HWY_INLINE hn::Vec<D> NdtrOf(D d, hn::Vec<D> x) {
  return hn::Mul(Number(d, 0.5), VectorErfc(d, hn::Mul(x, Number(d, -0.70710678118654752440))));
}

// -x log(x): 0 at 0, -inf below.
template <class D>
HWY_INLINE hn::Vec<D> EntrOf(D d, hn::Vec<D> x) {
  const auto zero = hn::Zero(d);
  const auto inf = Number(d, std::numeric_limits<double>::infinity());
  const auto inside = hn::And(hn::Gt(x, zero), hn::Lt(x, inf));
  const auto y = hn::Neg(hn::Mul(x, hn::Log(d, hn::IfThenElse(inside, x, Number(d, 1)))));
  const auto below = hn::IfThenElse(hn::Eq(x, zero), zero, hn::Neg(hn::Abs(hn::Mul(x, inf))));
  return hn::IfThenElse(inside, y, below);
}

}  // namespace

UnaryCode FindGammaHere(UnaryOp op) {
#define OFL_FN(expression) [](auto d, auto x) OFL_SIMD_LAMBDA { return expression; }
  switch (op) {
    case UnaryOp::kLgamma:
      return Single(OFL_FN(LogGammaOf(d, x)));
    case UnaryOp::kDigamma:
      return Single(OFL_FN(DigammaOf(d, x)));
    case UnaryOp::kNdtr:
      return Single(OFL_FN(NdtrOf(d, x)));
    case UnaryOp::kEntr:
      return Single(OFL_FN(EntrOf(d, x)));
    default:
      return {};
  }
#undef OFL_FN
}

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {

HWY_EXPORT(FindGammaHere);

UnaryCode FindGamma(UnaryOp op, DType dtype) {
  if (!IsFloating(dtype) || dtype == DType::kFloat64) return {};
  return HWY_DYNAMIC_DISPATCH(FindGammaHere)(op);
}

}  // namespace oneflow_lite
#endif  // HWY_ONCE
