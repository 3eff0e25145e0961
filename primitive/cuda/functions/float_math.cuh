// SPDX-License-Identifier: Apache-2.0
//
// Functions of float in few instructions, within 4 ulp where a comment says nothing else: the
// hardware's approximations, steered clear of what they flush to 0, where CUDA's functions divide
// as IEEE 754 says or take branches. For the host too, where float_math_test.cpp measures them with
// approximations that are off by as much as they may be.
//
// The steps: e^x = 2^j 2^f with j an integer and |f| <= 1/2. 2^j is kept apart as a number that is
// 2^64 times as large, so that results below the normal numbers are rounded once, at the end.
#pragma once

#include <cmath>
#include <cstdint>

#include "primitive/cuda/functions/tags.h"
#include "primitive/float_log.h"

#ifndef OFL_APPROXIMATE
#define OFL_APPROXIMATE(exact) static_cast<float>(exact)
#endif

namespace oneflow_lite {
namespace cuda {
namespace fast {

using oneflow_lite::AsBits;
using oneflow_lite::AsFloat;
using oneflow_lite::kRounder;

// 1 / x within 1 ulp; 0 beyond 2^126, and infinity below 2^-126.
OFL_HOST_DEVICE float Reciprocal(float x) {
#ifdef __CUDA_ARCH__
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return std::fabs(x) > 0x1p126f ? 0.0f / x : OFL_APPROXIMATE(1.0 / static_cast<double>(x));
#endif
}
// 2^x within 2^-22 of it (PTX ISA), for |x| <= 1 within 1 ulp.
OFL_HOST_DEVICE float Exp2(float x) {
#ifdef __CUDA_ARCH__
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return OFL_APPROXIMATE(std::exp2(static_cast<double>(x)));
#endif
}
#ifndef __CUDA_ARCH__
// Of a logarithm the error is up to 2^-22, or as much of it where it is greater than 1; those of
// powers of two are exact.
inline float RoughLog2(float x) {
  const double y = std::log2(static_cast<double>(x)), size = std::fabs(y) < 1 ? 1 : std::fabs(y);
  if (!(size < 200) || y == std::floor(y)) return static_cast<float>(y);
  const float step = OFL_APPROXIMATE(1.0 + 1e-9) - 1.0f;  // 0, or 2^-23
  return static_cast<float>(y + size * (4 * step - 0x1p-22));
}
#endif
// log2(x) of normal numbers, within 2^-22 of the greater of it and 1.
OFL_HOST_DEVICE float Log2(float x) {
#ifdef __CUDA_ARCH__
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return RoughLog2(x);
#endif
}
// 1 / sqrt(x) of normal numbers.
OFL_HOST_DEVICE float ReciprocalRoot(float x) {
#ifdef __CUDA_ARCH__
  float y;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return OFL_APPROXIMATE(1.0 / std::sqrt(static_cast<double>(x)));
#endif
}
// NaN where one of them is; 0 is above -0.
OFL_HOST_DEVICE float Larger(float a, float b) {
#ifdef __CUDA_ARCH__
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
#else
  return a != a || a > b || (a == b && !std::signbit(a)) ? a : b;
#endif
}
OFL_HOST_DEVICE float Smaller(float a, float b) {
#ifdef __CUDA_ARCH__
  float y;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
#else
  return a != a || a < b ? a : b;
#endif
}
OFL_HOST_DEVICE float Fma(float a, float b, float c) { return fmaf(a, b, c); }
// Rounded, and no part of an Fma that the compiler makes: what the rounding lost is asked for.
OFL_HOST_DEVICE float Product(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}
OFL_HOST_DEVICE double Product(double a, double b) {
#ifdef __CUDA_ARCH__
  return __dmul_rn(a, b);
#else
  return a * b;
#endif
}

inline constexpr float kLog2E = 1.44269502f, kLog2ERest = 1.92596299e-8f;
inline constexpr float kScale = 18446744073709551616.0f, kUnscale = 1 / kScale;  // 2^64
// 2^j of AsBits(x + (kRounder + 127)), j = rint(x).
OFL_HOST_DEVICE float PowerOf2(float rounded) { return AsFloat(AsBits(rounded) << 23); }

// e^x 2^64 for -130 <= x <= 0, without rounding of what is below the normal numbers. NaN stays.
OFL_HOST_DEVICE float ScaledExp(float x) {
  constexpr float kBias = kRounder + 127 + 64;
  const float k = Fma(x, kLog2E, kBias), j = k - kBias;
  const float f = Fma(x, kLog2ERest, Fma(x, kLog2E, -j));
  return Exp2(f) * PowerOf2(k);
}
// (e^r - 1 - r) / r^2 for |r| <= log(2) / 2.
OFL_HOST_DEVICE float ExpTail(float r) {
  return Fma(Fma(Fma(Fma(0.0013946554f, r, 0.0083666439f), r, 0.0416662806f), r, 0.1666654255f), r,
             0.5f);
}
// (2^f - 1) / f for |f| <= 1/2.
OFL_HOST_DEVICE float Exp2Share(float f) {
  float sum = Fma(0.000151966931f, f, 0.00133913045f);
  sum = Fma(sum, f, 0.00961900223f);
  sum = Fma(sum, f, 0.0555035882f);
  sum = Fma(sum, f, 0.240226433f);
  return Fma(sum, f, 0.693147182f);
}
// 2^f for |f| <= 1/2 within 0.8 ulp.
OFL_HOST_DEVICE float Exp2Exactly(float f) { return Fma(Exp2Share(f), f, 1.0f); }
// ScaledExp within 0.6 ulp, by a polynomial.
OFL_HOST_DEVICE float ScaledExpExactly(float x) {
  constexpr float kBias = kRounder + 127 + 64;
  const float k = Fma(x, kLog2E, kBias), j = k - kBias;
  const float r = Fma(j, -1.42860677e-6f, Fma(j, -0.693145752f, x));
  return (1.0f + Fma(r * r, ExpTail(r), r)) * PowerOf2(k);
}

// The reciprocal of 1 + e, e = scaled / 2^64.
OFL_HOST_DEVICE float OverOneMore(float scaled) { return Reciprocal(Fma(scaled, kUnscale, 1.0f)); }
inline constexpr float kLowest = -118.0f;  // below it x e^x is 0

OFL_HOST_DEVICE float Sigmoid(float x) {
  const float e = ScaledExp(Larger(-fabsf(x), kLowest)), share = OverOneMore(e);
  return x < 0.0f ? share * e * kUnscale : share;
}
OFL_HOST_DEVICE float Silu(float x) {
  const float near = Larger(x, kLowest), e = ScaledExpExactly(Larger(-fabsf(x), kLowest));
  const float share = near * OverOneMore(e);
  return x < 0.0f ? share * e * kUnscale : share;
}
// x tanh(log(1 + e^x)) with e = e^-|x|: below 0 x e (1 - e n / (n (1 + e) + 1)), n = 1 + e, above
// it the same without the first e, n = 2 e.
OFL_HOST_DEVICE float Mish(float x) {
  const bool below = x < 0.0f;
  const float scaled = ScaledExpExactly(Larger(-fabsf(x), kLowest)), e = scaled * kUnscale;
  const float more = e + 1.0f, n = below ? more : e + e;
  const float share = Fma(-e, n * Reciprocal(Fma(n, more, 1.0f)), 1.0f);
  return below ? Larger(x, kLowest) * scaled * share * kUnscale : x * share;
}

// x - tanh(x): up to 1.4 x^3 times a polynomial of x^2 - 1.
OFL_HOST_DEVICE float Tanhshrink(float x) {
  if (!(fabsf(x) < 1.40625f)) return x - tanhf(x);
  const float square = x * x, v = Fma(x, x, -1.0f);
  float sum = Fma(-4.1984636e-06f, v, 1.5003367e-05f);
  sum = Fma(sum, v, -3.7708083e-05f);
  sum = Fma(sum, v, 0.00012987405f);
  sum = Fma(sum, v, -0.00046687236f);
  sum = Fma(sum, v, 0.0016194382f);
  sum = Fma(sum, v, -0.005607813f);
  sum = Fma(sum, v, 0.019450646f);
  sum = Fma(sum, v, -0.06759594f);
  sum = Fma(sum, v, 0.23840585f);
  return x * square * sum;
}

// e^x - 1.
OFL_HOST_DEVICE float Expm1(float x) {
  constexpr float kBias = kRounder + 126;  // of 2^(j - 1), which is a number up to the end
  const float within = Smaller(Larger(x, -80.0f), 88.9f);
  const float k = Fma(within, kLog2E, kBias), j = k - kBias;
  const float r = Fma(j, -1.42860677e-6f, Fma(j, -0.693145752f, within));
  const float p = Fma(r * r, ExpTail(r), r), half = PowerOf2(k);
  return 2.0f * Fma(half, p, half - 0.5f);
}

// A power of two by which the larger of two sizes comes near 1, and its reciprocal.
struct Scaling {
  float down, up;
};
OFL_HOST_DEVICE Scaling ScalingOf(float size) {
  uint32_t exponent = AsBits(size) & 0x7f800000u;
  exponent = exponent < 0x00800000u ? 0x00800000u : exponent;
  exponent = exponent > 0x7e800000u ? 0x7e800000u : exponent;
  return {AsFloat(0x7f000000u - exponent), AsFloat(exponent)};
}
OFL_HOST_DEVICE float Hypot(float a, float b) {
  const float x = fabsf(a), y = fabsf(b), most = Larger(x, y);
  const Scaling scaling = ScalingOf(most);
  const float p = x * scaling.down, q = y * scaling.down;
  const float square = Larger(Fma(p, p, q * q), 0x1p-120f);
  const float size = square * ReciprocalRoot(square) * scaling.up;
  return x == INFINITY || y == INFINITY ? INFINITY : most == 0.0f ? 0.0f : size;
}

// The angle of the point (x, y).
OFL_HOST_DEVICE float Atan2(float y, float x) {
  const float p = fabsf(x), q = fabsf(y), most = Larger(p, q);
  const Scaling scaling = ScalingOf(most);
  const bool steep = q > p;
  const float d = Larger(most * scaling.down, 0x1p-100f);
  const float n = (steep ? p : q) * scaling.down, over = Reciprocal(d), rough = n * over;
  float t = Fma(Fma(-d, rough, n), over, rough);
  if (most == INFINITY) t = p == q ? 1.0f : 0.0f;
  const float u = t * t;
  float sum = Fma(0.00297458655f, u, -0.0165811688f);
  sum = Fma(sum, u, 0.0435535151f);
  sum = Fma(sum, u, -0.0758057612f);
  sum = Fma(sum, u, 0.106789394f);
  sum = Fma(sum, u, -0.142142089f);
  sum = Fma(sum, u, 0.199941372f);
  sum = Fma(sum, u, -0.33333167f);
  float angle = Fma(t * u, sum, t);
  if (steep) angle = 1.57079637f - (angle + 4.37113883e-8f);
  if (AsBits(x) >> 31) angle = 3.14159274f - (angle + 8.74227766e-8f);
  return p == p && q == q ? copysignf(angle, y) : p + q;
}

// x = mantissa 2^exponent, 1/2 <= |mantissa| < 1; zeros, infinities and NaN as they are, and 0.
OFL_HOST_DEVICE float MantissaOf(float x) {
  const float size = fabsf(x), scaled = size < 0x1p-126f ? x * kScale : x;
  const float mantissa = AsFloat((AsBits(scaled) & 0x807fffffu) | 0x3f000000u);
  return size > 0.0f && size < INFINITY ? mantissa : x;
}
OFL_HOST_DEVICE int32_t ExponentOf(float x) {
  const float size = fabsf(x);
  const bool tiny = size < 0x1p-126f;
  const int exponent = static_cast<int>(AsBits(tiny ? size * kScale : size) >> 23) - 126;
  return size > 0.0f && size < INFINITY ? exponent - (tiny ? 64 : 0) : 0;
}

// x y, or x / y as IEEE 754 rounds it, in one sequence of instructions: a rough quotient's rest is
// exact where it and y are far from the ends of the format, and 1 / y is rounded (Markstein, IBM
// Journal of Research and Development 34, 1990).
template <class C>
struct Scaler {
  C times, by, part;
  static Scaler Product(C y) { return {y, 0, 0}; }
  static Scaler Quotient(C y) { return {1 / y, y, 1 / y}; }
  OFL_HOST_DEVICE C Corrected(C x, C rough) const {
    return std::fma(std::fma(-rough, by, x), part, rough);
  }
};
// x rounded to digits: as many of them behind the point as `scale` is a power of 10, or before it.
// What is scaled to an infinity has no such digits.
template <class C>
struct DecimalRounding {
  DecimalRounding(C scale, bool before)
      : up(before ? Scaler<C>::Quotient(scale) : Scaler<C>::Product(scale)),
        down(before ? Scaler<C>::Product(scale) : Scaler<C>::Quotient(scale)) {}
  Scaler<C> up, down;
  // Of powers up to 1e30, which quotients that do not become 0 are far from the ends with.
  OFL_HOST_DEVICE C operator()(C x) const {
    const C scaled = up.Corrected(x, x * up.times), whole = std::rint(scaled);
    const C rough = whole * down.times, corrected = down.Corrected(whole, rough);
    const C y = std::fabs(rough) < C(INFINITY) ? corrected : rough;
    return std::fabs(scaled) < C(INFINITY) ? std::copysign(y, x) : x;
  }
};

// Whether RestOf serves: the quotient is below 2^21, and the numbers are far from their ends.
OFL_HOST_DEVICE bool DividesShortly(float x, float y) {
  return y >= 0x1p-100f && y <= 0x1p100f && x < y * 0x1p21f;
}
// The rest of x / y for x, y >= 0, exactly. The quotient is that of the rest, or one more: what is
// subtracted is a multiple of y next to x.
OFL_HOST_DEVICE float RestOf(float x, float y) {
  const float quotient = Fma(x, Reciprocal(y), kRounder) - kRounder;
  const float rest = Fma(-quotient, y, x);
  return rest < 0.0f ? rest + y : rest;
}

}  // namespace fast
}  // namespace cuda
}  // namespace oneflow_lite
