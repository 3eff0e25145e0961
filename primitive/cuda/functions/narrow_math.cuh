// SPDX-License-Identifier: Apache-2.0
//
// Functions of float for results of 16 bits, in few instructions: within 2^-14 of the result, so
// that what is stored is the nearest number, or next to it where the result is close to the middle
// of two. The operands have 16 bits too. For the host as well, where narrow_math_test.cpp takes all
// of them.
//
// Both sides of a choice are computed before it, and the approximations are `volatile`, so that no
// branch or predicate comes of it. The hardware's approximations are exact relative to their
// results, or to 1 where those are logarithms. Where a function goes to 0 it is a short polynomial.
// Numbers below 2^-126, which bfloat16 has, take the approximations that do not flush them (three
// instructions more), or a power of two that keeps intermediate results above them.
#pragma once

#include "primitive/cuda/functions/float_math.cuh"

namespace oneflow_lite {
namespace cuda {
namespace narrow {

using fast::AsBits;
using fast::AsFloat;
using fast::Fma;
using fast::Larger;
using fast::Reciprocal;
using fast::Smaller;

#ifdef __CUDA_ARCH__
#define OFL_APPROXIMATION(Name, instruction, exact)              \
  OFL_HOST_DEVICE float Name(float x) {                          \
    float y;                                                     \
    asm volatile(instruction ".f32 %0, %1;" : "=f"(y) : "f"(x)); \
    return y;                                                    \
  }
#else
#define OFL_APPROXIMATION(Name, instruction, exact) \
  OFL_HOST_DEVICE float Name(float x) { return exact; }
inline float Flushed(float x) { return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }
using fast::RoughLog2;
#endif
// 2^x, log2(x), the root of x and 1 / x, where they or x are not below 2^-126; Down: anywhere.
OFL_APPROXIMATION(Exp2, "ex2.approx.ftz", Flushed(OFL_APPROXIMATE(std::exp2(double{x}))))
OFL_APPROXIMATION(Exp2Down, "ex2.approx", OFL_APPROXIMATE(std::exp2(double{x})))
OFL_APPROXIMATION(Log2, "lg2.approx.ftz", RoughLog2(Flushed(x)))
OFL_APPROXIMATION(Log2Down, "lg2.approx", RoughLog2(x))
OFL_APPROXIMATION(Root, "sqrt.approx.ftz", Flushed(OFL_APPROXIMATE(std::sqrt(double{x}))))
OFL_APPROXIMATION(RootDown, "sqrt.approx", OFL_APPROXIMATE(std::sqrt(double{x})))
OFL_APPROXIMATION(ReciprocalDown, "rcp.approx", OFL_APPROXIMATE(1 / double{x}))
#undef OFL_APPROXIMATION

inline constexpr float kLog2E = 1.44269504f, kLn2 = 0.693147181f;
inline constexpr float kUp = 18446744073709551616.0f, kDown = 1 / kUp;  // 2^64

// From here on, |x| < kNear, (1 - x / 2) x is log(1 + x).
inline constexpr float kNear = 0x1p-7f;
// The logarithm of x in units of which `unit` is that of e, 1 / per2 that of 2.
OFL_HOST_DEVICE float LogIn(float x, float unit, float of2) {
  const float d = x - 1.0f, near = d * Fma(d, -0.5f * unit, unit), far = Log2Down(x) * of2;
  return fabsf(d) < kNear ? near : far;
}
OFL_HOST_DEVICE float Log(float x) { return LogIn(x, 1.0f, kLn2); }
OFL_HOST_DEVICE float LogOf2(float x) { return LogIn(x, kLog2E, 1.0f); }
OFL_HOST_DEVICE float Log10(float x) { return LogIn(x, 0.434294482f, 0.301029996f); }
OFL_HOST_DEVICE float Log1pIn(float x, float unit, float of2) {
  const float near = x * Fma(x, -0.5f * unit, unit), far = Log2(x + 1.0f) * of2;
  return fabsf(x) < kNear ? near : far;
}
OFL_HOST_DEVICE float Log1p(float x) { return Log1pIn(x, 1.0f, kLn2); }
OFL_HOST_DEVICE float Logit(float x) { return (Log2Down(x) - Log2(1.0f - x)) * kLn2; }
// g / (x (1 - x)) for 0 <= x <= 1.
OFL_HOST_DEVICE float TimesLogitSlope(float g, float x) {
  constexpr float kRaise = 1024.0f;
  return g * Reciprocal(x * Fma(-kRaise, x, kRaise)) * kRaise;
}
OFL_HOST_DEVICE float XLogY(float x, float y) {
  const float product = x * Log(y);
  return x == 0.0f && y == y ? 0.0f : product;
}
OFL_HOST_DEVICE float XLog1pY(float x, float y) {
  const float product = x * Log1p(y);
  return x == 0.0f && y == y ? 0.0f : product;
}
OFL_HOST_DEVICE float Entr(float x) {
  const float product = -x * Log(x), rest = x < 0.0f ? -INFINITY : fabsf(x);  // no -0
  return x > 0.0f ? product : rest;
}
OFL_HOST_DEVICE float EntrSlope(float x) { return -1.0f - Log(x); }
// What the logarithm of the sum is more than the greater one.
OFL_HOST_DEVICE float LogAddExp(float a, float b) {
  const float most = Larger(a, b), off = a == b ? 0.0f : fabsf(a - b);
  return most + Log1p(Exp2Down(off * -kLog2E));
}
OFL_HOST_DEVICE float LogAddExp2(float a, float b) {
  const float most = Larger(a, b), off = a == b ? 0.0f : fabsf(a - b);
  return most + Log1pIn(Exp2Down(-off), kLog2E, 1.0f);
}
// log(1 + e^-|x|)
OFL_HOST_DEVICE float Bend(float x) { return Log1p(Exp2Down(fabsf(x) * -kLog2E)); }
OFL_HOST_DEVICE float LogSigmoid(float x) { return (x < 0.0f ? x : 0.0f) - Bend(x); }

// 2^-64 of the reciprocal of e^-x + 1, from x log2(e); 0 below e^-131.
OFL_HOST_DEVICE float SharedExp(float exponent) {
  return Reciprocal(Exp2(-64.0f - exponent) + kDown);
}
OFL_HOST_DEVICE float Sigmoid(float x) { return SharedExp(x * kLog2E) * kDown; }
// x / (1 + e^-v)
OFL_HOST_DEVICE float GeluTanh(float x) {
  const float v = x * Fma(0.102943240f * x, x, 2.30220819f);
  return Larger(x, -40.0f) * (SharedExp(v) * kDown);
}
OFL_HOST_DEVICE float Silu(float x) { return Larger(x, -120.0f) * Sigmoid(x); }
OFL_HOST_DEVICE float Clamped(float x, float limit) { return Larger(Smaller(x, limit), -limit); }
OFL_HOST_DEVICE float SiluSlope(float x) {
  const float s = Sigmoid(x);
  return s * Fma(Clamped(x, 120.0f), 1.0f - s, 1.0f);
}
OFL_HOST_DEVICE float GeluTanhSlope(float given) {
  const float x = Clamped(given, 40.0f), square = x * x;
  const float s = SharedExp(x * Fma(0.102943240f, square, 2.30220819f)) * kDown;
  return s * Fma(x * Fma(0.214064437f, square, 1.59576912f), 1.0f - s, 1.0f);
}
// x n / (n + 2), n = e (e + 2), with 2^32 n.
OFL_HOST_DEVICE float Mish(float x) {
  constexpr float kRaise = 4294967296.0f, kLower = 1 / kRaise;
  const float e = Exp2(Fma(Smaller(x, 20.0f), kLog2E, 32.0f));
  const float n = e * Fma(e, kLower, 2.0f);
  return Larger(x, -120.0f) * (n * Reciprocal(Fma(n, kLower, 2.0f)) * kLower);
}
OFL_HOST_DEVICE float Expm1(float x) {
  const float near = x * Fma(x, Fma(x, 1.0f / 6, 0.5f), 1.0f), far = Exp2(x * kLog2E) - 1.0f;
  return fabsf(x) < 0x1p-6f ? near : far;
}
OFL_HOST_DEVICE float Sinh(float x) {
  const float near = x * Fma(x * x, 1.0f / 6, 1.0f);
  const float far = Exp2(Fma(x, kLog2E, -1.0f)) - Exp2(Fma(x, -kLog2E, -1.0f));
  return fabsf(x) < 0x1p-4f ? near : far;
}
OFL_HOST_DEVICE float Cosh(float x) {
  return Exp2(Fma(x, kLog2E, -1.0f)) + Exp2(Fma(x, -kLog2E, -1.0f));
}
OFL_HOST_DEVICE float Tanh(float x) {
  const float far = Fma(-2.0f, Reciprocal(Exp2(x * (2 * kLog2E)) + 1.0f), 1.0f);
  return fabsf(x) < 0x1p-7f ? x : far;
}

// What the operands near the ends take, and 0, infinities and NaN.
enum class Ends { kPow, kAtan2, kHypot };
template <Ends kOf>
OFL_CALLED float OfEnds(float a, float b) {
  return kOf == Ends::kPow     ? powf(a, b)
         : kOf == Ends::kAtan2 ? fast::Atan2(a, b)
                               : fast::Hypot(a, b);
}
// The lowest bit of an integer to which kRounder was added, as a sign.
OFL_HOST_DEVICE float WithParity(float x, float rounded) {
  return AsFloat(AsBits(x) ^ (AsBits(rounded) << 31));
}
// 2^(b log2(a)); next to 1 the logarithm is exact relative to itself.
OFL_HOST_DEVICE float Pow(float a, float b) {
  const float size = fabsf(a), d = size - 1.0f, far = Log2Down(size);
  const float sum = Fma(Fma(Fma(-0.360955745f, d, 0.48118031f), d, -0.721347451f), d, kLog2E);
  const float log = fabsf(d) < 0x1p-5f ? d * sum : far, y = Exp2Down(log * b);
  const float k = b + fast::kRounder, j = k - fast::kRounder;
  const float below = j == b ? WithParity(y, k) : NAN, power = a < 0.0f ? below : y;
  const bool usual = (size > 0.0f) & (size < INFINITY) & (fabsf(b) < 0x1p22f);
  return usual ? power : OfEnds<Ends::kPow>(a, b);
}

inline constexpr float kFarNormal = 14.5f;
// P(N > a) e^(a^2 / 2) of a standard normal N, 0 <= a <= 14.5, times 2^-32.
OFL_HOST_DEVICE float NormalRest(float a) {
  constexpr float kLower = 0x1p-32f;
  const float n =
      Fma(Fma(0.0630088747f * kLower, a, 0.279411674f * kLower), a, 0.500012696f * kLower);
  return n * Reciprocal(Fma(Fma(Fma(0.157774791f, a, 0.705269933f), a, 1.35749269f), a, 1.0f));
}
// e^(-a^2 / 2) 2^32
OFL_HOST_DEVICE float Bell(float square) { return Exp2(Fma(square, -0.5f * kLog2E, 32.0f)); }
OFL_HOST_DEVICE float Gelu(float x) {
  const float a = Smaller(fabsf(x), kFarNormal);
  return Fma(-a, Bell(a * a) * NormalRest(a), Larger(x, -0.0f));
}
OFL_HOST_DEVICE float Ndtr(float x) {
  const float a = Smaller(fabsf(x), kFarNormal), rest = Bell(a * a) * NormalRest(a);
  return x > 0.0f ? 1.0f - rest : rest;
}
OFL_HOST_DEVICE float Erfc(float x) {
  const float a = Smaller(fabsf(x), kFarNormal * 0.707106781f);
  const float bell = Exp2(Fma(a * a, -kLog2E, 33.0f)), rest = bell * NormalRest(a * 1.41421356f);
  return x < 0.0f ? 2.0f - rest : rest;
}
// The slopes of Ndtr and, at its result, of its inverse: e^(-x^2 / 2) / sqrt(2 pi) and 1 over it.
OFL_HOST_DEVICE float NdtrSlope(float x) { return Bell(x * x) * (0.398942280f * 0x1p-32f); }
OFL_HOST_DEVICE float NdtriSlope(float y) {
  return Exp2(Fma(y * y, 0.5f * kLog2E, -32.0f)) * (2.50662827f * 0x1p32f);
}
// The slope of gelu at -a is (root - a) t(a) e^(-a^2 / 2); there it is 0.
OFL_HOST_DEVICE float GeluSlope(float x) {
  const float a = Smaller(fabsf(x), kFarNormal), t = Reciprocal(Fma(0.4f, a, 1.0f));
  float sum = Fma(-0.0405124463f, t, 0.114500321f);
  sum = Fma(sum, t, 0.0679549724f);
  sum = Fma(sum, t, 0.124509327f);
  sum = Fma(sum, t, 0.398635715f);
  const float side = Bell(a * a) * (sum * Fma(-0x1p-32f, a, 0.751791525f * 0x1p-32f));
  return x > 0.0f ? 1.0f - side : side;
}
// 1 - 2^-q of a polynomial q.
OFL_HOST_DEVICE float Erf(float x) {
  const float a = Smaller(fabsf(x), 4.2f);
  float q = Fma(-0.00299608102f, a, 0.0297972094f);
  q = Fma(q, a, -0.148936898f);
  q = Fma(q, a, -0.918376505f);
  q = Fma(q, a, -1.62790823f);
  const float far = copysignf(1.0f - Exp2(q * a), x), near = x * 1.12837917f;
  return fabsf(x) < 0x1p-7f ? near : far;
}
// x times a polynomial of -log2(1 - x^2).
OFL_HOST_DEVICE float Erfinv(float x) {
  const float w = -Log2(Fma(-x, x, 1.0f));
  float sum = Fma(-1.45645302e-07f, w, 2.87134617e-06f);
  sum = Fma(sum, w, 2.20401616e-05f);
  sum = Fma(sum, w, -0.000974158233f);
  sum = Fma(sum, w, 0.00586500252f);
  sum = Fma(sum, w, 0.160641149f);
  sum = Fma(sum, w, 0.886242449f);
  return x * (fabsf(x) == 1.0f ? INFINITY : sum);
}

// From |x| = 2^17 on, and of infinities and NaN, the functions that reduce every number.
inline constexpr float kFarAngle = 131072.0f;
inline constexpr float kPi = 3.14159250259f, kPiRest = 1.50995799e-7f;
enum class Angular { kSin, kCos, kTan };
template <Angular kOf>
OFL_CALLED float OfFarAngle(float x) {
  return kOf == Angular::kSin ? sinf(x) : kOf == Angular::kCos ? cosf(x) : tanf(x);
}
// sin(r) / r, |r| <= pi / 2.
OFL_HOST_DEVICE float SinShare(float r) {
  const float u = r * r;
  return Fma(Fma(Fma(-0.000185422279f, u, 0.00831427518f), u, -0.166658536f), u, 1.0f);
}
OFL_HOST_DEVICE float Sin(float x) {
  const float k = Fma(x, 0.318309886f, fast::kRounder), j = k - fast::kRounder;
  const float r = Fma(j, -kPiRest, Fma(j, -kPi, x)), y = WithParity(r * SinShare(r), k);
  return fabsf(x) < kFarAngle ? y : OfFarAngle<Angular::kSin>(x);
}
// -(-1)^k sin(r), x = (k + 1/2) pi + r.
OFL_HOST_DEVICE float Cos(float x) {
  const float k = Fma(x, 0.318309886f, -0.5f) + fast::kRounder, j = k - fast::kRounder + 0.5f;
  const float r = Fma(j, kPiRest, Fma(j, kPi, -x)), y = WithParity(r * SinShare(r), k);
  return fabsf(x) < kFarAngle ? y : OfFarAngle<Angular::kCos>(x);
}
OFL_HOST_DEVICE float Tan(float x) {
  const float k = Fma(x, 0.636619772f, fast::kRounder), j = k - fast::kRounder;
  const float r = Fma(j, -0.5f * kPiRest, Fma(j, -0.5f * kPi, x)), u = r * r;
  float sum = Fma(0.043088533f, u, 0.0413988568f);
  sum = Fma(sum, u, 0.136064962f);
  sum = Fma(sum, u, 0.333154351f);
  const float t = r * Fma(sum, u, 1.0f), over = Reciprocal(-t), y = AsBits(k) & 1 ? over : t;
  return fabsf(x) < kFarAngle ? y : OfFarAngle<Angular::kTan>(x);
}
// sin(pi a) / (pi a) from the integer next to a. 16 bits are an integer from 2^11 on.
OFL_HOST_DEVICE float Sinc(float x) {
  const float a = Smaller(fabsf(x), 4096.0f);
  const float k = a + fast::kRounder, j = k - fast::kRounder, r = a - j, u = r * r;
  const float share = Fma(Fma(Fma(-0.178262954f, u, 0.809885262f), u, -1.64485383f), u, 1.0f);
  const float ratio = r * Reciprocal(a), part = WithParity(j == 0.0f ? 1.0f : ratio, k);
  return Fma(part, share, x - x);  // no -0; NaN of infinities
}

// acos(a) / sqrt(1 - a), 0 <= a <= 1.
OFL_HOST_DEVICE float AcosShare(float a) {
  float sum = Fma(0.00859179068f, a, -0.0356433988f);
  sum = Fma(sum, a, 0.0845965445f);
  sum = Fma(sum, a, -0.214110807f);
  return Fma(sum, a, 1.57078743f);
}
OFL_HOST_DEVICE float Acos(float x) {
  const float a = fabsf(x), y = Root(1.0f - a) * AcosShare(a);
  return x < 0.0f ? 3.14159265f - y : y;
}
OFL_HOST_DEVICE float Asin(float x) {
  const float a = fabsf(x), u = x * x;
  const float far = copysignf(Fma(-Root(1.0f - a), AcosShare(a), 1.57079633f), x);
  const float sum = Fma(Fma(0.0641071647f, u, 0.0718998387f), u, 0.166801259f);
  const float near = x * Fma(sum, u, 1.0f);
  return a < 0.5f ? near : far;
}
// atan(t) / t, |t| <= 1.
OFL_HOST_DEVICE float AtanShare(float t) {
  const float u = t * t;
  float sum = Fma(-0.0139552187f, u, 0.0587705411f);
  sum = Fma(sum, u, -0.122515246f);
  sum = Fma(sum, u, 0.196183175f);
  sum = Fma(sum, u, -0.333088994f);
  return Fma(sum, u, 1.0f);
}
OFL_HOST_DEVICE float Atan(float x) {
  const bool steep = fabsf(x) > 1.0f;
  const float over = Reciprocal(x), t = steep ? over : x, angle = t * AtanShare(t);
  const float rest = copysignf(1.57079633f, x) - angle;
  return steep ? rest : angle;
}
OFL_HOST_DEVICE float Atan2(float y, float x) {
  const float p = fabsf(x), q = fabsf(y), most = Larger(p, q), least = Smaller(p, q);
  const float t = least * Reciprocal(most);
  float angle = t * AtanShare(t);
  if (q > p) angle = 1.57079633f - angle;
  if (x < 0.0f) angle = 3.14159265f - angle;
  angle = copysignf(angle, y);
  return (most > 0x1p-100f) & (most < 0x1p100f) ? angle : OfEnds<Ends::kAtan2>(y, x);
}

// Of numbers whose squares are none, too.
OFL_HOST_DEVICE float Hypot(float a, float b) {
  const float square = Fma(a, a, b * b), size = Root(square);
  return (square > 0x1p-100f) & (square < 0x1p100f) ? size : OfEnds<Ends::kHypot>(a, b);
}

// log(a + sqrt(a^2 + 1)), from the halves of both.
OFL_HOST_DEVICE float Asinh(float x) {
  const float near = x * Fma(x * x, -1.0f / 6, 1.0f), half = 0.5f * fabsf(x);
  const float root = Root(Fma(half, half, 0.25f));
  const float sum = half + (half < 0x1p20f ? root : half);
  const float far = copysignf(Fma(Log2(sum), kLn2, kLn2), x);
  return fabsf(x) < 0x1p-5f ? near : far;
}
OFL_HOST_DEVICE float Acosh(float x) {
  const float half = 0.5f * x, root = Root(Fma(half, half, -0.25f));
  const float sum = half + (half < 0x1p20f ? root : half);
  return Fma(Log2(x < 1.0f ? -1.0f : sum), kLn2, kLn2);
}
OFL_HOST_DEVICE float Atanh(float x) {
  const float near = x * Fma(x * x, 1.0f / 3, 1.0f);
  const float far = (Log2(1.0f + x) - Log2(1.0f - x)) * (0.5f * kLn2);
  return fabsf(x) < 0x1p-5f ? near : far;
}

}  // namespace narrow
}  // namespace cuda
}  // namespace oneflow_lite
