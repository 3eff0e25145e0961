// SPDX-License-Identifier: Apache-2.0
//
// Function objects: mathematical functions of two floats. primitive/cpu/binary_math.cpp has the
// same formulas.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <stdint.h>
#include <string.h>

#include <type_traits>

#include "primitive/cuda/functions/float_math.cuh"
#include "primitive/cuda/functions/narrow_math.cuh"
#include "primitive/cuda/functions/tags.h"

namespace oneflow_lite {
namespace cuda {

struct Fmax {
  template <class C>
  __device__ C operator()(C a, C b) const {
    return a >= b || b != b ? a : b;
  }
};
struct Fmin {
  template <class C>
  __device__ C operator()(C a, C b) const {
    return a <= b || b != b ? a : b;
  }
};
struct Hypot : LongInDouble {
  __device__ float operator()(float a, float b) const { return fast::Hypot(a, b); }
  __device__ double operator()(double a, double b) const { return hypot(a, b); }
  __device__ float Narrow(float a, float b) const { return narrow::Hypot(a, b); }
};
struct Atan2 : LongInDouble {
  __device__ float operator()(float a, float b) const { return fast::Atan2(a, b); }
  __device__ double operator()(double a, double b) const { return atan2(a, b); }
  __device__ float Narrow(float a, float b) const { return narrow::Atan2(a, b); }
};
// The logarithms of e^a + e^b and of 2^a + 2^b, from the greater one; infinities of one sign, too.
struct LogAddExp : LongInDouble {
  __device__ float Rest(float less) const { return log1pf(expf(less)); }
  __device__ double Rest(double less) const { return log1p(exp(less)); }
  template <class C>
  __device__ C operator()(C a, C b) const {
    const C most = a > b || a != a ? a : b;
    return most + Rest(a == b ? C(0) : a > b ? b - a : a - b);
  }
  __device__ float Narrow(float a, float b) const { return narrow::LogAddExp(a, b); }
};
struct LogAddExp2 : LongInDouble {
  __device__ float Rest(float less) const { return log1pf(exp2f(less)) * 1.44269504f; }
  __device__ double Rest(double less) const { return log1p(exp2(less)) * 1.44269504088896340736; }
  template <class C>
  __device__ C operator()(C a, C b) const {
    if (a == b) return a + C(1);
    return (a > b || a != a ? a : b) + Rest(a > b ? b - a : a - b);
  }
  __device__ float Narrow(float a, float b) const { return narrow::LogAddExp2(a, b); }
};
struct XLogY : LongInDouble {
  __device__ float Log(float x) const { return logf(x); }
  __device__ double Log(double x) const { return log(x); }
  template <class C>
  __device__ C operator()(C a, C b) const {
    return a == C(0) && b == b ? C(0) : a * Log(b);
  }
  __device__ float Narrow(float a, float b) const { return narrow::XLogY(a, b); }
};
struct XLog1PY : LongInDouble {
  __device__ float Log(float x) const { return log1pf(x); }
  __device__ double Log(double x) const { return log1p(x); }
  template <class C>
  __device__ C operator()(C a, C b) const {
    return a == C(0) && b == b ? C(0) : a * Log(b);
  }
  __device__ float Narrow(float a, float b) const { return narrow::XLog1pY(a, b); }
};
struct CopySign {
  __device__ float operator()(float a, float b) const { return copysignf(a, b); }
  __device__ double operator()(double a, double b) const { return copysign(a, b); }
};
// a 2^b; an integer b moves the exponent, however far.
struct Ldexp : LongInDouble {
  __device__ float operator()(float a, float b) const {
    if (b != truncf(b) || !(fabsf(b) < 1e6f)) return a * exp2f(b);
    return ldexpf(a, static_cast<int>(b));
  }
  __device__ double operator()(double a, double b) const {
    if (b != trunc(b) || !(fabs(b) < 1e6)) return a * exp2(b);
    return ldexp(a, static_cast<int>(b));
  }
};
struct Heaviside {
  template <class C>
  __device__ C operator()(C a, C b) const {
    return a == C(0) ? b : a != a ? a : static_cast<C>(a > C(0));
  }
};

// The number next to a on the way to b.
struct NextAfter {
  __device__ float operator()(float a, float b) const { return nextafterf(a, b); }
  __device__ double operator()(double a, double b) const { return nextafter(a, b); }
};
// The same among the numbers of a 16-bit dtype, whose bits are in the order of their sizes.
template <class T>
struct NextAfter16 {
  OFL_HOST_DEVICE static float Number(uint16_t bits) {
    T x;
    memcpy(&x, &bits, sizeof(x));
    return static_cast<float>(x);
  }
  OFL_HOST_DEVICE float operator()(float a, float b) const {
    const T x(a);
    uint16_t bits;
    memcpy(&bits, &x, sizeof(bits));
    const bool grows = (b > a) == (a > 0.0f);
    const float moved = Number(static_cast<uint16_t>(grows ? bits + 1 : bits - 1));
    const float least = copysignf(Number(1), b);
    const float y = a == 0.0f ? least : moved;
    return a == b ? b : a != a || b != b ? a + b : y;
  }
};
using NextHalf = NextAfter16<__half>;
using NextBFloat = NextAfter16<__nv_bfloat16>;

}  // namespace cuda
}  // namespace oneflow_lite
