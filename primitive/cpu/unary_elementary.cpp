// SPDX-License-Identifier: Apache-2.0
//
// Exponentials, logarithms, trigonometric and hyperbolic functions, erf and its inverse: one
// expression per function, on vectors of float or double.
#include <limits>

#include "primitive/cpu/simd_targets.h"
#include "primitive/cpu/unary.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/unary_elementary.cpp"
#include "primitive/cpu/foreach_target.h"
// clang-format on
#include "primitive/cpu/pack-inl.h"
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
// Of float alone, and of what is computed in it.
template <class F>
UnaryCode Single(DType dtype, F) {
  if (!IsFloating(dtype) || dtype == DType::kFloat64) return {};
  return {&Loop<float, F>, true};
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

// a P(N > a) e^(a^2 / 2) of a standard normal N, 0 <= a <= 14.9, of float: v times a polynomial in
// v - 1, v = a / (1 + 0.37 a), fitted by reweighted least squares: relative error 1.6e-8.
template <class D>
HWY_INLINE hn::Vec<D> NormalRestOf(D d, hn::Vec<D> a) {
  constexpr float kFit[] = {
      -2.249955969e-06f, -6.701545772e-06f, 2.553503327e-05f, 0.0001274173992f, -0.0001244208106f,
      -0.001922151656f,  0.001047863741f,   0.03539087251f,   -0.1528177112f,   0.3145395815f};
  const auto one = hn::Set(d, 1.0f);
  const auto v = hn::Mul(a, hn::Div(one, hn::MulAdd(a, hn::Set(d, 0.37f), one)));
  return hn::Mul(v, PolynomialOf(d, kFit, hn::Sub(v, one)));
}
// y e^(-a^2 / 2) 2^64 for 0 <= a <= 14.9, of float. With k ln(2) in two parts, the first exact,
// nothing of a^2 is lost in rounding.
template <class D>
HWY_INLINE hn::Vec<D> TimesScaledBell(D d, hn::Vec<D> y, hn::Vec<D> a) {
  constexpr float kFit[] = {0.00138144649f, 0.00836878084f, 0.0416683927f, 0.166665196f,
                            0.49999994f};
  const auto bias = hn::Set(d, 12582912.0f + 127 + 64);
  const auto half = hn::Mul(a, hn::Set(d, -0.5f));
  const auto k = hn::MulAdd(hn::Mul(half, a), hn::Set(d, 1.44269502f), bias);
  const auto j = hn::Sub(k, bias);
  const auto whole = hn::Mul(j, hn::Set(d, 0.693359375f));
#if HWY_TARGET == HWY_SSE4  // which has no fused product: that of the upper 12 bits is exact
  const hn::RebindToUnsigned<D> du;
  const auto upper = hn::BitCast(d, hn::And(hn::BitCast(du, a), hn::Set(du, 0xfffff000u)));
  const auto lower = hn::Mul(hn::Sub(a, upper), hn::Add(a, upper));
  auto r = hn::Sub(hn::Mul(hn::Mul(upper, hn::Set(d, -0.5f)), upper), whole);
  r = hn::MulAdd(lower, hn::Set(d, -0.5f), r);
#else
  auto r = hn::MulSub(half, a, whole);
#endif
  r = hn::NegMulAdd(j, hn::Set(d, -2.12194440e-4f), r);
  const auto less_one = hn::MulAdd(hn::Mul(r, r), PolynomialOf(d, kFit, r), r);
  const hn::RebindToUnsigned<D> bits;
  const auto power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(bits, k)));
  return hn::Mul(hn::MulAdd(y, less_one, y), power);
}

// x above 0, else -0; NaN stays.
template <class D>
HWY_INLINE hn::Vec<D> PartAbove(D d, hn::Vec<D> x) {
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Set(d, -0.0f), x);
}
// 2^k of float for an integer k > -127, from the sum of k and 1.5 2^23 + 127.
template <class D>
HWY_INLINE hn::Vec<D> PowerOfBiased(D d, hn::Vec<D> biased) {
  return hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(hn::RebindToUnsigned<D>(), biased)));
}

