// SPDX-License-Identifier: Apache-2.0
//
// exp and log on vectors of float or double, and the polynomials that such functions are made of. A
// part of simd-inl.h, compiled once per instruction set as it is.
#if defined(OFL_PRIMITIVE_CPU_EXP_LOG_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OFL_PRIMITIVE_CPU_EXP_LOG_INL_H_
#undef OFL_PRIMITIVE_CPU_EXP_LOG_INL_H_
#else
#define OFL_PRIMITIVE_CPU_EXP_LOG_INL_H_
#endif

#include <limits>
#include <type_traits>

#include "primitive/cpu/highway.h"

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The polynomial of float with these coefficients, that of the highest power first. Without the
// pragma -O2 keeps a loop of more than 8, and puts the coefficients on the stack each time.
template <class D, size_t n>
HWY_INLINE hn::Vec<D> PolynomialOf(D d, const float (&c)[n], hn::Vec<D> x) {
  auto sum = hn::Set(d, c[0]);
#pragma GCC unroll 16
  for (size_t i = 1; i < n; ++i) sum = hn::MulAdd(sum, x, hn::Set(d, c[i]));
  return sum;
}

// exp(x) = 2^k p, with k an integer and p = exp(r), |r| <= ln(2) / 2. Adding a magic number (1.5
// times 2 to the mantissa's width) rounds x log2(e) to k and leaves k in the low bits. ln(2) is
// subtracted in two parts, the first so short that its product with k is exact. The polynomials
// are minimax with p(0) = p'(0) = 1, by Remez's algorithm: relative error 1.1e-7 and 3.7e-18. A
// `lift` is added to the low bits and not to k: with the exponent's bias they are the bits of 2^k.
template <class V>
struct ExpParts {
  V biased;  // k + lift + magic
  V k;
  V p;
};
template <class D, HWY_IF_LANE_SIZE(hn::TFromD<D>, 4)>
HWY_INLINE ExpParts<hn::Vec<D>> ReduceExp(D d, hn::Vec<D> x, float lift = 0) {
  const auto one = hn::Set(d, 1.0f);
  const auto magic = hn::Set(d, 0x1.8p23f + lift);
  const auto biased = hn::MulAdd(x, hn::Set(d, 1.44269504088896341f), magic);
  const auto k = hn::Sub(biased, magic);
  auto r = hn::NegMulAdd(k, hn::Set(d, 0.693359375f), x);
  r = hn::NegMulAdd(k, hn::Set(d, -2.12194440e-4f), r);
  auto p = hn::MulAdd(hn::Set(d, 0.008312520571053028f), r, hn::Set(d, 0.04189015552401543f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.16667114198207855f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.499992311000824f));
  p = hn::MulAdd(p, r, one);
  return {biased, k, hn::MulAdd(p, r, one)};
}
template <class D, HWY_IF_LANE_SIZE(hn::TFromD<D>, 8)>
HWY_INLINE ExpParts<hn::Vec<D>> ReduceExp(D d, hn::Vec<D> x, double lift = 0) {
  const auto one = hn::Set(d, 1.0);
  const auto magic = hn::Set(d, 0x1.8p52 + lift);
  const auto biased = hn::MulAdd(x, hn::Set(d, 1.44269504088896340736), magic);
  const auto k = hn::Sub(biased, magic);
  auto r = hn::NegMulAdd(k, hn::Set(d, 0x1.62e42fefa38p-1), x);
  r = hn::NegMulAdd(k, hn::Set(d, 0x1.ef35793c7673p-45), r);
  auto p = hn::MulAdd(hn::Set(d, 2.5000061602835666e-08), r, hn::Set(d, 2.763024837921144e-07));
  p = hn::MulAdd(p, r, hn::Set(d, 2.7557586373840165e-06));
  p = hn::MulAdd(p, r, hn::Set(d, 2.480149309890655e-05));
  p = hn::MulAdd(p, r, hn::Set(d, 0.00019841269506578688));
  p = hn::MulAdd(p, r, hn::Set(d, 0.0013888888943630114));
  p = hn::MulAdd(p, r, hn::Set(d, 0.008333333333494461));
  p = hn::MulAdd(p, r, hn::Set(d, 0.041666666666530155));
  p = hn::MulAdd(p, r, hn::Set(d, 0.16666666666666413));
  p = hn::MulAdd(p, r, hn::Set(d, 0.5000000000000011));
  p = hn::MulAdd(p, r, one);
  return {biased, k, hn::MulAdd(p, r, one)};
}

// What depends on the width of the compute type.
template <class C>
struct ExpLimits;
template <>
struct ExpLimits<float> {
  static constexpr int kMantissaBits = 23;
  static constexpr float kExponentBias = 127;
  static constexpr float kSmallestNormal = -87.0f;  // exp of anything above is a normal number
  static constexpr float kZero = -104.0f, kInfinity = 89.0f;  // exp is 0 below, infinite above
};
template <>
struct ExpLimits<double> {
  static constexpr int kMantissaBits = 52;
  static constexpr double kExponentBias = 1023;
  static constexpr double kSmallestNormal = -708.0;
  static constexpr double kZero = -746.0, kInfinity = 710.0;
};

