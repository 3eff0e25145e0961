// SPDX-License-Identifier: Apache-2.0
//
// Exponentials, logarithms, trigonometric and hyperbolic functions and erf: one expression per
// function, on vectors of float or double.
#include <limits>

#include "primitive/cpu/simd_targets.h"
#include "primitive/cpu/unary.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/unary_elementary.cpp"
#include "hwy/foreach_target.h"
// clang-format on
#include "primitive/cpu/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

template <class C, class F>
void Loop(int64_t n, const void* x_data, void* y_data, const UnaryParams& params) {
  const hn::ScalableTag<C> d;
  const C* x = static_cast<const C*>(x_data);
  C* y = static_cast<C*>(y_data);
  const auto zero = hn::Zero(d);
  ForEachVector(d, n, [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    StoreUpTo(F()(d, LoadUpTo(d, x + i, count, zero), params), d, y + i, count);
  });
}
template <class F>
UnaryCode Wide(DType dtype, F) {
  return WideCode(dtype, &Loop<float, F>, &Loop<double, F>);
}

template <class D>
HWY_INLINE hn::Vec<D> Number(D d, double v) {
  return hn::Set(d, static_cast<hn::TFromD<D>>(v));
}

// f(x) where `inside` holds, else NaN. The library takes lanes outside a function's domain one by
// one, ten times as long: they get the argument `safe` instead.
template <class D, class M, class F>
HWY_INLINE hn::Vec<D> Inside(D d, hn::Vec<D> x, M inside, double safe, F f) {
  const auto nan = hn::Set(d, std::numeric_limits<hn::TFromD<D>>::quiet_NaN());
  return hn::IfThenElse(inside, f(hn::IfThenElse(inside, x, Number(d, safe))), nan);
}
template <class D, class F>
HWY_INLINE hn::Vec<D> FromOn(D d, hn::Vec<D> x, double least, F f) {
  return Inside(d, x, hn::Ge(x, Number(d, least)), 2, f);
}
template <class D, class F>
HWY_INLINE hn::Vec<D> InUnit(D d, hn::Vec<D> x, F f) {
  return Inside(d, x, hn::Le(hn::Abs(x), Number(d, 1)), 0, f);
}

// x P(N <= x) of a standard normal N; erfc keeps its digits where that is small.
template <class D>
HWY_INLINE hn::Vec<D> GeluOf(D d, hn::Vec<D> x) {
  const auto tail = VectorErfc(d, hn::Mul(x, Number(d, -0.70710678118654752440)));
  const auto y = hn::Mul(hn::Mul(Number(d, 0.5), x), tail);
  return hn::IfThenElse(hn::Lt(x, Number(d, -40)), hn::Zero(d), y);  // -inf is not -inf times 0
}

// sin(pi x) / (pi x), from the rest of x to an integer n, which is exact: sin(pi x) is sin(pi rest)
// with the sign of (-1)^n.
template <class D>
HWY_INLINE hn::Vec<D> SincOf(D d, hn::Vec<D> x) {
  const auto one = Number(d, 1), half = Number(d, 0.5), pi = Number(d, 3.14159265358979323846);
  const auto n = hn::Round(x);
  const auto sine = VectorSin(d, hn::Mul(pi, hn::Sub(x, n)));
  const auto halves = hn::Mul(n, half);
  const auto signed_sine = hn::IfThenElse(hn::Eq(hn::Floor(halves), halves), sine, hn::Neg(sine));
  const auto y = hn::Div(signed_sine, hn::Mul(pi, x));
  const auto at_infinity = hn::IfThenElse(hn::IsInf(x), hn::Sub(x, x), y);  // NaN, as PyTorch has
  return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), one, at_infinity);
}

