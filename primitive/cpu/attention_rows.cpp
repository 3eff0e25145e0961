// SPDX-License-Identifier: Apache-2.0
#include "primitive/cpu/attention_rows.h"

#include <cmath>

#include "primitive/cpu/simd_targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/attention_rows.cpp"
#include "primitive/cpu/foreach_target.h"
// clang-format on
#include "primitive/cpu/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

template <class C>
constexpr C kLowest = -std::numeric_limits<C>::infinity();

// x[i] = f(i, x[i]), vector by vector; f gets how many elements it has to look at.
template <class C, class F>
HWY_INLINE void Update(int64_t n, C* x, F f) {
  const TagOf<C> d;
  const auto zero = hn::Zero(d);
  ForEachVector(d, static_cast<size_t>(n), [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    StoreUpTo(f(i, count, LoadUpTo(d, x + i, count, zero)), d, x + i, count);
  });
}

template <class C>
HWY_NOINLINE void Add(int64_t n, const C* added, C* e) {
  const TagOf<C> d;
  Update(n, e, [&](size_t i, size_t count, auto v) OFL_SIMD_LAMBDA {
    return hn::Add(v, LoadUpTo(d, added + i, count, hn::Zero(d)));
  });
}

template <class C>
HWY_NOINLINE void Hide(int64_t n, const uint8_t* keep, C* e) {
  // The compiler's selection loop is as good as one by hand: a byte per element is read.
  for (int64_t i = 0; i < n; ++i) e[i] = keep[i] ? e[i] : kLowest<C>;
}

template <class C>
HWY_NOINLINE void Scale(int64_t n, C factor, C* x) {
  const TagOf<C> d;
  const auto f = hn::Set(d, factor);
  Update(n, x, [&](size_t, size_t, auto v) OFL_SIMD_LAMBDA { return hn::Mul(v, f); });
}

template <class C>
HWY_NOINLINE void Multiply(int64_t n, const C* factors, C* x) {
  const TagOf<C> d;
  Update(n, x, [&](size_t i, size_t count, auto v) OFL_SIMD_LAMBDA {
    return hn::Mul(v, LoadUpTo(d, factors + i, count, hn::Zero(d)));
  });
}

template <class C>
HWY_NOINLINE double Exponentiate(int64_t n, C* e, C* max, C* factor) {
  const TagOf<C> d;
  const C before = *max, largest = n > 0 ? MaxOf(e, static_cast<size_t>(n)) : kLowest<C>;
  const C now = before > largest ? before : largest;  // NaN where the largest is
  const C base = now == kLowest<C> ? C(0) : now;
  *max = now;
  *factor = before == now ? C(1) : std::exp(before - base);
  return SumExp(e, static_cast<size_t>(n), base,
                [&](size_t i, size_t count, auto v)
                    OFL_SIMD_LAMBDA { StoreUpTo(v.part[0], d, e + i, count); });
}

template <class C>
HWY_NOINLINE void Differentiate(int64_t n, C base_of_all, C rest_of_all, C delta, C scale, C* e,
                                C* dp) {
  const TagOf<C> d;
  const auto base = hn::Set(d, base_of_all), rest = hn::Set(d, rest_of_all);
  const auto less = hn::Set(d, delta), factor = hn::Set(d, scale);
  const auto zero = hn::Zero(d);
  ForEachVector(d, static_cast<size_t>(n), [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    const auto score = hn::Sub(LoadUpTo(d, e + i, count, zero), base);
    const auto p = ExpNonPositive(d, hn::Sub(score, rest));
    const auto g = hn::Sub(LoadUpTo(d, dp + i, count, zero), less);
    StoreUpTo(p, d, e + i, count);
    StoreUpTo(hn::Mul(hn::Mul(p, g), factor), d, dp + i, count);
  });
}

template <class C>
HWY_NOINLINE double Dot(int64_t n, const C* a, const C* b) {
  const TagOf<C> d;
  const auto zero = hn::Zero(d);
  auto sum = zero;
  ForEachVector(d, static_cast<size_t>(n), [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    sum = hn::MulAdd(LoadUpTo(d, a + i, count, zero), LoadUpTo(d, b + i, count, zero), sum);
  });
  return static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sum)));
}

template <class C>
const AttentionRows<C>* Rows() {
  static constexpr AttentionRows<C> kRows = {
      Add<C>, Hide<C>, Scale<C>, Multiply<C>, Exponentiate<C>, Differentiate<C>, Dot<C>};
  return &kRows;
}

const AttentionRows<float>* FloatRows() { return Rows<float>(); }
const AttentionRows<double>* DoubleRows() { return Rows<double>(); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {
namespace {

HWY_EXPORT(FloatRows);
HWY_EXPORT(DoubleRows);

}  // namespace

template <>
const AttentionRows<float>& GetAttentionRows<float>() {
  static const AttentionRows<float>* rows = HWY_DYNAMIC_DISPATCH(FloatRows)();
  return *rows;
}
template <>
const AttentionRows<double>& GetAttentionRows<double>() {
  static const AttentionRows<double>* rows = HWY_DYNAMIC_DISPATCH(DoubleRows)();
  return *rows;
}

}  // namespace oneflow_lite
#endif  // HWY_ONCE
