// SPDX-License-Identifier: Apache-2.0
//
// Bessel functions and their slopes for results of 16 bits (narrow_math.cuh). e^-|x| times them are
// polynomials up to |x| = 4, and beyond polynomials of 1 / |x|.
#pragma once

#include "primitive/cuda/functions/narrow_math.cuh"

namespace oneflow_lite {
namespace cuda {
namespace narrow {

OFL_HOST_DEVICE float I0e(float x) {
  const float a = fabsf(x), root = fast::ReciprocalRoot(a), t = root * root;
  float far = Fma(0.0906538963f, t, 0.016348483f);
  far = Fma(far, t, 0.050492499f);
  far = root * Fma(far, t, 0.398937225f);
  float near = Fma(-7.71173291e-06f, a, 0.000181902476f);
  near = Fma(near, a, -0.00193106616f);
  near = Fma(near, a, 0.0123317353f);
  near = Fma(near, a, -0.0536017716f);
  near = Fma(near, a, 0.17012389f);
  near = Fma(near, a, -0.409233242f);
  near = Fma(near, a, 0.74758625f);
  near = Fma(near, a, -0.999679863f);
  near = Fma(near, a, 0.99999243f);
  return a < 4.0f ? near : far;
}
OFL_HOST_DEVICE float I1e(float x) {
  const float a = fabsf(x), root = fast::ReciprocalRoot(a), t = root * root;
  float far = Fma(-0.118672386f, t, -0.0316765569f);
  far = Fma(far, t, -0.15042913f);
  far = copysignf(root * Fma(far, t, 0.398949206f), x);
  float near = Fma(9.12593168e-06f, a, -0.000201631672f);
  near = Fma(near, a, 0.00199400517f);
  near = Fma(near, a, -0.011820307f);
  near = Fma(near, a, 0.0476566814f);
  near = Fma(near, a, -0.140273303f);
  near = Fma(near, a, 0.310153246f);
  near = Fma(near, a, -0.499590933f);
  near = x * Fma(near, a, 0.499987036f);
  return a < 4.0f ? near : far;
}
// The slopes of those two.
OFL_HOST_DEVICE float I0eSlope(float x) {
  const float a = fabsf(x), root = fast::ReciprocalRoot(a), t = root * root;
  float far = Fma(6.19588518f, t, -4.11817169f);
  far = Fma(far, t, 0.598513484f);
  far = Fma(far, t, -0.119173974f);
  far = Fma(far, t, -0.0736222863f);
  far = t * root * Fma(far, t, -0.199475631f);
  const float d = a - 2.0f;
  float near = Fma(-2.20662059e-06f, d, 1.53590081e-05f);
  near = Fma(near, d, -5.78408763e-05f);
  near = Fma(near, d, 0.000226517455f);
  near = Fma(near, d, -0.000923801039f);
  near = Fma(near, d, 0.00322117703f);
  near = Fma(near, d, -0.00946149137f);
  near = Fma(near, d, 0.0235308707f);
  near = Fma(near, d, -0.0483272672f);
  near = Fma(near, d, 0.0788443536f);
  near = Fma(near, d, -0.0932395831f);
  const float y = a < 4.0f ? near : far;
  return x == 0.0f ? 0.0f : AsFloat(AsBits(y) ^ (AsBits(x) & 0x80000000u));
}
// It is 0 where |x| is about 1.545.
OFL_HOST_DEVICE float I1eSlope(float x) {
  const float a = fabsf(x), root = fast::ReciprocalRoot(a), t = root * root;
  float far = Fma(-7.24599838f, t, 4.98641539f);
  far = Fma(far, t, -0.72938776f);
  far = Fma(far, t, 0.180316895f);
  far = Fma(far, t, 0.222802997f);
  far = t * root * Fma(far, t, -0.199464604f);
  const float d = a - 2.0f;
  float near = Fma(2.00941486e-06f, d, -1.41685123e-05f);
  near = Fma(near, d, 5.48386488e-05f);
  near = Fma(near, d, -0.000213120933f);
  near = Fma(near, d, 0.00083796028f);
  near = Fma(near, d, -0.00281581492f);
  near = Fma(near, d, 0.00785380136f);
  near = Fma(near, d, -0.0177940726f);
  near = Fma(near, d, 0.030377524f);
  near = Fma(near, d, -0.0316475332f) * (a - 1.54512727f + 1.46133533e-08f);
  return a < 4.0f ? near : far;
}
// e^-|x| times the slope of I1.
OFL_HOST_DEVICE float ScaledI1Slope(float a) {
  const float root = fast::ReciprocalRoot(a), t = root * root;
  float far = Fma(0.184989363f, t, 0.156257167f);
  far = Fma(far, t, -0.347873777f);
  far = root * Fma(far, t, 0.398931831f);
  float near = Fma(-6.22519474e-06f, a, 0.00014439103f);
  near = Fma(near, a, -0.00150161295f);
  near = Fma(near, a, 0.00934090372f);
  near = Fma(near, a, -0.0392039753f);
  near = Fma(near, a, 0.118480675f);
  near = Fma(near, a, -0.265410513f);
  near = Fma(near, a, 0.435794175f);
  near = Fma(near, a, -0.499781936f);
  near = Fma(near, a, 0.499995083f);
  return a < 4.0f ? near : far;
}
// y e^a, beyond a = 128 infinite.
OFL_HOST_DEVICE float TimesExp(float y, float a) {
  return Exp2(Fma(a, kLog2E, -8.0f)) * y * 256.0f;
}
inline constexpr float kFarBessel = 128.0f;
OFL_HOST_DEVICE float I0(float x) {
  const float a = Smaller(fabsf(x), kFarBessel);
  return TimesExp(I0e(a), a);
}
OFL_HOST_DEVICE float I1(float x) {
  return TimesExp(I1e(Clamped(x, kFarBessel)), Smaller(fabsf(x), kFarBessel));
}
OFL_HOST_DEVICE float I1Slope(float x) {
  const float a = Smaller(fabsf(x), kFarBessel);
  return TimesExp(ScaledI1Slope(a), a);
}

}  // namespace narrow
}  // namespace cuda
}  // namespace oneflow_lite