// x P(N <= x) of a standard normal N for a = |x| <= 7, of float, with fused products. There no
// power of 2 leaves the normal numbers and shorter polynomials do: a P(N > a) e^(a^2 / 2) is v
// times one in v - 1.5, v = a / (1 + 0.2925 a); e^(-s / 2), s = a^2 + 2 k ln(2), is 1 + s times
// another. Fitted by reweighted least squares: relative errors 1.7e-8 and 2e-9.
template <class D>
HWY_INLINE hn::Vec<D> GeluNear(D d, hn::Vec<D> x, hn::Vec<D> a) {
  constexpr float kTail[] = {-7.13949794e-06f, -2.03006166e-05f, 0.000182917167f, 0.000223782132f,
                             -0.0063866023f,   0.0342175364f,    -0.108895309f,   0.238478184f};
  constexpr float kExp[] = {2.16304161e-05f, -0.000261697394f, 0.0026042508f,
                            -0.0208330359f,  0.124999985f,     -0.5f};
  const auto v = hn::Div(a, hn::MulAdd(a, hn::Set(d, 0.2925f), hn::Set(d, 1.0f)));
  const auto y = hn::Mul(v, PolynomialOf(d, kTail, hn::Sub(v, hn::Set(d, 1.5f))));
  const auto bias = hn::Set(d, 12582912.0f + 127);
  const auto biased = hn::MulAdd(hn::Mul(a, a), hn::Set(d, -0.72134752f), bias);
  const auto k = hn::Sub(biased, bias);
  auto s = hn::MulAdd(a, a, hn::Mul(k, hn::Set(d, 2 * 0.693359375f)));
  s = hn::MulAdd(k, hn::Set(d, 2 * -2.12194440e-4f), s);
  const auto scaled = hn::MulAdd(y, hn::Mul(s, PolynomialOf(d, kExp, s)), y);
  return hn::NegMulAdd(scaled, PowerOfBiased(d, biased), PartAbove(d, x));
}
// The same for any x: above 0 x less x P(N > x), whose digits count below 0.
template <class D>
HWY_INLINE hn::Vec<D> GeluFar(D d, hn::Vec<D> x) {
  const auto size = hn::Abs(x), far = hn::Set(d, 14.9f);
  const auto a = hn::IfThenElse(hn::Gt(size, far), far, size);
  const auto scaled = TimesScaledBell(d, NormalRestOf(d, a), a);
  const auto rest = hn::Mul(scaled, hn::Set(d, 0x1p-64f));
  return hn::Sub(PartAbove(d, x), rest);
}

// near(x, |x|) where |x| <= most, else far(x), which few vectors take.
template <class D, class Near, class Far>
HWY_INLINE hn::Vec<D> NearOrFar(D d, hn::Vec<D> x, float most, Near near, Far far) {
  const auto size = hn::Abs(x);
  const auto inside = hn::Le(size, hn::Set(d, most));
  const auto y = near(x, size);
  if (HWY_LIKELY(hn::AllTrue(d, inside))) return y;
  return hn::IfThenElse(inside, y, far(x));
}

template <class D>
HWY_INLINE hn::Vec<D> GeluOf(D d, hn::Vec<D> x) {
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
#if HWY_NATIVE_FMA
    return NearOrFar(
        d, x, 7.0f, [&](auto v, auto a) OFL_SIMD_LAMBDA { return GeluNear(d, v, a); },
        [&](auto v) OFL_SIMD_LAMBDA { return GeluFar(d, v); });
#else
    return GeluFar(d, x);
#endif
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

// 2^(q + shift), the power of q's fraction by the polynomial `fit`: q's integer part, in the lower
// bits of a sum, is added to the exponent.
template <class D, size_t n>
HWY_INLINE hn::Vec<D> PowerOfTwo(D d, hn::Vec<D> q, const float (&fit)[n], int shift) {
  const hn::RebindToUnsigned<D> bits;
  const auto bias = hn::Set(d, 12582912.0f + static_cast<float>(shift));
  const auto k = hn::Add(q, bias);
  const auto power = PolynomialOf(d, fit, hn::Sub(q, hn::Sub(k, bias)));
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(bits, k));
  return hn::BitCast(d, hn::Add(hn::BitCast(bits, power), exponent));
}

