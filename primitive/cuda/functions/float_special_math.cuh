// SPDX-License-Identifier: Apache-2.0
//
// Bessel functions in float (float_math.cuh).
#pragma once

#include "primitive/cuda/functions/float_math.cuh"

namespace oneflow_lite {
namespace cuda {
namespace fast {

// e^-|x| times the Bessel functions of order 0 and 1: up to |x| = 7 polynomials of x^2, beyond of
// 1 / |x|.
OFL_HOST_DEVICE float I0e(float x) {
  const float a = fabsf(x), root = ReciprocalRoot(a), t = root * root, u = a * a;
  float far = Fma(0.497588068f, t, -0.0470668338f);
  far = Fma(far, t, 0.03727917f);
  far = Fma(far, t, 0.0277502593f);
  far = Fma(far, t, 0.0498717688f);
  far = root * Fma(far, t, 0.398942262f);
  float near = Fma(4.94009666e-17f, u, 7.39221154e-15f);
  near = Fma(near, u, 2.50390377e-12f);
  near = Fma(near, u, 4.67982542e-10f);
  near = Fma(near, u, 6.78685836e-08f);
  near = Fma(near, u, 6.7811593e-06f);
  near = Fma(near, u, 0.000434030662f);
  near = Fma(near, u, 0.0156249925f);
  near = Fma(near, u, 0.25f);
  near = Fma(near, u, 1.0f) * expf(-a);
  return a < 7.0f ? near : far;
}
OFL_HOST_DEVICE float I1e(float x) {
  const float a = fabsf(x), root = ReciprocalRoot(a), t = root * root, u = a * a;
  float far = Fma(-0.579775095f, t, 0.0484871753f);
  far = Fma(far, t, -0.0502603091f);
  far = Fma(far, t, -0.0464000329f);
  far = Fma(far, t, -0.149608061f);
  far = copysignf(root * Fma(far, t, 0.398942292f), x);
  float near = Fma(8.99952495e-16f, u, 1.1674586e-13f);
  near = Fma(near, u, 3.5135235e-11f);
  near = Fma(near, u, 5.61395819e-09f);
  near = Fma(near, u, 6.78697972e-07f);
  near = Fma(near, u, 5.42494454e-05f);
  near = Fma(near, u, 0.00260418118f);
  near = Fma(near, u, 0.0624999814f);
  near = x * (Fma(near, u, 0.5f) * expf(-a));
  return a < 7.0f ? near : far;
}

}  // namespace fast
}  // namespace cuda
}  // namespace oneflow_lite
