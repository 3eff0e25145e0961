// SPDX-License-Identifier: Apache-2.0
//
// Hurwitz's zeta function and the higher derivatives of log gamma, in double, for the host and for
// kernels (C++17).
#pragma once

#include "primitive/gamma_math.h"

namespace oneflow_lite {

// sum over k >= 0 of (q + k)^-s, for s > 1 and q > 0: the first terms, and Euler's and
// Maclaurin's formula for those after (Abramowitz and Stegun, 23.1.30).
OFL_GAMMA_FUNCTION double ZetaOfPositive(double s, double q) {
  // B_2k / (2k)!
  const double factors[] = {
      8.333333333333333e-02,   -1.388888888888889e-03,  3.306878306878307e-05,
      -8.267195767195768e-07,  2.0876756987868099e-08,  -5.284190138687493e-10,
      1.3382536530684679e-11,  -3.3896802963225829e-13, 8.5860620562778446e-15,
      -2.1748686985580619e-16, 5.5090028283602295e-18,  -1.3954464685812523e-19};
  double sum = 0;
  for (const double far = 10 + 0.5 * s; q < far; q += 1) {
    const double term = pow(q, -s);
    sum += term;
    if (term <= 1e-17 * sum) return sum;
  }
  double power = pow(q, -s);
  sum += power * (q / (s - 1) + 0.5);
  double rising = s;  // s (s + 1) ... (s + 2 k - 2)
  power /= q;
  for (int k = 0; k < 12; ++k) {
    const double term = factors[k] * rising * power;
    sum += term;
    if (fabs(term) <= 1e-17 * fabs(sum)) break;
    rising *= (s + 2 * k + 1) * (s + 2 * k + 2);
    power /= q * q;
  }
  return sum;
}

// Also of q < 0, where s is an integer: the sum over all k less the one over k < 0. Infinite at the
// poles, NaN where s < 1.
OFL_GAMMA_FUNCTION double Zeta(double s, double q) {
  if (!(s == s && q == q)) return s + q;
  if (s == 1) return INFINITY;
  if (s < 1) return NAN;
  if (q > 0) return s == INFINITY ? (q < 1 ? INFINITY : q > 1 ? 0.0 : 1.0) : ZetaOfPositive(s, q);
  const double share = q - floor(q);
  if (share == 0) return INFINITY;
  if (s != floor(s) || q == -INFINITY) return NAN;
  const double sign = fmod(s, 2.0) == 0 ? 1 : -1;
  const double mirrored = ZetaOfPositive(s, 1 - share) - ZetaOfPositive(s, 1 - q);
  return ZetaOfPositive(s, share) + sign * mirrored;
}

// The derivative of order n + 1 of log gamma.
OFL_GAMMA_FUNCTION double Polygamma(int n, double x) {
  if (n == 0) return Digamma(x);
  if (n == 1) return Trigamma(x);
  const double size = tgamma(n + 1.0) * Zeta(n + 1.0, x);
  return n % 2 == 0 ? -size : size;
}

// The slope of log gamma of p dims: the sum of digamma at x, x - 1/2 ...
OFL_GAMMA_FUNCTION double MultiDigamma(double x, int p) {
  double sum = 0;
  for (int i = 0; i < p; ++i) sum += Digamma(x - 0.5 * i);
  return sum;
}

}  // namespace oneflow_lite
