// SPDX-License-Identifier: Apache-2.0
//
// Function objects of three operands and the numbers beside them; primitive/cpu/ternary.cpp has the
// same formulas. Slopes are times the gradient g.
#pragma once

#include "primitive/cuda/functions/math.cuh"
#include "primitive/op_kinds.h"

namespace oneflow_lite {
namespace cuda {

__device__ inline float Size(float x) { return fabsf(x); }
__device__ inline double Size(double x) { return fabs(x); }
__device__ inline float LogOf(float x) { return logf(x); }
__device__ inline double LogOf(double x) { return log(x); }
__device__ inline float Log1pOf(float x) { return log1pf(x); }
__device__ inline double Log1pOf(double x) { return log1p(x); }
__device__ inline float PowOf(float a, float b) { return powf(a, b); }
__device__ inline double PowOf(double a, double b) { return pow(a, b); }

// From the end that is nearer, so that weights 0 and 1 give the ends.
struct Lerp {
  template <class C>
  __device__ C operator()(C a, C b, C w, const TernaryNumbers&) const {
    const C way = b - a;
    return Size(w) < C(0.5) ? a + w * way : b - way * (C(1) - w);
  }
};
struct AddCMul {
  template <class C>
  __device__ C operator()(C a, C b, C c, const TernaryNumbers& v) const {
    if constexpr (std::is_integral_v<C>) {
      using U = std::conditional_t<sizeof(C) == 8, uint64_t, uint32_t>;
      return static_cast<C>(U(a) + U(v.whole) * U(b) * U(c));
    } else {
      return a + C(v.v) * b * c;
    }
  }
};
struct AddCDiv {
  template <class C>
  __device__ C operator()(C a, C b, C c, const TernaryNumbers& v) const {
    return a + C(v.v) * (b / c);
  }
};
struct MulDiv {
  template <class C>
  __device__ C operator()(C a, C b, C c, const TernaryNumbers& v) const {
    return C(v.v) * a * (b / c);
  }
};
struct Clamp {
  template <class C>
  __device__ C operator()(C x, C low, C high, const TernaryNumbers&) const {
    if constexpr (std::is_same_v<C, float>) return fast::Smaller(fast::Larger(x, low), high);
    const C raised = x > low || x != x ? x : low;
    return raised < high || raised != raised ? raised : high;
  }
};
struct ClampInside {
  template <class C>
  __device__ bool operator()(C x, C low, C high, const TernaryNumbers&) const {
    return (x > low || low == -C(INFINITY)) && (x < high || high == C(INFINITY)) && x == x;
  }
};
// functional/ternary.h says what the shares are.
struct ClampShare {
  template <class C>
  __device__ C operator()(C x, C low, C high, const TernaryNumbers& v) const {
    const bool inverted = low > high, in_order = low < high;
    const bool below = x < low && !inverted, above = x > high || inverted;
    const bool at_low = in_order && x == low, at_high = in_order && x == high;
    // `whole` is the same for all threads.
    const bool all = v.whole == 1 ? below : v.whole == 2 ? above : !below && !above;
    const bool half = v.whole == 1 ? at_low : v.whole == 2 ? at_high : at_low || at_high;
    return half ? C(0.5) : all ? C(1) : C(0);
  }
};
struct IsClose {
  template <class C>
  __device__ bool operator()(C a, C b, C, const TernaryNumbers& v) const {
    using W = std::conditional_t<std::is_integral_v<C>, double, C>;
    const W x = static_cast<W>(a), y = static_cast<W>(b);
    if (a == b) return true;
    if (a != a && b != b) return v.equal_nan;
    return !isinf(y) && Size(x - y) <= W(v.v) + W(v.rtol) * Size(y);
  }
};

struct PowSlopeA {
  template <class C>
  __device__ C operator()(C g, C a, C b, const TernaryNumbers&) const {
    if (b == C(0)) return C(0);
    const C power = b == C(3) ? a * a : b == C(4) ? a * a * a : PowOf(a, b - C(1));
    return g * (b * power);
  }
};
struct PowSlopeB {
  template <class C>
  __device__ C operator()(C g, C a, C b, const TernaryNumbers&) const {
    return a == C(0) && b >= C(0) ? C(0) : g * (PowOf(a, b) * LogOf(a));
  }
};
// Of the first of two of which kSign = 1 the larger, -1 the smaller is chosen; with kNumbers a
// number beside NaN.
template <int kSign, bool kNumbers>
struct ChosenSlope {
  template <class C>
  __device__ C operator()(C g, C own, C other, const TernaryNumbers&) const {
    if (kNumbers && own != own && other == other) return C(0);
    if (kSign > 0 ? other > own : other < own) return C(0);
    return other == own ? g * C(0.5) : g;
  }
};
// The quotient of fmod, exact where it fits.
struct FmodSlopeB {
  __device__ float operator()(float g, float a, float b, const TernaryNumbers&) const {
    return -g * rintf((a - fmodf(a, b)) / b);
  }
  __device__ double operator()(double g, double a, double b, const TernaryNumbers&) const {
    return -g * rint((a - fmod(a, b)) / b);
  }
};
struct Atan2SlopeA {
  template <class C>
  __device__ C operator()(C g, C a, C b, const TernaryNumbers&) const {
    if (isinf(b) && a == a) return C(0);
    const C length = Hypot{}(a, b);
    return length == C(0) ? g * b : g * (b / length) / length;  // 0 at the origin, as in PyTorch
  }
};
struct LogAddExpSlope {
  __device__ float Exp(float x) const { return expf(x); }
  __device__ double Exp(double x) const { return exp(x); }
  template <class C>
  __device__ C operator()(C g, C a, C b, const TernaryNumbers& v) const {
    return g / (C(1) + Exp(a == b ? C(0) : C(v.v) * (b - a)));
  }
};
struct XLogYSlopeA {
  template <class C>
  __device__ C operator()(C g, C a, C b, const TernaryNumbers& v) const {
    const bool finite = b + C(v.v) > C(0) && !isinf(b);
    if (a == C(0) && !finite && b == b) return C(0);
    return g * (v.v != 0 ? Log1pOf(b) : LogOf(b));
  }
};
struct XLogYSlopeB {
  template <class C>
  __device__ C operator()(C g, C a, C b, const TernaryNumbers& v) const {
    return a == C(0) && b == b ? C(0) : g * (a / (b + C(v.v)));
  }
};
struct CopySignSlope {
  template <class C>
  __device__ C operator()(C g, C a, C b, const TernaryNumbers&) const {
    if (a == C(0)) return C(0);
    return (signbit(a) != 0) == (signbit(b) != 0) ? g : -g;
  }
};
struct PreluSlopeA {
  template <class C>
  __device__ C operator()(C g, C x, C weight, const TernaryNumbers&) const {
    return x > C(0) ? g : g * weight;
  }
};
struct PreluSlopeB {
  template <class C>
  __device__ C operator()(C g, C x, C factor, const TernaryNumbers&) const {
    return x > C(0) ? C(0) : g * factor;
  }
};

}  // namespace cuda
}  // namespace oneflow_lite
