// SPDX-License-Identifier: Apache-2.0
//
// Special functions of one number that the C library has not: modified Bessel functions of the
// first kind and the inverse of erf. Computed in double, for float rounded once.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>

namespace oneflow_lite {

// Chebyshev coefficients, highest first, computed with 40 digits at the zeros of T_60: of
// exp(-x) I0(x) and exp(-x) I1(x) / x for x in [0, 8], in t = x / 4 - 1, and of exp(-x) sqrt(x)
// I0(x) and the same of I1 for x beyond, in t = 16 / x - 1. What is left out is below 1e-18.
// clang-format off
constexpr double kI0Near[] = {
    -4.4153416464793395e-18, 3.3307945188222384e-17, -2.431279846547955e-16,
    1.715391285555133e-15, -1.1685332877993451e-14, 7.676185498604936e-14,
    -4.856446783111929e-13, 2.95505266312964e-12, -1.726826291441556e-11, 9.675809035373237e-11,
    -5.189795601635263e-10, 2.6598237246823866e-09, -1.300025009986248e-08,
    6.046995022541919e-08, -2.670793853940612e-07, 1.1173875391201037e-06,
    -4.4167383584587505e-06, 1.6448448070728896e-05, -5.754195010082104e-05,
    0.00018850288509584165, -0.0005763755745385824, 0.0016394756169413357,
    -0.004324309995050576, 0.010546460394594998, -0.02373741480589947, 0.04930528423967071,
    -0.09490109704804764, 0.17162090152220877, -0.3046826723431984, 0.33839763720473803};
constexpr double kI0Far[] = {
    9.921475412173699e-19, -7.233180487874754e-18, -4.830504485944182e-18, 4.46562142029676e-17,
    3.461222867697461e-17, -2.8276239805165836e-16, -3.425485619677219e-16,
    1.7725601330565263e-15, 3.8116806693526224e-15, -9.554846698828307e-15,
    -4.150569347287222e-14, 1.54008621752141e-14, 3.8527783827421426e-13, 7.180124451383666e-13,
    -1.7941785315068062e-12, -1.3215811840447713e-11, -3.1499165279632416e-11,
    1.1889147107846439e-11, 4.94060238822497e-10, 3.3962320257083865e-09, 2.266668990498178e-08,
    2.0489185894690638e-07, 2.8913705208347567e-06, 6.889758346916825e-05,
    0.0033691164782556943, 0.4022452055070544};
constexpr double kI1Near[] = {
    -3.541581772542136e-19, 2.7779141127610464e-18, -2.111421214358166e-17,
    1.5536319577362005e-16, -1.1055969477353862e-15, 7.600684294735408e-15,
    -5.042185504727912e-14, 3.223793365945575e-13, -1.9839743977649436e-12,
    1.1736186298890901e-11, -6.663489723502027e-11, 3.625590281552117e-10,
    -1.8872497517228294e-09, 9.381537386495773e-09, -4.445059128796328e-08,
    2.0032947535521353e-07, -8.568720264695455e-07, 3.4702513081376785e-06,
    -1.3273163656039436e-05, 4.781565107550054e-05, -0.00016176081582589674,
    0.0005122859561685758, -0.0015135724506312532, 0.004156422944312888, -0.010564084894626197,
    0.024726449030626516, -0.05294598120809499, 0.1026436586898471, -0.17641651835783406,
    0.12629359322181682};
constexpr double kI1Far[] = {
    -9.314178867326884e-19, 7.517296310842105e-18, 4.414348323071708e-18,
    -4.6503053684893586e-17, -3.209525921993424e-17, 2.96262899764595e-16,
    3.3082023109209285e-16, -1.8803547755107825e-15, -3.8144030724370075e-15,
    1.0420276984128802e-14, 4.272440016711951e-14, -2.1015418427726643e-14,
    -4.0835511110921974e-13, -7.198551776245908e-13, 2.0356285441470896e-12,
    1.4125807436613782e-11, 3.2526035830154884e-11, -1.8974958123505413e-11,
    -5.589743462196584e-10, -3.835380385964237e-09, -2.6314688468895196e-08,
    -2.512236237870209e-07, -3.882564808877691e-06, -0.00011058893876262371,
    -0.009761097491361469, 0.38928811750914005};
// clang-format on

// The sum of coefficients[n - 1 - k] T_k(t), by Clenshaw's recurrence; the first `skip`, too small
// for float, are left out.
template <size_t n>
double ChebyshevSum(const double (&coefficients)[n], double t, size_t skip) {
  double b0 = 0, b1 = 0;
  for (size_t k = skip; k + 1 < n; ++k) {
    const double b2 = b1;
    b1 = b0;
    b0 = 2 * t * b1 - b2 + coefficients[k];
  }
  return t * b0 - b1 + coefficients[n - 1];
}

// exp(x) as a factor, in two halves: it may overflow before the product does.
inline double TimesExp(double v, double x) {
  const double half = std::exp(x / 2);
  return v * half * half;
}

template <class C>
C BesselI0(C value) {
  const double x = std::fabs(static_cast<double>(value));
  constexpr bool kShort = sizeof(C) == 4;
  if (x <= 8) return static_cast<C>(std::exp(x) * ChebyshevSum(kI0Near, x / 4 - 1, kShort * 11));
  if (x == std::numeric_limits<double>::infinity()) return static_cast<C>(x);
  const double sum = ChebyshevSum(kI0Far, 16 / x - 1, kShort * 17);
  return static_cast<C>(TimesExp(sum / std::sqrt(x), x));
}

template <class C>
C BesselI1(C value) {
  const double x = std::fabs(static_cast<double>(value));
  constexpr bool kShort = sizeof(C) == 4;
  double y = x;
  if (x <= 8) {
    y = std::exp(x) * x * ChebyshevSum(kI1Near, x / 4 - 1, kShort * 11);
  } else if (x < std::numeric_limits<double>::infinity()) {
    y = TimesExp(ChebyshevSum(kI1Far, 16 / x - 1, kShort * 17) / std::sqrt(x), x);
  }
  return static_cast<C>(std::copysign(y, static_cast<double>(value)));
}

// exp(-|x|) times I0 and I1.
inline double ScaledBesselI0(double value) {
  const double x = std::fabs(value);
  if (x <= 8) return ChebyshevSum(kI0Near, x / 4 - 1, 0);
  return ChebyshevSum(kI0Far, 16 / x - 1, 0) / std::sqrt(x);
}
inline double ScaledBesselI1(double value) {
  const double x = std::fabs(value);
  const double y = x <= 8 ? x * ChebyshevSum(kI1Near, x / 4 - 1, 0)
                          : ChebyshevSum(kI1Far, 16 / x - 1, 0) / std::sqrt(x);
  return std::copysign(y, value);
}

// The slopes of those, and of I1.
inline double SlopeOfScaledI0(double x) {
  const double sign = (x > 0) - (x < 0);
  return ScaledBesselI1(x) - sign * ScaledBesselI0(x);
}
inline double SlopeOfScaledI1(double x) {
  if (std::fabs(x) < 1e-8) return 0.5;
  return ScaledBesselI0(x) - ScaledBesselI1(x) * (std::copysign(1.0, x) + 1 / x);
}
inline double SlopeOfI1(double x) {
  if (std::fabs(x) < 1e-8) return 0.5;
  const double i0 = BesselI0(x);
  return std::isinf(i0) ? i0 : i0 - BesselI1(x) / x;
}

// Where erf is x, for 0 < x < 1 and z = 1 - x, in the digits of float: by the polynomials of Giles,
// "Approximating the erfinv function" (2012), and beyond them by the first terms of the asymptotic
// expansion.
inline double RoughErfinv(double x, double z) {
  constexpr double kCentre[] = {2.81022636e-08,  3.43273939e-07, -3.5233877e-06,
                                -4.39150654e-06, 0.00021858087,  -0.00125372503,
                                -0.00417768164,  0.246640727,    1.50140941};
  constexpr double kTail[] = {-0.000200214257, 0.000100950558, 0.00134934322,
                              -0.00367342844,  0.00573950773,  -0.0076224613,
                              0.00943887047,   1.00167406,     2.83297682};
  const double w = -std::log(z * (1 + x));
  if (w >= 16) {
    const double u = -std::log(z);
    return std::sqrt(u - 0.5 * std::log(3.14159265358979323846 * u));
  }
  const double t = w < 5 ? w - 2.5 : std::sqrt(w) - 3;
  double sum = 0;
  for (const double c : w < 5 ? kCentre : kTail) sum = sum * t + c;
  return sum * x;
}

// Where erf is x: infinite at 1 and -1, NaN beyond. Halley's steps, each of which triples the
// digits.
template <class C>
C Erfinv(C value) {
  const double x = std::fabs(static_cast<double>(value)), z = 1 - x;
  if (!(x > 0 && x < 1)) {
    if (x == 0) return value;
    return x == 1 ? std::copysign(std::numeric_limits<C>::infinity(), value)
                  : std::numeric_limits<C>::quiet_NaN();
  }
  double y = RoughErfinv(x, z);
  for (int step = z > 1e-7 ? 1 : 3; step > 0; --step) {
    const double off = x < 0.5 ? std::erf(y) - x : z - std::erfc(y);
    const double u = off * 0.88622692545275801365 * std::exp(y * y);
    y -= u / (1 + y * u);
  }
  return static_cast<C>(std::copysign(y, static_cast<double>(value)));
}

}  // namespace oneflow_lite
