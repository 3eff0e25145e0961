// SPDX-License-Identifier: Apache-2.0
//
// Functions of the normal distribution in float (float_math.cuh), within 4 ulp.
#pragma once

#include "primitive/cuda/functions/float_log_math.cuh"

namespace oneflow_lite {
namespace cuda {
namespace fast {

// P(N > a) e^(a^2 / 2) of a standard normal N up to a = 14.9, beyond within 1e-4: sum over (1 +
// off), a polynomial of t = (rate a - 1) / (rate a + 1), 1 over the denominator, and what that
// lacks. The product of the rate and sqrt(2) is a float, too.
inline constexpr float kRestRate = 0.403106958f, kRestRateOfErfc = 0.570079327f;
struct NormalRest {
  float sum, over, off;
  OFL_HOST_DEVICE explicit NormalRest(float a, float rate = kRestRate) {
    const float d = Fma(a, rate, 1.0f), n = Fma(a, rate, -1.0f);
    over = Reciprocal(d);
    const float rough = Fma(-2.0f, over, 1.0f);  // mostly exact
    off = Fma(-n, over, rough);                  // n + 2 has more digits than d
    const float t = Fma(-2.0f * over, off, rough);
    sum = Fma(-6.49834546e-05f, t, -0.00011611628f);
    sum = Fma(sum, t, 0.000303750043f);
    sum = Fma(sum, t, 0.000989419408f);
    sum = Fma(sum, t, -0.000792619365f);
    sum = Fma(sum, t, -0.0065029813f);
    sum = Fma(sum, t, 0.00441717822f);
    sum = Fma(sum, t, 0.0516074225f);
    sum = Fma(sum, t, -0.173454881f);
    sum = Fma(sum, t, 0.284430712f);
  }
  OFL_HOST_DEVICE float Value() const {
    const float rough = sum * over;
    return Fma(rough, off, rough);
  }
};
// 2^64 e^(-a^2 rate) (1 + off) = (1 + more) power, up to a^2 rate = 160, with what a^2 loses in
// rounding: rate log2(e) in two parts.
inline constexpr float kBell = 0.5f * kLog2E, kBellRest = 0.5f * kLog2ERest;
struct ScaledBell {
  float more, power;
  OFL_HOST_DEVICE ScaledBell(float off, float a, float rate = kBell, float rate_rest = kBellRest) {
    constexpr float kBias = kRounder + 127 + 64;
    const float square = Product(a, a), lost = Fma(a, a, -square);
    const float k = Fma(square, -rate, kBias), j = k - kBias;
    const float less = Fma(off, -kLog2E / rate, Fma(square, rate_rest / rate, lost));
    const float f = Fma(less, -rate, Fma(square, -rate, -j));
    more = Exp2Share(f) * f;
    power = PowerOf2(k);
  }
  OFL_HOST_DEVICE float Times(float y) const { return Fma(y, more, y) * power; }
};
// y 2^64 P(N > a)
OFL_HOST_DEVICE float ScaledNormalTail(float y, const NormalRest& rest, float a) {
  return ScaledBell(rest.off, a).Times(y * rest.sum * rest.over);
}
inline constexpr float kFarNormal = 14.9f;  // beyond it x P(N > x) is 0

// x P(N <= x): x above 0, less |x| P(N > |x|). A zero stays as it is.
OFL_HOST_DEVICE float Gelu(float x) {
  const float a = Smaller(fabsf(x), kFarNormal);
  const NormalRest rest(a);
  const ScaledBell bell(rest.off, a);
  const float share = rest.sum * rest.over, product = Product(a, share);
  const float lost = Fma(a, share, -product);
  const float tail = (product + Fma(product, bell.more, lost)) * bell.power;
  return Fma(tail, -kUnscale, Larger(x, -0.0f));
}
// P(N <= x) + x e^(-x^2 / 2) / sqrt(2 pi), within 1e-6 of it, or of the sum's terms.
OFL_HOST_DEVICE float GeluSlope(float x) {
  const float a = Smaller(fabsf(x), kFarNormal);
  const float value = Fma(a, -0.398942280f, NormalRest(a).Value());
  const float side = ScaledBell(0.0f, a).Times(value) * kUnscale;
  return x > 0.0f ? 1.0f - side : side;
}
// P(N <= x)
OFL_HOST_DEVICE float Ndtr(float x) {
  const float a = Smaller(fabsf(x), kFarNormal);
  const float rest = ScaledNormalTail(1.0f, NormalRest(a), a) * kUnscale;
  return x > 0.0f ? 1.0f - rest : rest;
}
// 2 P(N > sqrt(2) x)
OFL_HOST_DEVICE float Erfc(float x) {
  const float a = Smaller(fabsf(x), kFarNormal * 0.707106781f);
  const NormalRest at(a, kRestRateOfErfc);
  const float tail = ScaledBell(at.off, a, kLog2E, kLog2ERest).Times(at.sum * at.over);
  const float rest = tail * (2.0f * kUnscale);
  return x < 0.0f ? 2.0f - rest : rest;
}
// The logarithm of Ndtr: near 0 a polynomial, above, log(1 - P(N > x)), below,
// log(P(N > a) e^(a^2 / 2)) - a^2 / 2.
OFL_HOST_DEVICE float LogNdtr(float x) {
  const float a = fabsf(x);
  float near = Fma(-4.69828083e-05f, x, -0.000212456536f);
  near = Fma(near, x, -4.03164158e-05f);
  near = Fma(near, x, 0.00478172768f);
  near = Fma(near, x, 0.0363365524f);
  near = Fma(near, x, -0.318309754f);
  near = Fma(Fma(near, x, 0.797884464f), x, -0.693147182f);
  if (a < 0.9f) return near;
  const NormalRest rest(Smaller(a, 1e6f));
  const float above = ScaledNormalTail(-kUnscale, rest, Smaller(a, kFarNormal));
  const bool right = x > 0.0f;
  const float v = right ? 1.0f : Larger(rest.Value(), 0x1p-100f);
  const uint32_t bits = ExponentBits(v);
  const float f = right ? above : AsFloat(AsBits(v) - bits) - 1.0f;
  const float b = right ? 0.0f : a;
  return Fma(b * -0.5f, b, LogOf(f, ExponentIn(bits)));
}

// Where Ndtr is p: infinite at 0 and 1, NaN beyond. 2 p - 1 times a function of
// w = -log2(4 p (1 - p)): a polynomial up to 8, beyond of 1 / sqrt(w).
OFL_HOST_DEVICE float Ndtri(float p) {
  const bool tiny = p < 0x1p-100f;
  const float product = (tiny ? p * kScale : p) * (1.0f - p);
  const uint32_t bits = ExponentBits(product);
  const float log = LogOf(AsFloat(AsBits(product) - bits) - 1.0f, 0.0f);
  const float w = Fma(log, -kLog2E, (tiny ? 62.0f : -2.0f) - ExponentIn(bits)), v = w - 4.0f;
  float near = Fma(-3.79542842e-10f, v, 4.47255483e-10f);
  near = Fma(near, v, 5.1855217e-08f);
  near = Fma(near, v, -4.05387567e-07f);
  near = Fma(near, v, -2.22285371e-06f);
  near = Fma(near, v, 6.79669974e-05f);
  near = Fma(near, v, -0.000480260991f);
  near = Fma(near, v, -0.00346927089f);
  near = Fma(near, v, 0.239282146f);
  near = Fma(near, v, 2.21791983f);
  const float over = ReciprocalRoot(w), r = over - 0.21875f;
  float far = Fma(56787.1602f, r, 1201.42664f);
  far = Fma(far, r, -4559.62354f);
  far = Fma(far, r, -311.649597f);
  far = Fma(far, r, 123.54673f);
  far = Fma(far, r, 27.1179848f);
  far = Fma(far, r, -0.190012544f);
  far = Fma(far, r, 1.11436641f);
  far = Fma(far, r, 0.172896862f);
  far = Fma(far, r, -0.276986271f);
  const float rough = w * over, root = Fma(Fma(-rough, rough, w), 0.5f * over, rough);
  far = Fma(root, Fma(far, r, 0.12729263f), root);
  const float x = Fma(2.0f, p, -1.0f), y = x * (w < 8.0f ? near : far);
  return p > 0.0f && p < 1.0f ? y : p == 0.0f || p == 1.0f ? x * INFINITY : NAN;
}

}  // namespace fast
}  // namespace cuda
}  // namespace oneflow_lite
