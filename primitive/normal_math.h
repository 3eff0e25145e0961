// SPDX-License-Identifier: Apache-2.0
//
// The normal distribution's functions and what they are made of, in double, for the host and for
// kernels (C++17): float results are rounded once.
#pragma once

#include <cmath>

#ifdef __CUDACC__
#define OFL_NORMAL_FUNCTION __host__ __device__ inline
#else
#define OFL_NORMAL_FUNCTION inline
#endif

namespace oneflow_lite {

// exp(x^2) erfc(x). The square's rounding error, which exp would enlarge, is made good; far out,
// where erfc vanishes, by the asymptotic expansion.
OFL_NORMAL_FUNCTION double Erfcx(double x) {
  if (x >= 12) {
    if (x > 1e15) return 0.56418958354775628695 / x;
    const double r = 0.5 / (x * x);
    double sum = 1;
    for (int k = 12; k > 0; --k) sum = 1 - (2 * k - 1) * r * sum;
    return 0.56418958354775628695 * sum / x;
  }
  if (x < -26.8) return exp(x * x);  // infinite
  const double square = x * x, rest = fma(x, x, -square);
  const double power = exp(square), scale = power * rest + power;
  return scale * erfc(x);
}

// The slope of Erfcx for x >= 12, where 2 (x Erfcx(x) - 1 / sqrt(pi)) would lose its digits: that
// expansion without its first term.
OFL_NORMAL_FUNCTION double FarErfcxSlope(double x) {
  const double r = 0.5 / (x * x);
  double sum = 1;
  for (int k = 12; k > 1; --k) sum = 1 - (2 * k - 1) * r * sum;
  return -1.12837916709551257390 * r * sum;
}

// P(N <= x) of a standard normal N. What x / sqrt(2) loses by rounding is made good by the slope.
OFL_NORMAL_FUNCTION double Ndtr(double x) {
  constexpr double kRoot = 0.70710678118654752440, kRest = -4.8336466567264567e-17;
  const double t = -x * kRoot;
  const double off = fma(-x, kRoot, -t) - x * kRest;
  const double y = erfc(t);
  if (!(fabs(t) < 27)) return 0.5 * y;
  return 0.5 * (y - off * 1.12837916709551257390 * exp(-t * t));
}

// Its logarithm, for small ones too.
OFL_NORMAL_FUNCTION double LogNdtr(double x) {
  if (x < -1) return log(0.5 * Erfcx(-x * 0.70710678118654752440)) - 0.5 * x * x;
  return log1p(-Ndtr(-x));
}

// The slope of LogNdtr: the density over Ndtr.
OFL_NORMAL_FUNCTION double LogNdtrSlope(double x) {
  return 0.79788456080286535588 / Erfcx(-x * 0.70710678118654752440);
}

namespace normal {
// (a[0] + a[1] x + ...) / (b[0] + b[1] x + ...), eight coefficients each.
OFL_NORMAL_FUNCTION double Ratio(const double* a, const double* b, double x) {
  double above = a[7], below = b[7];
  for (int k = 6; k >= 0; --k) {
    above = above * x + a[k];
    below = below * x + b[k];
  }
  return above / below;
}
}  // namespace normal

// Where Ndtr is p: infinite at 0 and 1, NaN beyond. Wichura's algorithm AS 241, "The percentage
// points of the normal distribution" (Applied Statistics 37, 1988).
OFL_NORMAL_FUNCTION double Ndtri(double p) {
  const double a[] = {3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
                      1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
                      3.3430575583588128105e4, 2.5090809287301226727e3};
  const double b[] = {1.0,
                      4.2313330701600911252e1,
                      6.8718700749205790830e2,
                      5.3941960214247511077e3,
                      2.1213794301586595867e4,
                      3.9307895800092710610e4,
                      2.8729085735721942674e4,
                      5.2264952788528545610e3};
  const double c[] = {1.42343711074968357734e0,  4.63033784615654529590e0,
                      5.76949722146069140550e0,  3.64784832476320460504e0,
                      1.27045825245236838258e0,  2.41780725177450611770e-1,
                      2.27238449892691845833e-2, 7.74545014278341407640e-4};
  const double d[] = {1.0,
                      2.05319162663775882187e0,
                      1.67638483018380384940e0,
                      6.89767334985100004550e-1,
                      1.48103976427480074590e-1,
                      1.51986665636164571966e-2,
                      5.47593808499534494600e-4,
                      1.05075007164441684324e-9};
  const double e[] = {6.65790464350110377720e0,  5.46378491116411436990e0,
                      1.78482653991729133580e0,  2.96560571828504891230e-1,
                      2.65321895265761230930e-2, 1.24266094738807843860e-3,
                      2.71155556874348757815e-5, 2.01033439929228813265e-7};
  const double f[] = {1.0,
                      5.99832206555887937690e-1,
                      1.36929880922735805310e-1,
                      1.48753612908506148525e-2,
                      7.86869131145613259100e-4,
                      1.84631831751005468180e-5,
                      1.42151175831644588870e-7,
                      2.04426310338993978564e-15};
  if (!(p > 0 && p < 1)) {
    if (p == 0) return -INFINITY;
    return p == 1 ? INFINITY : NAN;
  }
  const double q = p - 0.5;
  if (fabs(q) <= 0.425) return q * normal::Ratio(a, b, 0.180625 - q * q);
  const double r = sqrt(-log(q < 0 ? p : 1 - p));
  const double y = r <= 5 ? normal::Ratio(c, d, r - 1.6) : normal::Ratio(e, f, r - 5);
  return q < 0 ? -y : y;
}

// -x log(x): 0 at 0, -inf below.
OFL_NORMAL_FUNCTION double Entr(double x) {
  if (x > 0) return -x * log(x);
  return x == 0 ? 0.0 : x < 0 ? -INFINITY : x;
}

}  // namespace oneflow_lite
