// SPDX-License-Identifier: Apache-2.0
//
// gelu by tanh, and the slopes of both forms, on vectors of the compute type. Compiled once
// per instruction set, like simd-inl.h.
#if defined(OFL_PRIMITIVE_CPU_GELU_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OFL_PRIMITIVE_CPU_GELU_INL_H_
#undef OFL_PRIMITIVE_CPU_GELU_INL_H_
#else
#define OFL_PRIMITIVE_CPU_GELU_INL_H_
#endif

#include <cmath>

#include "primitive/cpu/activation-inl.h"
#include "primitive/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {

// P(N > size), N standard normal, for size >= 0 and bell = exp(-size^2 / 2). In float32 it is bell
// times t times a polynomial in t = 1 / (1 + 0.3 z), z = size / sqrt(2), fitted to erfc(z) exp(z^2)
// / 2 t for z up to 12 by least squares, reweighted until the largest relative error was 2.1e-8.
template <class D>
HWY_INLINE hn::Vec<D> UpperTail(D d, hn::Vec<D> size, hn::Vec<D> bell) {
  if constexpr (sizeof(hn::TFromD<D>) == 8) {
    HWY_ALIGN double lanes[hn::MaxLanes(D())];
    hn::Store(hn::Mul(size, hn::Set(d, 0.70710678118654752440)), d, lanes);
    for (size_t i = 0; i < hn::Lanes(D()); ++i) lanes[i] = 0.5 * std::erfc(lanes[i]);
    return hn::Load(d, lanes);
  } else {
    constexpr float kFit[] = {-0.0646266011f, 0.242150827f,   -0.254886121f,
                              0.272483403f,   -0.0464129801f, 0.107090696f,
                              0.0742606305f,  0.0853454639f,  0.084594677f};
    const auto one = hn::Set(d, 1.0f);
    const auto t = hn::Div(one, hn::MulAdd(size, hn::Set(d, 0.21213203435596424f), one));
    return hn::Mul(hn::Mul(bell, t), PolynomialOf(d, kFit, t));
  }
}

// y, but the slope of the line that is left beyond 40, so that no infinity is multiplied by 0.
template <class D>
HWY_INLINE hn::Vec<D> WithEnds(D d, hn::Vec<D> x, hn::Vec<D> y) {
  using T = hn::TFromD<D>;
  const auto end = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), hn::Set(d, T(1)));
  return hn::IfThenElse(hn::Gt(hn::Abs(x), hn::Set(d, T(40))), end, y);
}

// Of x P(N <= x): P(N <= x) + x p(x), N standard normal with density p.
template <class D>
HWY_INLINE hn::Vec<D> GeluSlope(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  const auto bell = ExpOf(d, hn::Mul(hn::Mul(x, x), hn::Set(d, T(-0.5))));
  const auto tail = UpperTail(d, hn::Abs(x), bell);
  const auto rest = hn::Sub(hn::Set(d, T(1)), tail);
  const auto below = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, rest);
  const auto density = hn::Mul(bell, hn::Set(d, T(0.39894228040143267794)));
  return WithEnds(d, x, hn::MulAdd(x, density, below));
}

// v = 2 sqrt(2 / pi) (x + 0.044715 x^3), and what it lacks of the exact one, as far as that matters
// to exp(v): v is up to 104 (745), so its rounding would be a hundred times that of exp(v).
template <class D>
HWY_INLINE Product<hn::Vec<D>> TwiceTanhArgument(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  // v = a x + b x^3 with a = kA + kARest, b = kB + kBRest.
  constexpr double kA = 1.5957691216057308, kARest = -9.96930880911092e-17;
  constexpr double kB = 0.07135481627260025, kBRest = -6.175149918155315e-19;
  const auto a = Constant(d, kA), b = Constant(d, kB);
  const auto a_rest = Constant(d, kA - static_cast<T>(kA) + kARest);
  const auto b_rest = Constant(d, kB - static_cast<T>(kB) + kBRest);
  const auto square = hn::Mul(x, x);
  const auto square_rest = LostInProduct(d, x, x, square);
  const auto bend = hn::Mul(b, square);
  auto rest = hn::MulAdd(b, square_rest, LostInProduct(d, b, square, bend));
  rest = hn::Add(hn::MulAdd(b_rest, square, rest), a_rest);
  // The sum a + bend with its rounding, whichever is the larger.
  const auto factor = hn::Add(a, bend);
  const auto of_bend = hn::Sub(factor, a);
  const auto lost = hn::Add(hn::Sub(a, hn::Sub(factor, of_bend)), hn::Sub(bend, of_bend));
  rest = hn::Add(rest, lost);
  const auto v = hn::Mul(x, factor);
  rest = hn::MulAdd(x, rest, LostInProduct(d, x, factor, v));
  return {v, hn::IfThenElseZero(hn::Lt(hn::Abs(v), Constant(d, kFar<D>)), rest)};
}

// x (1 + tanh(v / 2)) / 2 without cancellation: x / (1 + exp(-v)).
template <class D>
HWY_INLINE hn::Vec<D> GeluTanhOf(D d, hn::Vec<D> x) {
  const auto v = TwiceTanhArgument(d, x);
  const auto below = hn::Lt(x, hn::Zero(d));
  const auto near = hn::Max(hn::Neg(hn::Abs(v.z)), Constant(d, -kFar<D>));
  const auto t = ExpOfTail(d, near);
  const auto e = hn::MulAdd(t.e, hn::IfThenElse(below, v.rest, hn::Neg(v.rest)), t.e);
  const auto tail = hn::Mul(hn::Mul(hn::Max(x, Constant(d, -40)), e), t.back);
  return hn::Div(hn::IfThenElse(below, tail, x), hn::Add(e, Constant(d, 1)));
}

// Of x s, s = 1 / (1 + exp(-v)), v = a x + b x^3: s + x s (1 - s) (a + 3 b x^2), from the exp that
// is at most 1.
template <class D>
HWY_INLINE hn::Vec<D> GeluTanhSlope(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  const auto a = hn::Set(d, T(1.5957691216057308)), one = hn::Set(d, T(1));
  const auto b = hn::Set(d, T(0.07135481627260025));
  const auto square = hn::Mul(x, x);
  const auto v = hn::Mul(x, hn::MulAdd(b, square, a));
  const auto e = ExpOf(d, hn::Neg(hn::Abs(v)));
  const auto part = hn::Div(one, hn::Add(one, e));
  const auto small = hn::Mul(e, part);
  const auto s = hn::IfThenElse(hn::Lt(v, hn::Zero(d)), small, part);
  const auto bend = hn::MulAdd(hn::Mul(b, hn::Set(d, T(3))), square, a);
  const auto slope = hn::Mul(hn::Mul(x, hn::Mul(small, part)), bend);
  return WithEnds(d, x, hn::Add(s, slope));
}

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#endif  // OFL_PRIMITIVE_CPU_GELU_INL_H_