// exp(x) for x <= 0 or NaN, where results below the normal range become 0: exp(0) is exactly 1,
// exp(-inf) exactly 0, a NaN stays NaN, whatever bits it has: p is one, and so is its product.
// Subnormals would cost microcode assists and no one sees them in a sum that holds a 1.
template <class D>
HWY_INLINE hn::Vec<D> ExpNonPositive(D d, hn::Vec<D> x) {
  using Limits = ExpLimits<hn::TFromD<D>>;
  const hn::RebindToUnsigned<D> du;
  const auto e = ReduceExp(d, x, Limits::kExponentBias);
  const auto power =
      hn::BitCast(d, hn::ShiftLeft<Limits::kMantissaBits>(hn::BitCast(du, e.biased)));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, Limits::kSmallestNormal)), hn::Mul(e.p, power));
}

// exp(x) for any x, subnormal results and infinities included: where a vector has such, 2^k is
// applied in two halves.
template <class D>
HWY_INLINE hn::Vec<D> ExpOf(D d, hn::Vec<D> x) {
  using C = hn::TFromD<D>;
  using Limits = ExpLimits<C>;
  constexpr int kBits = Limits::kMantissaBits;
  const hn::RebindToSigned<D> di;
  const hn::RebindToUnsigned<D> du;
  if (hn::AllTrue(d, hn::Le(hn::Abs(x), hn::Set(d, -Limits::kSmallestNormal)))) {
    const auto e = ReduceExp(d, x);
    const auto k = hn::ShiftLeft<kBits>(hn::BitCast(du, e.biased));
    return hn::BitCast(d, hn::Add(hn::BitCast(du, e.p), k));
  }
  const auto clamped =
      hn::Min(hn::Max(x, hn::Set(d, Limits::kZero)), hn::Set(d, Limits::kInfinity));
  const auto e = ReduceExp(d, clamped);
  const auto k = hn::Sub(hn::BitCast(di, e.biased),
                         hn::BitCast(di, hn::Set(d, kBits == 23 ? C(0x1.8p23) : C(0x1.8p52))));
  const auto one = hn::BitCast(di, hn::Set(d, C(1)));
  // Half of k without an arithmetic shift of 64-bit lanes, which AVX2 lacks: |k| < 2048.
  const auto bias = hn::Set(di, 2048);
  const auto k1 = hn::Sub(hn::BitCast(di, hn::ShiftRight<1>(hn::BitCast(du, hn::Add(k, bias)))),
                          hn::Set(di, 1024));
  const auto k2 = hn::Sub(k, k1);
  const auto scale1 = hn::BitCast(d, hn::Add(one, hn::ShiftLeft<kBits>(k1)));
  const auto scale2 = hn::BitCast(d, hn::Add(one, hn::ShiftLeft<kBits>(k2)));
  const auto y = hn::Mul(hn::Mul(e.p, scale1), scale2);
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

// log(x) = k ln(2) + log(1 + f) for a normal float x = 2^k (1 + f), |f| <= 1/3. ln(2) is in two
// parts as in ReduceExp. log(1 + f) is f - f^2 / 2 + f^3 times a polynomial, fitted by reweighted
// least squares: relative error 5e-9.
template <class D>
HWY_INLINE hn::Vec<D> LogOfNormal(D d, hn::Vec<D> x) {
  constexpr float kFit[] = {-0.128916026f, 0.139844671f, -0.121842779f, 0.140058622f,
                            -0.166804865f, 0.200104058f, -0.249997973f, 0.333332151f};
  const hn::RebindToSigned<D> di;
  const auto bits = hn::BitCast(di, x);
  const auto two_thirds = hn::BitCast(di, hn::Set(d, 2.0f / 3));
  const auto k = hn::ShiftRight<23>(hn::Sub(bits, two_thirds));
  const auto f = hn::Sub(hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(k))), hn::Set(d, 1.0f));
  const auto power = hn::ConvertTo(d, k), square = hn::Mul(f, f);
  auto rest = hn::MulAdd(PolynomialOf(d, kFit, f), f, hn::Set(d, -0.5f));
  rest = hn::MulAdd(rest, square, hn::Mul(power, hn::Set(d, -2.12194440e-4f)));
  return hn::MulAdd(power, hn::Set(d, 0.693359375f), hn::Add(f, rest));
}

// log(x) with the corner cases of IEEE 754: -inf at 0, NaN below, infinity at infinity.
template <class D>
HWY_INLINE hn::Vec<D> LogOf(D d, hn::Vec<D> x) {
  using C = hn::TFromD<D>;
  const auto inf = hn::Set(d, std::numeric_limits<C>::infinity());
  const auto zero = hn::Zero(d);
  hn::Vec<D> y;
  if constexpr (sizeof(C) == 4) {
    const auto least = hn::Set(d, std::numeric_limits<float>::min());
    y = LogOfNormal(d, x);
    if (hn::AllTrue(d, hn::And(hn::Ge(x, least), hn::Lt(x, inf)))) return y;
    const auto subnormal = hn::Lt(x, least);
    const auto lifted = LogOfNormal(d, hn::Mul(x, hn::Set(d, 0x1p24f)));
    y = hn::IfThenElse(subnormal, hn::Add(lifted, hn::Set(d, -16.6355323f)), y);
  } else {
    y = hn::Log(d, x);
  }
  y = hn::IfThenElse(hn::Eq(x, inf), inf, y);
  y = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(inf), y);
  const auto nan = hn::Set(d, std::numeric_limits<C>::quiet_NaN());
  return hn::IfThenElse(hn::Ge(x, zero), y, nan);
}

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#endif  // OFL_PRIMITIVE_CPU_EXP_LOG_INL_H_
