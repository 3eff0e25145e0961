// SPDX-License-Identifier: Apache-2.0
//
// The loops of reductions that carry more than one number: variances, sums of exponentials, powers.
#include <cmath>

#include "primitive/cpu/reduce_loops.h"
#include "primitive/cpu/simd_targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/reduce_moments.cpp"
#include "primitive/cpu/foreach_target.h"
// clang-format on
#include "primitive/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

// The same of what is infinite, or whose sums in C are.
template <class C>
void SpreadOfHuge(int64_t n, const C* x, double* mean, double* squares) {
  double total = 0, all = 0;
  for (int64_t i = 0; i < n; ++i) total += static_cast<double>(x[i]);
  *mean = total / static_cast<double>(n);
  for (int64_t i = 0; i < n; ++i) {
    const double e = static_cast<double>(x[i]) - *mean;
    all += e * e;
  }
  *squares = all;
}

// The sum of the distances from the middle, and of their squares, times 2^126 if kScaled.
template <bool kScaled, class C>
void SumDistances(int64_t n, const C* x, C middle, double* sum, double* squares) {
  const hn::ScalableTag<C> d;
  const auto zero = hn::Zero(d), m = hn::Set(d, middle);
  hn::Vec<decltype(d)> s[4] = {zero, zero, zero, zero}, q[4] = {zero, zero, zero, zero};
  ForVectors(d, n, [&](size_t i, size_t count, auto slot) OFL_SIMD_LAMBDA {
    auto e = hn::Sub(LoadUpTo(d, x + i, count, m), m);
    s[slot] = hn::Add(s[slot], e);
    if constexpr (kScaled) e = hn::Mul(e, hn::Set(d, C(0x1p63)));
    q[slot] = hn::MulAdd(e, e, q[slot]);
  });
  const auto all = [&](const auto(&v)[4]) OFL_SIMD_LAMBDA {
    return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(v[0], v[1]), hn::Add(v[2], v[3]))));
  };
  *sum = all(s);
  *squares = all(q);
}

// About m, the mean rounded to C, the mean is m + sum d / n and the squares sum d^2 - (sum d)^2 /
// n. Where m is infinite, because the sum is, about the first element; about 0 where that is, too.
template <class C>
void SpreadRow(int64_t n, const C* x, double* mean, double* squares) {
  const hn::ScalableTag<C> d;
  const auto zero = hn::Zero(d);
  hn::Vec<decltype(d)> s[4] = {zero, zero, zero, zero};
  ForVectors(d, n, [&](size_t i, size_t count, auto slot) OFL_SIMD_LAMBDA {
    s[slot] = hn::Add(s[slot], LoadUpTo(d, x + i, count, zero));
  });
  const C total = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s[0], s[1]), hn::Add(s[2], s[3]))));
  const C rounded = total / static_cast<C>(n), first = std::isfinite(x[0]) ? x[0] : C(0);
  const C middle = std::isfinite(rounded) ? rounded : first;
  double sum, all;
  SumDistances<false>(n, x, middle, &sum, &all);
  if (!std::isfinite(sum) || !std::isfinite(all)) return SpreadOfHuge(n, x, mean, squares);
  if (sizeof(C) < sizeof(double) && all < kLeastSquares<C> * static_cast<double>(n)) {
    SumDistances<true>(n, x, middle, &sum, &all);
    all *= 0x1p-126;
  }
  *mean = middle + sum / static_cast<double>(n);
  const double left = all - sum * sum / static_cast<double>(n);
  *squares = left < 0 ? 0 : left;
}

template <class C>
void SpreadTo(int64_t n, const C* x, const C* shift, C* sum, C* squares) {
  const hn::ScalableTag<C> d;
  const auto zero = hn::Zero(d);
  ForEachVector(d, n, [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    const auto e = hn::Sub(LoadUpTo(d, x + i, count, zero), LoadUpTo(d, shift + i, count, zero));
    StoreUpTo(hn::Add(LoadUpTo(d, sum + i, count, zero), e), d, sum + i, count);
    StoreUpTo(hn::MulAdd(e, e, LoadUpTo(d, squares + i, count, zero)), d, squares + i, count);
  });
}

