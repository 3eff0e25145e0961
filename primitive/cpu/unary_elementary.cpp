// SPDX-License-Identifier: Apache-2.0
//
// Exponentials, logarithms, trigonometric and hyperbolic functions and erf: one expression per
// function, on vectors of float or double.
#include <iterator>
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

// a P(N > a) e^(a^2 / 2) of a standard normal N, 0 <= a <= 14.9, of float: a polynomial in
// t = (a - 3) / (a + 3) over 1 + a / 3, fitted by reweighted least squares.
template <class D>
HWY_INLINE hn::Vec<D> NormalRestOf(D d, hn::Vec<D> a) {
  constexpr float kFit[] = {1.8161254e-05f,  4.37727831e-05f, -8.15779349e-05f, -0.000344188622f,
                            0.000341586216f, 0.00232310337f,  -0.00348750455f,  -0.0157542285f,
                            0.0766725689f,   -0.169777334f,   0.243027896f};
  const auto third = hn::Set(d, 1.0f / 3), below = hn::MulAdd(a, third, hn::Set(d, 1.0f));
  const auto t = hn::Div(hn::MulAdd(a, third, hn::Set(d, -1.0f)), below);
  auto sum = hn::Set(d, kFit[0]);
  for (size_t i = 1; i < std::size(kFit); ++i) sum = hn::MulAdd(sum, t, hn::Set(d, kFit[i]));
  return hn::Div(hn::Mul(a, sum), below);
}
// y e^(-a^2 / 2) 2^64 for 0 <= a <= 14.9, of float, with what a^2 loses in rounding: as in
// primitive/cuda/float_math.cuh.
template <class D>
HWY_INLINE hn::Vec<D> TimesScaledBell(D d, hn::Vec<D> y, hn::Vec<D> a) {
  const auto bias = hn::Set(d, 12582912.0f + 127 + 64), log2e = hn::Set(d, -0.5f * 1.44269502f);
  const auto square = hn::Mul(a, a), rest = hn::MulSub(a, a, square);
  const auto k = hn::MulAdd(square, log2e, bias), j = hn::Sub(k, bias);
  const auto half = hn::Set(d, -0.5f);
  auto r = hn::NegMulAdd(j, hn::Set(d, 0.693145752f), hn::Mul(square, half));
  r = hn::NegMulAdd(j, hn::Set(d, 1.42860677e-6f), r);
  r = hn::MulAdd(rest, half, r);
  auto tail = hn::MulAdd(hn::Set(d, 0.0013946554f), r, hn::Set(d, 0.0083666439f));
  tail = hn::MulAdd(tail, r, hn::Set(d, 0.0416662806f));
  tail = hn::MulAdd(tail, r, hn::Set(d, 0.1666654255f));
  tail = hn::MulAdd(tail, r, hn::Set(d, 0.5f));
  const auto less_one = hn::MulAdd(hn::Mul(r, r), tail, r);
  const hn::RebindToUnsigned<D> bits;
  const auto power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(bits, k)));
  return hn::Mul(hn::MulAdd(y, less_one, y), power);
}

// x P(N <= x) of a standard normal N: above 0 x less x P(N > x), whose digits count below 0.
template <class D>
HWY_INLINE hn::Vec<D> GeluOf(D d, hn::Vec<D> x) {
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    const auto size = hn::Abs(x), far = hn::Set(d, 14.9f);
    const auto a = hn::IfThenElse(hn::Gt(size, far), far, size);
    const auto scaled = TimesScaledBell(d, NormalRestOf(d, a), a);
    const auto rest = hn::Mul(scaled, hn::Set(d, 0x1p-64f));
    const auto above = hn::IfThenElse(hn::Gt(x, hn::Zero(d)), x, hn::Set(d, -0.0f));
    return hn::Sub(above, rest);
  } else {
    // What x / sqrt(2) loses in rounding is made good by the slope of erfc.
    const auto root = Number(d, 0.70710678118654752440), low = Number(d, -4.833646656726457e-17);
    const auto t = hn::Neg(hn::Mul(x, root));
    const auto off = hn::NegMulAdd(x, low, hn::Neg(hn::MulAdd(x, root, t)));
    const auto slope =
        hn::Mul(Number(d, -1.12837916709551257390), ExpOf(d, hn::Neg(hn::Mul(t, t))));
    const auto tail = hn::MulAdd(slope, off, VectorErfc(d, t));
    const auto y = hn::Mul(hn::Mul(Number(d, 0.5), x), tail);
    const auto ends = hn::IfThenElse(hn::Lt(x, Number(d, -40)), hn::Zero(d), y);
    return hn::IfThenElse(hn::Gt(x, Number(d, 40)), x, ends);  // nor inf times 0
  }
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
  const auto c = hn::IfThenElse(inside, centred, hn::Zero(d));
  if constexpr (sizeof(hn::TFromD<D>) == 8) {
    const auto near = VectorAtanh(d, c);
    return hn::IfThenElse(inside, hn::Add(near, near), far);
  } else {  // by its series: what is left out is below 2e-8 of it
    const auto square = hn::Mul(c, c);
    constexpr float kSeries[] = {2.0f / 23, 2.0f / 21, 2.0f / 19, 2.0f / 17, 2.0f / 15, 2.0f / 13,
                                 2.0f / 11, 2.0f / 9,  2.0f / 7,  2.0f / 5,  2.0f / 3};
    auto sum = hn::Set(d, kSeries[0]);
    for (size_t i = 1; i < std::size(kSeries); ++i) {
      sum = hn::MulAdd(sum, square, hn::Set(d, kSeries[i]));
    }
    const auto near = hn::MulAdd(hn::Mul(c, square), sum, hn::Add(c, c));
    return hn::IfThenElse(inside, near, far);
  }
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
