// SPDX-License-Identifier: Apache-2.0
//
// What the activations and their slopes share, on vectors of the compute type. Compiled once per
// instruction set, like simd-inl.h.
#if defined(OFL_PRIMITIVE_CPU_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OFL_PRIMITIVE_CPU_ACTIVATION_INL_H_
#undef OFL_PRIMITIVE_CPU_ACTIVATION_INL_H_
#else
#define OFL_PRIMITIVE_CPU_ACTIVATION_INL_H_
#endif

#include <iterator>

#include "primitive/activation_kinds.h"
#include "primitive/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {

template <class D>
HWY_INLINE hn::Vec<D> Constant(D d, double v) {
  return hn::Set(d, static_cast<hn::TFromD<D>>(v));
}
// The polynomial with these coefficients, that of the highest power first.
template <class D, size_t n>
HWY_INLINE hn::Vec<D> Polynomial(D d, const double (&c)[n], hn::Vec<D> x) {
  auto sum = Constant(d, c[0]);
#pragma GCC unroll 16
  for (size_t i = 1; i < n; ++i) sum = hn::MulAdd(sum, x, Constant(d, c[i]));
  return sum;
}
// x, but -limit or limit beyond them; NaN stays.
template <class D>
HWY_INLINE hn::Vec<D> Within(D d, hn::Vec<D> x, double limit) {
  const auto end = Constant(d, limit);
  return hn::IfThenElse(hn::Gt(hn::Abs(x), end), hn::CopySign(end, x), x);
}
// Beyond it, exp(-|x|) and x exp(-|x|) are 0 and exp(-x) is infinite.
template <class D>
inline constexpr double kFar = sizeof(hn::TFromD<D>) == 4 ? 118.0 : 764.0;

// c x for a number c = hi + lo: the product, and what it lacks of the exact one, as far as that
// matters to exp(c x).
template <class V>
struct Product {
  V z, rest;
};
// a b - product, where product is a b rounded. Without fused products it takes halves of the
// digits, whose products are exact (two of double lack the last of 54).
template <class D>
HWY_INLINE hn::Vec<D> LostInProduct(D d, hn::Vec<D> a, hn::Vec<D> b, hn::Vec<D> product) {
#if HWY_NATIVE_FMA
  return hn::MulSub(a, b, product);
#else
  const hn::RebindToUnsigned<D> du;
  using Bits = hn::TFromD<decltype(du)>;
  const auto mask = hn::Set(du, static_cast<Bits>(sizeof(Bits) == 4 ? ~0xfffull : ~0x7ffffffull));
  const auto a_high = hn::BitCast(d, hn::And(hn::BitCast(du, a), mask));
  const auto b_high = hn::BitCast(d, hn::And(hn::BitCast(du, b), mask));
  const auto a_low = hn::Sub(a, a_high), b_low = hn::Sub(b, b_high);
  auto lost = hn::MulAdd(a_high, b_low, hn::Sub(hn::Mul(a_high, b_high), product));
  lost = hn::MulAdd(a_low, b_high, lost);
  return hn::MulAdd(a_low, b_low, lost);
#endif
}
template <class D>
HWY_INLINE Product<hn::Vec<D>> Scaled(D d, hn::Vec<D> x, hn::TFromD<D> hi, hn::TFromD<D> lo) {
  const auto h = hn::Set(d, hi), l = hn::Set(d, lo);
  const auto z = hn::Mul(x, h);
  const auto rest = hn::MulAdd(x, l, LostInProduct(d, x, h, z));
  return {z, hn::IfThenElseZero(hn::Lt(hn::Abs(z), Constant(d, kFar<D>)), rest)};
}

// exp(r) - 1 with z = k ln(2) + r as in ReduceExp, by its series, which for |r| <= ln(2) / 2 leaves
// less than 2e-8 or 2e-17 of it.
template <class D>
HWY_INLINE hn::Vec<D> RestOfExp(D d, hn::Vec<D> z, hn::Vec<D> k) {
  constexpr bool kSingle = sizeof(hn::TFromD<D>) == 4;
  constexpr double kSingleSeries[] = {1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5};
  constexpr double kDoubleSeries[] = {
      1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320,
      1.0 / 5040,       1.0 / 720,       1.0 / 120,      1.0 / 24,      1.0 / 6,      0.5};
  auto r = hn::NegMulAdd(k, Constant(d, kSingle ? 0.693359375 : 0x1.62e42fefa38p-1), z);
  r = hn::NegMulAdd(k, Constant(d, kSingle ? -2.12194440e-4 : 0x1.ef35793c7673p-45), r);
  hn::Vec<D> series;
  if constexpr (kSingle) {
    series = Polynomial(d, kSingleSeries, r);
  } else {
    series = Polynomial(d, kDoubleSeries, r);
  }
  return hn::MulAdd(hn::Mul(r, r), series, r);
}

// exp(z) - 1 = 2^k (exp(r) - 1) + 2^k - 1.
template <class D>
HWY_INLINE hn::Vec<D> ExpM1Of(D d, hn::Vec<D> x) {
  using C = hn::TFromD<D>;
  const hn::RebindToUnsigned<D> du;
  // -1 below -64; infinite above the end.
  const auto low = hn::IfThenElse(hn::Lt(x, Constant(d, -64)), Constant(d, -64), x);
  const auto end = hn::Set(d, ExpLimits<C>::kInfinity);
  const auto z = hn::IfThenElse(hn::Gt(low, end), end, low);
  const auto e = ReduceExp(d, z);
  const auto small = RestOfExp(d, z, e.k);
  // 2^(k - 1), which is finite where 2^k is not but the result still is.
  const auto half = hn::Set(d, C(0.5));
  const auto shifted = hn::ShiftLeft<ExpLimits<C>::kMantissaBits>(hn::BitCast(du, e.biased));
  const auto power = hn::BitCast(d, hn::Add(hn::BitCast(du, half), shifted));
  const auto y = hn::MulAdd(small, power, hn::Sub(power, half));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::CopySign(hn::Add(y, y), x));
}

