// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of softmax: exponentials, and the online merge of (maximum, sum of exponentials)
// (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018).
#pragma once

#include "primitive/cuda/chip/group.cuh"
#include "primitive/cuda/chip/pack.cuh"

namespace oneflow_lite::cuda {

template <class C>
OFL_DEVICE C MinusInfinity() {
  return -static_cast<C>(__int_as_float(0x7f800000));
}

inline constexpr float kLog2E = 1.4426950408889634f;

// 2^x by the hardware (2 ulp). Results below 2^-126 become 0.
OFL_DEVICE float Exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// exp(x) for x <= 0, where the maximum was subtracted before. In float32 one multiplication and the
// hardware's base-2 exponential (2 ulp); the product's rounding adds |x| * 2^-24 relative error to
// a value of e^x, at most 2.2e-8 absolute. Results below 2^-126 become 0.
OFL_DEVICE float ExpNonPositive(float x) { return Exp2(x * kLog2E); }
// In float64 without the branch that exp takes for small results, which keeps exponentials of
// neighbours from overlapping: 2^n * e^r with |r| <= ln(2) / 2, where e^r = 1 + r + r^2 q(r) with q
// through the Chebyshev nodes (1.7e-17 off). e^-708 = 2^-1021.4 is the smallest result; what is
// less becomes 0. x is at most 709, which is not asked: y of a log_softmax is at most 0.
OFL_DEVICE double ExpNonPositive(double x) {
  constexpr double kRounder = 6755399441055744.0;  // 1.5 * 2^52: what is added to it is rounded
  constexpr double kQ[] = {0.5000000000000001,    0.16666666666666669,    0.04166666666662399,
                           0.008333333333330051,  0.0013888888917281794,  0.00019841269863105968,
                           2.480152119021773e-05, 2.7557268378684192e-06, 2.7620138719733994e-07,
                           2.5100424157005067e-08};
  const double rounded = fma(x, 1.4426950408889634, kRounder), n = rounded - kRounder;
  const double r = fma(n, -2.3190468138462996e-17, fma(n, -0.6931471805599453, x));
  double q = kQ[9];
#pragma unroll
  for (int i = 8; i >= 0; --i) q = fma(q, r, kQ[i]);
  const double power = __hiloint2double((__double2loint(rounded) + 1023) << 20, 0);  // 2^n
  const double y = fma(fma(q, r, 1.0), r, 1.0) * power;
  return x < -708.0 ? 0.0 : y;
}

// 1 / x of a normal number by the hardware (1 ulp).
OFL_DEVICE float ReciprocalOf(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
OFL_DEVICE double ReciprocalOf(double x) { return 1 / x; }

OFL_DEVICE float LogOf(float x) { return logf(x); }
OFL_DEVICE double LogOf(double x) { return log(x); }

// The largest element. A NaN loses, in packs of 16-bit elements too, which go by two.
template <class C, class E, int N>
OFL_DEVICE C MaxOf(const Pack<E, N>& x) {
  if constexpr (sizeof(E) == 2 && N > 1) {
    PairOf<E> pairs[N / 2];
    memcpy(pairs, &x, sizeof(x));
#pragma unroll
    for (int i = 1; i < N / 2; ++i) pairs[0] = __hmax2(pairs[0], pairs[i]);
    return Larger{}(ConvertTo<C>(pairs[0].x), ConvertTo<C>(pairs[0].y));
  } else {
    C max = ConvertTo<C>(x.v[0]);
#pragma unroll
    for (int i = 1; i < N; ++i) max = Larger{}(max, ConvertTo<C>(x.v[i]));
    return max;
  }
}

// The maximum of some elements and the sum of exp(x - max) over them. No elements, or only -inf:
// (-inf, 0). A NaN among them lives on in the sum.
//
// kBase2, for elements of small range: `max` is max * log2(e), rounded, and the exponentials are
// 2^(x * log2(e) - max), with one rounding each; what max's own rounding is off by, they share.
template <class C, bool kBase2 = false>
struct OnlineSum {
  C max;
  C sum;

  OFL_DEVICE OnlineSum(C max = MinusInfinity<C>(), C sum = 0) : max(max), sum(sum) {}

  // -inf - -inf would be NaN; a part that holds nothing but -inf must weigh nothing instead.
  static OFL_DEVICE C Finite(C max) { return max == MinusInfinity<C>() ? C(0) : max; }
  static OFL_DEVICE C Level(C max) {
    if constexpr (kBase2) return max * kLog2E;
    return max;
  }
  // The exponential of an element relative to a level.
  static OFL_DEVICE C Exponential(C x, C level) {
    if constexpr (kBase2) return Exp2(fmaf(x, kLog2E, -level));
    return ExpNonPositive(x - level);
  }
  // The weight of a sum relative to `from` among those relative to `to`: 1 where they are equal,
  // also where both are +inf or -inf.
  static OFL_DEVICE C Weight(C from, C to) {
    if (from == to) return C(1);
    if constexpr (kBase2) return Exp2(from - to);
    return ExpNonPositive(from - to);
  }

  template <int N>
  OFL_DEVICE void Add(const Pack<C, N>& x) {
    const C larger = Larger{}(max, Level(MaxOf<C>(x)));
    const C shift = Finite(larger);
    C part = 0;
#pragma unroll
    for (int i = 0; i < N; ++i) part += Exponential(x.v[i], shift);
    sum = sum * Weight(max, shift) + part;
    max = larger;
  }
};

// exp(x - max) over Weight(), which is 1: max itself has 1 to the last bit.
template <class C>
struct ShiftedExponential {
  C max;
  ShiftedExponential() = default;
  OFL_DEVICE explicit ShiftedExponential(C max) : max(OnlineSum<C>::Finite(max)) {}
  OFL_DEVICE C operator()(C x) const { return ExpNonPositive(x - max); }
  OFL_DEVICE C Weight() const { return C(1); }
};
// exp(x - max) over Weight(): one number for all x.
template <class C>
struct RowExponential : ShiftedExponential<C> {
  using ShiftedExponential<C>::ShiftedExponential;
  RowExponential() = default;
};
// One multiply-add and the hardware's base-2 exponential: 2^(slope x - level), with level = slope
// max rounded, and what that is off by in the weight: up to 64 where max is below 2^30. From there
// on all x but max are so far below it that any slope does, and 1 rounds nothing.
template <>
struct RowExponential<float> {
  float max, slope, level;
  RowExponential() = default;
  OFL_DEVICE explicit RowExponential(float row_max) : max(OnlineSum<float>::Finite(row_max)) {
    slope = fabsf(max) < 0x1p30f ? kLog2E : 1.0f;
    level = max * slope;
  }
  OFL_DEVICE float operator()(float x) const { return Exp2(fmaf(x, slope, -level)); }
  OFL_DEVICE float Weight() const { return Exp2(-fmaf(max, slope, -level)); }
};

template <class C, bool kBase2>
OFL_DEVICE OnlineSum<C, kBase2> ShuffleXor(OnlineSum<C, kBase2> v, int mask) {
  v.max = ShuffleXor(v.max, mask);
  v.sum = ShuffleXor(v.sum, mask);
  return v;
}

// Symmetric to the last bit, so that all members of a group get the same result.
struct MergeOnline {
  template <class C, bool kBase2>
  OFL_DEVICE OnlineSum<C, kBase2> operator()(const OnlineSum<C, kBase2>& a,
                                             const OnlineSum<C, kBase2>& b) const {
    const bool a_leads = a.max >= b.max;
    const OnlineSum<C, kBase2> lead = a_leads ? a : b, other = a_leads ? b : a;
    const C weight = OnlineSum<C, kBase2>::Weight(other.max, lead.max);
    return {lead.max, lead.sum + other.sum * weight};
  }
};

// The maximum first, then the sums, each brought to that maximum once.
template <int kLanes, class C, bool kBase2>
OFL_DEVICE OnlineSum<C, kBase2> ReduceLanes(const OnlineSum<C, kBase2>& v, MergeOnline) {
  const C max = ReduceLanes<kLanes>(v.max, Larger{});
  const C weight = OnlineSum<C, kBase2>::Weight(v.max, max);
  return {max, ReduceLanes<kLanes>(v.sum * weight, Plus{})};
}

}  // namespace oneflow_lite::cuda
