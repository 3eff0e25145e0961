// SPDX-License-Identifier: Apache-2.0
//
// gelu by tanh, x (1 + tanh(v / 2)) / 2 = x / (1 + e^-v) of v = 2 sqrt(2 / pi) (x + 0.044715 x^3),
// and its slope. v is up to 104, in double 745: rounded once, it would be off in e^v by as many
// units.
#pragma once

#include <cmath>

#include "primitive/cuda/functions/float_math.cuh"

namespace oneflow_lite {
namespace cuda {

// Of a number x: e^-|v| in two factors, so that results below the normal numbers are rounded once.
template <class T>
struct GeluTanhExp {
  T near;     // x, but from where on to the left gelu is 0
  T size;     // |x|, up to there
  T e, back;  // e^-|v| = e back
  T over;     // 1 / (1 + e^-|v|)
};

// v log2(e) is the sum of two products, from which whole numbers are taken before they are rounded.
OFL_HOST_DEVICE GeluTanhExp<float> GeluTanhExpOf(float x) {
  constexpr float kLinear = 2.30220819f, kLinearRest = 1.29484024e-8f;
  constexpr float kCubic = 0.102943242f, kCubicRest = -2.01619854e-9f;
  constexpr float kFar = 11.5f, kBias = fast::kRounder + 127 + 64;
  const float a = fast::Smaller(fabsf(x), kFar);
  const float square = fast::Product(a, a), cube = fast::Product(square, a);
  const float square_rest = fast::Fma(a, a, -square);
  const float cube_rest = fast::Fma(square_rest, a, fast::Fma(square, a, -cube));
  const float k = fast::Fma(a, -kLinear, kBias), j = k - kBias;
  const float part = fast::Fma(a, -kLinear, -j);
  const float more = fast::Fma(cube, -kCubic, part) + fast::kRounder, i = more - fast::kRounder;
  const float rest = fast::Fma(a, fast::Fma(square, kCubicRest, kLinearRest), cube_rest * kCubic);
  const float f = part + fast::Fma(cube, -kCubic, -i) - rest;
  const float power = fast::AsFloat((fast::AsBits(k) + fast::AsBits(more)) << 23);
  const float e = fast::Exp2Exactly(f) * power;
  return {fast::Larger(x, -kFar), a, e, fast::kUnscale, fast::OverOneMore(e)};
}
// The steps are those of primitive/cpu/gelu-inl.h: v is a number and what it lacks.
OFL_HOST_DEVICE GeluTanhExp<double> GeluTanhExpOf(double x) {
  constexpr double kLinear = 1.5957691216057308, kLinearRest = -9.96930880911092e-17;
  constexpr double kCubic = 0.07135481627260025, kCubicRest = -6.175149918155315e-19;
  constexpr double kFar = 21.7;
  const double size = fabs(x), a = size > kFar ? kFar : size;
  const double square = fast::Product(a, a), bend = fast::Product(kCubic, square);
  double rest = fma(kCubic, fma(a, a, -square), fma(kCubic, square, -bend));
  rest = fma(kCubicRest, square, rest) + kLinearRest;
  const double factor = kLinear + bend, of_bend = factor - kLinear;
  rest += (kLinear - (factor - of_bend)) + (bend - of_bend);
  const double v = fast::Product(a, factor);
  rest = fma(a, rest, fma(a, factor, -v));
  const bool far = v > 64;  // then e^64 is taken out, and 1 + e^-v is 1
  const double rough = exp(far ? 64 - v : -v), e = fma(-rough, rest, rough);
  const double back = far ? 1.603810890548638e-28 : 1;
  return {x < -kFar ? -kFar : x, a, e, back, 1 / fma(e, back, 1.0)};
}

// Within 4 ulp.
template <class T>
OFL_HOST_DEVICE T GeluTanhOf(T x) {
  const GeluTanhExp<T> at = GeluTanhExpOf(x);
  const T share = at.near * at.over;
  return x < T(0) ? share * at.e * at.back : share;
}
// s + x s (1 - s) times the slope of v, s = 1 / (1 + e^-v); within some ulp of the sum's terms.
template <class T>
OFL_HOST_DEVICE T GeluTanhSlopeOf(T x) {
  const GeluTanhExp<T> at = GeluTanhExpOf(x);
  const T share = at.e * at.over;
  const T bend = T(0.21406444881780075) * at.size * at.size + T(1.5957691216057308);
  const T side = at.size * bend * (share * at.over);
  return x < T(0) ? (share - side) * at.back : at.over + side * at.back;
}

}  // namespace cuda
}  // namespace oneflow_lite