// exp(x) for x <= 0, subnormal results included, with half the error of ExpOf in float32: what is
// made of it has roundings of its own. 2^k is applied in two factors.
template <class D>
HWY_INLINE hn::Vec<D> ExpBelow(D d, hn::Vec<D> x) {
  using C = hn::TFromD<D>;
  constexpr int kBits = ExpLimits<C>::kMantissaBits;
  const hn::RebindToUnsigned<D> du;
  const auto least = hn::Set(d, ExpLimits<C>::kZero);
  const auto z = hn::IfThenElse(hn::Lt(x, least), least, x);
  const auto e = ReduceExp(d, z);
  const auto p = hn::Add(RestOfExp(d, z, e.k), Constant(d, 1));
  // Where 2^k would be subnormal: 2^(k + 64) and 2^-64.
  const auto far = hn::Lt(z, hn::Set(d, ExpLimits<C>::kSmallestNormal));
  const auto lift = hn::IfThenElse(far, Constant(d, 0x1p64), Constant(d, 1));
  const auto drop = hn::IfThenElse(far, Constant(d, 0x1p-64), Constant(d, 1));
  const auto shifted = hn::ShiftLeft<kBits>(hn::BitCast(du, e.biased));
  const auto power = hn::BitCast(d, hn::Add(hn::BitCast(du, lift), shifted));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Mul(hn::Mul(p, power), drop));
}

// log(1 + e) for 0 <= e <= 1: 2 artanh(s), s = e / (2 + e) <= 1/3, by its series.
template <class D>
HWY_INLINE hn::Vec<D> Log1POf(D d, hn::Vec<D> e) {
  constexpr double kSingleSeries[] = {2.0 / 13, 2.0 / 11, 2.0 / 9, 2.0 / 7, 2.0 / 5, 2.0 / 3};
  constexpr double kDoubleSeries[] = {2.0 / 33, 2.0 / 31, 2.0 / 29, 2.0 / 27, 2.0 / 25, 2.0 / 23,
                                      2.0 / 21, 2.0 / 19, 2.0 / 17, 2.0 / 15, 2.0 / 13, 2.0 / 11,
                                      2.0 / 9,  2.0 / 7,  2.0 / 5,  2.0 / 3};
  const auto s = hn::Div(e, hn::Add(e, Constant(d, 2)));
  const auto square = hn::Mul(s, s);
  hn::Vec<D> series;
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    series = Polynomial(d, kSingleSeries, square);
  } else {
    series = Polynomial(d, kDoubleSeries, square);
  }
  return hn::MulAdd(hn::Mul(s, square), series, hn::Add(s, s));
}

// exp(-|z + rest|)
template <class D>
HWY_INLINE hn::Vec<D> ExpDown(D d, const Product<hn::Vec<D>>& p) {
  const auto e = ExpBelow(d, hn::Neg(hn::Abs(p.z)));
  const auto rest = hn::IfThenElse(hn::Lt(p.z, hn::Zero(d)), p.rest, hn::Neg(p.rest));
  return hn::MulAdd(e, rest, e);
}

// exp(x) = e back for -kFar <= x <= 0. Far below 0, e is a normal number where exp(x) is none, so
// that x e back is rounded once; 1 + e is 1 there.
template <class V>
struct TailExp {
  V e, back;
};
template <class D>
HWY_INLINE TailExp<hn::Vec<D>> ExpOfTail(D d, hn::Vec<D> x) {
  constexpr bool kSingle = sizeof(hn::TFromD<D>) == 4;
  const auto far = hn::Lt(x, Constant(d, kSingle ? -64 : -640));
  const auto shift = hn::IfThenElseZero(far, Constant(d, kSingle ? 32 : 64));
  const auto exp = Constant(d, kSingle ? 1.2664165549094176e-14 : 1.603810890548638e-28);
  const auto back = hn::IfThenElse(far, exp, Constant(d, 1));  // exp(-shift)
  const hn::RebindToUnsigned<D> du;
  const auto z = hn::Add(x, shift);
  const auto r = ReduceExp(d, z);
  const auto one = Constant(d, 1);
  const auto k = hn::ShiftLeft<ExpLimits<hn::TFromD<D>>::kMantissaBits>(hn::BitCast(du, r.biased));
  const auto power = hn::BitCast(d, hn::Add(hn::BitCast(du, one), k));
  return {hn::Mul(hn::Add(RestOfExp(d, z, r.k), one), power), back};
}

// tanh(|x|)
template <class D>
HWY_INLINE hn::Vec<D> TanhOfSize(D d, hn::Vec<D> x) {
  const auto e = ExpM1Of(d, hn::Mul(hn::Abs(x), Constant(d, -2)));
  return hn::Neg(hn::Div(e, hn::Add(e, Constant(d, 2))));
}

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#endif  // OFL_PRIMITIVE_CPU_ACTIVATION_INL_H_
