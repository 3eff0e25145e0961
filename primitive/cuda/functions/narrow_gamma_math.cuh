// SPDX-License-Identifier: Apache-2.0
//
// Log gamma and its derivatives for results of 16 bits (narrow_math.cuh): within 2^-14 of the
// result, or 2^-20 of the terms that cancel where it is near 0.
#pragma once

#include "primitive/cuda/functions/float_gamma_math.cuh"
#include "primitive/cuda/functions/narrow_math.cuh"

namespace oneflow_lite {
namespace cuda {
namespace narrow {

// a less the integer next to it, 0 <= a. 16 bits are an integer from 2^11 on.
OFL_HOST_DEVICE float Fraction(float a) {
  const float near = Smaller(a, 4096.0f);
  return near - (near + fast::kRounder - fast::kRounder);
}
using fast::SincShare;

// Up to 2.75 a polynomial times (z - 1) (z - 2), by the recurrence below 3/4; Stirling's series
// beyond. Below 0 by reflection.
OFL_HOST_DEVICE float Lgamma(float x) {
  const float a = fabsf(x), log = Log2Down(a) * kLn2;
  const bool small = a < 0.75f;
  const float z = small ? a + 1.0f : a, d = z - 1.5f;
  float sum = Fma(-0.00068176986f, d, 0.00272834743f);
  sum = Fma(sum, d, -0.00450699357f);
  sum = Fma(sum, d, 0.00543345604f);
  sum = Fma(sum, d, -0.0087409569f);
  sum = Fma(sum, d, 0.016671164f);
  sum = Fma(sum, d, -0.0314358398f);
  sum = Fma(sum, d, 0.062934123f);
  sum = Fma(sum, d, -0.145953283f);
  sum = Fma(sum, d, 0.483128458f);
  const float near = (z - 1.0f) * (z - 2.0f) * sum - (small ? log : 0.0f);
  const float over = Reciprocal(a), u = over * over;
  const float tail = over * Fma(Fma(7.93650794e-4f, u, -2.77777778e-3f), u, 8.33333333e-2f);
  const float far = Fma(a - 0.5f, log - 1.0f, tail + 0.418938533f);
  const float above = a < 2.75f ? near : far, r = fabsf(Fraction(a));
  const float reflected = -(Log2Down(r * SincShare(r)) * kLn2 + log) - above;
  return x < 0.0f ? (r == 0.0f ? INFINITY : reflected) : above;
}

// Below 16 by the recurrence of six steps, of which pairs have a common denominator; by reflection
// below 0.
OFL_HOST_DEVICE float Digamma(float x) {
  const bool below = x < 0.0f;
  const float z = below ? 1.0f - x : x;
  const float q = z * (z + 5.0f), q4 = q + 4.0f, q6 = q + 6.0f;
  const float steps =
      Fma(2.0f, z, 5.0f) * Fma(Fma(3.0f, q, 20.0f), q, 24.0f) * Reciprocal(q * q4 * q6);
  const bool small = z < 16.0f;
  const float w = small ? z + 6.0f : z, over = Reciprocal(w), u = over * over;
  const float rest = Fma(u, Fma(u, 1.0f / 120, -1.0f / 12), over * -0.5f);
  const float above = Fma(Log2(w), kLn2, rest) - (small ? steps : 0.0f);
  // pi / tan(pi x)
  const float r = -Fraction(fabsf(x)), v = r * r;  // of x < 0
  float cosine = Fma(0.220080912f, v, -1.33209395f);
  cosine = Fma(cosine, v, 4.05845118f);
  cosine = Fma(cosine, v, -4.93479538f);
  cosine = Fma(cosine, v, 1.0f);
  constexpr float kRaise = 16777216.0f;
  const float share = cosine * kRaise * Reciprocal(r * kRaise * SincShare(r));
  const float reflected = r == 0.0f ? NAN : above - share;
  return below ? reflected : x == 0.0f ? copysignf(INFINITY, -x) : above;
}

// As Digamma; steps k and 5 - k have a common denominator.
OFL_HOST_DEVICE float Trigamma(float x) {
  const bool below = x < 0.0f;
  const float z = below ? 1.0f - x : x;
  const bool small = z < 16.0f;
  const float q = z * (z + 5.0f), q4 = q + 4.0f, q6 = q + 6.0f;
  const float a = q4 * q6, b = q * q6, c = q * q4, over = Reciprocal(q * a);
  const float twice = q + q;
  float sum = a * a * (twice + 25.0f);
  sum = Fma(b * b, twice + 17.0f, sum);
  sum = Fma(c * c, twice + 13.0f, sum);
  const float steps = over * over * sum;
  const float above = fast::TrigammaFar(small ? z + 6.0f : z) + (small ? steps : 0.0f);
  const float r = Fraction(fabsf(x)) + (x - x), share = Reciprocal(r * SincShare(r));
  return below ? Fma(share, share, -above) : above;
}

}  // namespace narrow
}  // namespace cuda
}  // namespace oneflow_lite