template <class C>
double ExpRow(int64_t n, const C* x, C max) {
  const hn::ScalableTag<C> d;
  const auto m = hn::Set(d, max), one = hn::Set(d, C(1)), zero = hn::Zero(d);
  hn::Vec<decltype(d)> s[4] = {zero, zero, zero, zero};
  ForVectors(d, n, [&](size_t i, size_t count, auto slot) OFL_SIMD_LAMBDA {
    const auto v = LoadUpTo(d, x + i, count, m);
    auto e = hn::IfThenElse(hn::Eq(v, m), one, ExpNonPositive(d, hn::Sub(v, m)));
    if (count < hn::Lanes(d)) e = hn::IfThenElse(hn::FirstN(d, count), e, zero);
    s[slot] = hn::Add(s[slot], e);
  });
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s[0], s[1]), hn::Add(s[2], s[3]))));
}

template <class C>
void ExpTo(int64_t n, const C* x, C* max, C* sum) {
  const hn::ScalableTag<C> d;
  const auto one = hn::Set(d, C(1)), zero = hn::Zero(d);
  ForEachVector(d, n, [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    const auto v = LoadUpTo(d, x + i, count, zero), m = LoadUpTo(d, max + i, count, zero);
    const auto s = LoadUpTo(d, sum + i, count, zero);
    const auto t =
        hn::IfThenElse(hn::Eq(v, m), one, ExpNonPositive(d, hn::Neg(hn::Abs(hn::Sub(v, m)))));
    const auto larger = hn::Gt(v, m);
    StoreUpTo(hn::IfThenElse(larger, hn::MulAdd(s, t, one), hn::Add(s, t)), d, sum + i, count);
    StoreUpTo(hn::IfThenElse(larger, v, m), d, max + i, count);
  });
}

template <class C>
void ExpFinish(int64_t n, const C* max, const C* sum, C* y) {
  const hn::ScalableTag<C> d;
  const auto one = hn::Set(d, C(1));
  ForEachVector(d, n, [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    const auto log = LogOf(d, LoadUpTo(d, sum + i, count, one));
    StoreUpTo(hn::Add(LoadUpTo(d, max + i, count, one), log), d, y + i, count);
  });
}

void Powers(int64_t n, const double* x, double p, double* y) {
  const hn::ScalableTag<double> d;
  const auto power = hn::Set(d, p), zero = hn::Zero(d);
  const auto at_zero = hn::Set(d, p > 0 ? 0.0 : std::numeric_limits<double>::infinity());
  ForEachVector(d, n, [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    const auto v = hn::Abs(LoadUpTo(d, x + i, count, zero));
    const auto e = ExpOf(d, hn::Mul(power, LogOf(d, v)));
    StoreUpTo(hn::IfThenElse(hn::Eq(v, zero), at_zero, e), d, y + i, count);
  });
}

}  // namespace

SpreadLoops<float> FloatSpread() { return {&SpreadRow<float>, &SpreadTo<float>}; }
SpreadLoops<double> DoubleSpread() { return {&SpreadRow<double>, &SpreadTo<double>}; }
ExpLoops<float> FloatExp() { return {&ExpRow<float>, &ExpTo<float>, &ExpFinish<float>}; }
ExpLoops<double> DoubleExp() { return {&ExpRow<double>, &ExpTo<double>, &ExpFinish<double>}; }
PowerLoop PowerOf() { return &Powers; }

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {
namespace {

HWY_EXPORT(FloatSpread);
HWY_EXPORT(DoubleSpread);
HWY_EXPORT(FloatExp);
HWY_EXPORT(DoubleExp);
HWY_EXPORT(PowerOf);

}  // namespace

template <>
SpreadLoops<float> FindSpreadLoops<float>() {
  return HWY_DYNAMIC_DISPATCH(FloatSpread)();
}
template <>
SpreadLoops<double> FindSpreadLoops<double>() {
  return HWY_DYNAMIC_DISPATCH(DoubleSpread)();
}
template <>
ExpLoops<float> FindExpLoops<float>() {
  return HWY_DYNAMIC_DISPATCH(FloatExp)();
}
template <>
ExpLoops<double> FindExpLoops<double>() {
  return HWY_DYNAMIC_DISPATCH(DoubleExp)();
}
PowerLoop FindPowerLoop() { return HWY_DYNAMIC_DISPATCH(PowerOf)(); }

}  // namespace oneflow_lite
#endif  // HWY_ONCE
