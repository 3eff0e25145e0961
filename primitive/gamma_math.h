// SPDX-License-Identifier: Apache-2.0
//
// The first and second derivative of log gamma, for the host and for kernels (C++17). By the
// recurrence to x >= 10, where the asymptotic expansion has the digits of double, and by reflection
// for negative x.
#pragma once

#include <cmath>

#ifdef __CUDACC__
#define OFL_GAMMA_FUNCTION __host__ __device__ inline
#else
#define OFL_GAMMA_FUNCTION inline
#endif

namespace oneflow_lite {

// x > 0.
template <class C>
OFL_GAMMA_FUNCTION C DigammaOfPositive(C x) {
  C below = 0;
  for (; x < C(10); x += C(1)) below += C(1) / x;
  const C r = C(1) / (x * x);
  C sum = C(-1.0 / 12);
  sum = sum * r + C(691.0 / 32760);
  sum = sum * r + C(-1.0 / 132);
  sum = sum * r + C(1.0 / 240);
  sum = sum * r + C(-1.0 / 252);
  sum = sum * r + C(1.0 / 120);
  sum = sum * r + C(-1.0 / 12);
  return log(x) - C(0.5) / x + sum * r - below;
}

// -inf at 0, inf at -0, NaN at negative integers and -inf.
template <class C>
OFL_GAMMA_FUNCTION C Digamma(C x) {
  if (x > C(0)) return x > C(1e30) ? log(x) : DigammaOfPositive(x);
  if (x == C(0)) return C(-1) / x;
  const double pi = 3.14159265358979323846, wide = static_cast<double>(x);
  const double rest = wide - rint(wide);
  if (rest == 0) return static_cast<C>((wide - wide) / (wide - wide));
  return static_cast<C>(DigammaOfPositive(1 - wide) - pi / tan(pi * rest));
}

// x > 0.
template <class C>
OFL_GAMMA_FUNCTION C TrigammaOfPositive(C x) {
  C below = 0;
  for (; x < C(10); x += C(1)) below += C(1) / (x * x);
  const C r = C(1) / (x * x);
  C sum = C(7.0 / 6);
  sum = sum * r + C(-691.0 / 2730);
  sum = sum * r + C(5.0 / 66);
  sum = sum * r + C(-1.0 / 30);
  sum = sum * r + C(1.0 / 42);
  sum = sum * r + C(-1.0 / 30);
  sum = sum * r + C(1.0 / 6);
  return below + (C(1) + C(0.5) / x + sum * r) / x;
}

// inf at 0 and at negative integers.
template <class C>
OFL_GAMMA_FUNCTION C Trigamma(C x) {
  if (x > C(0)) return x > C(1e15) ? C(1) / x : TrigammaOfPositive(x);
  const double pi = 3.14159265358979323846, wide = static_cast<double>(x);
  const double scaled = pi / sin(pi * (wide - rint(wide)));
  return static_cast<C>(scaled * scaled - TrigammaOfPositive(1 - wide));
}

}  // namespace oneflow_lite
