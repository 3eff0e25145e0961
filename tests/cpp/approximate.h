// SPDX-License-Identifier: Apache-2.0
//
// The hardware's approximations as the host has them in tests: rounded up or down at random. Comes
// before the headers of functions that ask for OFL_APPROXIMATE.
#pragma once

#include <cmath>
#include <limits>
#include <random>

// One of the two floats next to x: the documented error of the approximations is 1 ulp.
inline float Approximate(double x) {
  static std::mt19937 rng(7);
  const auto nearest = static_cast<float>(x);
  if (nearest == x || rng() % 2 == 0) return nearest;
  const float inf = std::numeric_limits<float>::infinity();
  return std::nextafter(nearest, nearest < x ? inf : -inf);
}
#define OFL_APPROXIMATE(exact) Approximate(exact)