// The same for bfloat16 in float: the tail P(N > a), a = |x|, is 2^q with q a polynomial in a.
// Fitted by reweighted least squares up to a = 6: relative errors 4.5e-5 of 2^q and 7.5e-5 of the
// power of q's fraction, a thirtieth of a rounding step.
template <class D>
HWY_INLINE hn::Vec<D> GeluNearOfShort(D d, hn::Vec<D> x, hn::Vec<D> a) {
  constexpr float kTail[] = {2.29900634e-05f, -0.000611100055f, 0.00719556585f, -0.051185336f,
                             -0.461271912f,   -1.15017426f,     -1.00006473f};
  constexpr float kPower[] = {0.0551716685f, 0.242611125f, 0.693260968f, 0.999928057f};
  return hn::NegMulAdd(a, PowerOfTwo(d, PolynomialOf(d, kTail, a), kPower, 0), PartAbove(d, x));
}
// Up to a = 14, from where on x P(N <= x) is 0 or x, q is a polynomial in a / 7 - 1: relative
// errors 3.4e-5 and 2.6e-6.
template <class D>
HWY_INLINE hn::Vec<D> GeluFarOfShort(D d, hn::Vec<D> x) {
  constexpr float kTail[] = {-0.0644692928f, 0.120711982f, -0.0526373945f, 0.053802956f,
                             -0.178642243f,  0.273433834f, -0.385314554f,  -34.7030831f,
                             -72.0811768f,   -39.5071564f};
  constexpr float kPower[] = {0.0095701013f, 0.0559178591f, 0.240247443f, 0.693121791f,
                              0.999999285f};
  const auto a = hn::Min(hn::Abs(x), hn::Set(d, 14.0f));
  const auto at = hn::MulSub(a, hn::Set(d, 1.0f / 7), hn::Set(d, 1.0f));
  const auto tail = PowerOfTwo(d, PolynomialOf(d, kTail, at), kPower, 64);
  const auto rest = hn::Mul(hn::Mul(a, tail), hn::Set(d, 0x1p-64f));
  return hn::Sub(PartAbove(d, x), rest);
}
void GeluLoop(int64_t n, const void* x_data, void* y_data, const UnaryParams&) {
  const TagOf<bfloat16> d;
  const bfloat16* x = static_cast<const bfloat16*>(x_data);
  const auto f = [&](auto v) OFL_SIMD_LAMBDA {
    return NearOrFar(
        d, v, 6.0f, [&](auto u, auto a) OFL_SIMD_LAMBDA { return GeluNearOfShort(d, u, a); },
        [&](auto u) OFL_SIMD_LAMBDA { return GeluFarOfShort(d, u); });
  };
  GeneratePacks<bfloat16, false>(static_cast<size_t>(n), static_cast<bfloat16*>(y_data),
                                 [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
                                   return EachPart(f, LoadPack(x + i, count, hn::Zero(d)));
                                 });
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

// log(x / (1 - x)) = k ln(2) + 2 atanh((x - 2^k y) / (x + 2^k y)) with y = 1 - x, k such that the
// argument is at most 1/5, and atanh's series as a fit: relative error 3e-9. What y loses in
// rounding counts near x = 1/2.
template <class D>
HWY_INLINE hn::Vec<D> LogitOfFloat(D d, hn::Vec<D> x) {
  constexpr float kFit[] = {0.15192005f, 0.199783653f, 0.33333480f};
  const hn::RebindToSigned<D> di;
  const auto one = hn::Set(d, 1.0f), y = hn::Sub(one, x), lost = hn::Sub(hn::Sub(one, y), x);
  const auto apart = hn::Sub(hn::BitCast(di, x), hn::BitCast(di, y));
  const auto k = hn::ShiftRight<23>(hn::Add(apart, hn::Set(di, 1 << 22)));
  const auto power = hn::BitCast(d, hn::Add(hn::ShiftLeft<23>(k), hn::BitCast(di, one)));
  const auto above = hn::NegMulAdd(power, lost, hn::NegMulAdd(power, y, x));
  const auto s = hn::Div(above, hn::MulAdd(power, y, x));
  const auto square = hn::Mul(s, s), twice = hn::Add(s, s), exponent = hn::ConvertTo(d, k);
  const auto rest = hn::MulAdd(hn::Mul(twice, square), PolynomialOf(d, kFit, square),
                               hn::Mul(exponent, hn::Set(d, -2.12194440e-4f)));
  const auto found = hn::MulAdd(exponent, hn::Set(d, 0.693359375f), hn::Add(twice, rest));
  const auto inside = hn::And(hn::Ge(x, hn::Set(d, 0x1p-120f)), hn::Lt(x, one));
  if (hn::AllTrue(d, inside)) return found;
  return hn::IfThenElse(inside, found, LogOf(d, hn::Div(x, y)));
}
// In float64, between 1/4 and 3/4, where the logarithm is near that of 1, 2 atanh(2 x - 1), whose
// argument is exact. With eps, x is moved into [eps, 1 - eps] first.
template <class D>
HWY_INLINE hn::Vec<D> LogitOf(D d, hn::Vec<D> x, const UnaryParams& params) {
  const auto one = Number(d, 1);
  if (params.v[0] >= 0) {
    const auto least = Number(d, params.v[0]), most = hn::Sub(one, least);
    x = hn::IfThenElse(hn::Lt(x, least), least, hn::IfThenElse(hn::Gt(x, most), most, x));
  }
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    return LogitOfFloat(d, x);
  } else {
    const auto far = LogOf(d, hn::Div(x, hn::Sub(one, x)));
    const auto centred = hn::Sub(hn::Add(x, x), one);
    const auto inside = hn::Le(hn::Abs(centred), Number(d, 0.5));
    const auto near = VectorAtanh(d, hn::IfThenElse(inside, centred, hn::Zero(d)));
    return hn::IfThenElse(inside, hn::Add(near, near), far);
  }
}

