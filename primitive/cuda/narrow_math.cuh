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

#include "primitive/cuda/float_math.cuh"

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
// Of a logarithm the error is up to 2^-22, or as much of it where it is greater than 1; those of
// powers of two are exact.
inline float RoughLog2(float x) {
  const double y = std::log2(static_cast<double>(x)), size = std::fabs(y) < 1 ? 1 : std::fabs(y);
  if (!(size < 200) || y == std::floor(y)) return static_cast<float>(y);
  const float step = OFL_APPROXIMATE(1.0 + 1e-9) - 1.0f;  // 0, or 2^-23
  return static_cast<float>(y + size * (4 * step - 0x1p-22));
}
#endif
// 2^x and log2(x), where they or x are not below 2^-126, and anywhere.
OFL_APPROXIMATION(Exp2, "ex2.approx.ftz", Flushed(OFL_APPROXIMATE(std::exp2(double{x}))))
OFL_APPROXIMATION(Exp2Down, "ex2.approx", OFL_APPROXIMATE(std::exp2(double{x})))
OFL_APPROXIMATION(Log2, "lg2.approx.ftz", RoughLog2(Flushed(x)))
OFL_APPROXIMATION(Log2Down, "lg2.approx", RoughLog2(x))
OFL_APPROXIMATION(Root, "sqrt.approx.ftz", Flushed(OFL_APPROXIMATE(std::sqrt(double{x}))))
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
OFL_HOST_DEVICE float XLogY(float x, float y) {
  const float product = x * Log(y);
  return x == 0.0f && y == y ? 0.0f : product;
}
OFL_HOST_DEVICE float XLog1pY(float x, float y) {
  const float product = x * Log1p(y);
  return x == 0.0f && y == y ? 0.0f : product;
}
OFL_HOST_DEVICE float Entr(float x) {
  const float product = -x * Log(x), rest = x < 0.0f ? -INFINITY : x;
  return x > 0.0f ? product : x == 0.0f ? 0.0f : rest;
}
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

}  // namespace narrow
}  // namespace cuda
}  // namespace oneflow_lite