// log(x / (1 - x)); between 1/4 and 3/4, where that is near log(1), 2 atanh(2 x - 1), whose
// argument is exact. With eps, x is moved into [eps, 1 - eps] first.
template <class D>
HWY_INLINE hn::Vec<D> LogitOf(D d, hn::Vec<D> x, const UnaryParams& params) {
  const auto one = Number(d, 1);
  if (params.v[0] >= 0) {
    const auto least = Number(d, params.v[0]), most = hn::Sub(one, least);
    x = hn::IfThenElse(hn::Lt(x, least), least, hn::IfThenElse(hn::Gt(x, most), most, x));
  }
  const auto far = LogOf(d, hn::Div(x, hn::Sub(one, x)));
  const auto centred = hn::Sub(hn::Add(x, x), one);
  const auto inside = hn::Le(hn::Abs(centred), Number(d, 0.5));
  const auto near = VectorAtanh(d, hn::IfThenElse(inside, centred, hn::Zero(d)));
  return hn::IfThenElse(inside, hn::Add(near, near), far);
}

}  // namespace

UnaryCode FindElementaryHere(UnaryOp op, DType dtype) {
#define OFL_FN(expression) \
  [](auto d, auto x, const UnaryParams& params) OFL_SIMD_LAMBDA { return expression; }
#define OFL_OF(Function) [&](auto v) OFL_SIMD_LAMBDA { return Function(d, v); }
  switch (op) {
    case UnaryOp::kExp2:
      return Wide(dtype, OFL_FN(VectorExp2(d, x)));
    case UnaryOp::kExpm1:
      return Wide(dtype, OFL_FN(VectorExpm1(d, x)));
    case UnaryOp::kLog1p:
      return Wide(dtype, OFL_FN(FromOn(d, x, -1, OFL_OF(VectorLog1p))));
    case UnaryOp::kLog2:
      return Wide(dtype, OFL_FN(FromOn(d, x, 0, OFL_OF(VectorLog2))));
    case UnaryOp::kLog10:
      return Wide(dtype, OFL_FN(FromOn(d, x, 0, OFL_OF(VectorLog10))));
    case UnaryOp::kLogit:
      return Wide(dtype, OFL_FN(LogitOf(d, x, params)));
    case UnaryOp::kSin:
      return Wide(dtype, OFL_FN(VectorSin(d, x)));
    case UnaryOp::kCos:
      return Wide(dtype, OFL_FN(VectorCos(d, x)));
    case UnaryOp::kTan:
      return Wide(dtype, OFL_FN(VectorTan(d, x)));
    case UnaryOp::kAsin:
      return Wide(dtype, OFL_FN(InUnit(d, x, OFL_OF(VectorAsin))));
    case UnaryOp::kAcos:
      return Wide(dtype, OFL_FN(InUnit(d, x, OFL_OF(VectorAcos))));
    case UnaryOp::kAtan:
      return Wide(dtype, OFL_FN(VectorAtan(d, x)));
    case UnaryOp::kSinh:
      return Wide(dtype, OFL_FN(VectorSinh(d, x)));
    case UnaryOp::kCosh:
      return Wide(dtype, OFL_FN(VectorCosh(d, x)));
    case UnaryOp::kTanh:
      return Wide(dtype, OFL_FN(VectorTanh(d, x)));
    case UnaryOp::kAsinh:
      return Wide(dtype, OFL_FN(VectorAsinh(d, x)));
    case UnaryOp::kAcosh:
      return Wide(dtype, OFL_FN(FromOn(d, x, 1, OFL_OF(VectorAcosh))));
    case UnaryOp::kAtanh:
      return Wide(dtype, OFL_FN(InUnit(d, x, OFL_OF(VectorAtanh))));
    case UnaryOp::kErf:
      return Wide(dtype, OFL_FN(VectorErf(d, x)));
    case UnaryOp::kErfc:
      return Wide(dtype, OFL_FN(VectorErfc(d, x)));
    case UnaryOp::kGelu:
      return Wide(dtype, OFL_FN(GeluOf(d, x)));
    case UnaryOp::kSinc:
      return Wide(dtype, OFL_FN(SincOf(d, x)));
    default:
      return {};
  }
#undef OFL_FN
#undef OFL_OF
}

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {

HWY_EXPORT(FindElementaryHere);

UnaryCode FindElementary(UnaryOp op, DType dtype) {
  return HWY_DYNAMIC_DISPATCH(FindElementaryHere)(op, dtype);
}

}  // namespace oneflow_lite
#endif  // HWY_ONCE