// Where erf is x, of float: x times a function of w = -log(1 - x^2), as in Giles, "Approximating
// the erfinv function" (2012): a polynomial in w - 5/2 below 5, one in sqrt(w) - 3 above. Fitted by
// reweighted least squares: relative errors 6e-9 and 8e-9.
template <class D>
HWY_INLINE hn::Vec<D> ErfinvOf(D d, hn::Vec<D> x) {
  constexpr float kNear[] = {
      -8.79104e-09f,    2.323263004e-08f, 4.661704338e-07f, -3.462704626e-06f, -4.963346782e-06f,
      0.0002183444449f, -0.001252741902f, -0.004177386872f, 0.2466402799f,     1.501409411f};
  constexpr float kFar[] = {0.0001213256182f, -0.0003139968903f, -6.511605898e-05f, 0.001490410417f,
                            -0.003593011061f, 0.005685041659f,   -0.007638201118f,  0.009445496835f,
                            1.00167501f,      2.832976818f};
  const auto one = hn::Set(d, 1.0f), size = hn::Abs(x);
  const auto w = hn::Neg(LogOf(d, hn::Mul(hn::Sub(one, size), hn::Add(one, size))));
  const auto near = hn::Lt(w, hn::Set(d, 5.0f));
  auto y = PolynomialOf(d, kNear, hn::Sub(w, hn::Set(d, 2.5f)));
  if (!hn::AllTrue(d, near)) {
    const auto far = PolynomialOf(d, kFar, hn::Sub(hn::Sqrt(w), hn::Set(d, 3.0f)));
    y = hn::IfThenElse(hn::Eq(size, one), w, hn::IfThenElse(near, y, far));
  }
  return hn::Mul(x, y);
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
    case UnaryOp::kErfinv:
      return Single(dtype, OFL_FN(ErfinvOf(d, x)));
    case UnaryOp::kErfc:
      return Wide(dtype, OFL_FN(VectorErfc(d, x)));
    case UnaryOp::kGelu:
      if (dtype == DType::kBFloat16) return {&GeluLoop};
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
