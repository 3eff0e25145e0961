// SPDX-License-Identifier: Apache-2.0
#include "primitive/cpu/reduce_loops.h"

#include "primitive/cpu/simd_targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/reduce_loops.cpp"
#include "hwy/foreach_target.h"
// clang-format on
#include "primitive/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

template <class D>
HWY_INLINE hn::Vec<D> MaxOrNan(D, hn::Vec<D> m, hn::Vec<D> x) {
  if constexpr (hwy::IsFloat<hn::TFromD<D>>()) {
    return hn::IfThenElse(hn::Or(hn::Gt(x, m), hn::IsNaN(x)), x, m);  // a NaN in m stays
  } else {
    return hn::Max(m, x);
  }
}

template <class C>
SumOf<C> SumRow(int64_t n, const C* x) {
  const hn::ScalableTag<C> d;
  const auto zero = hn::Zero(d);
  hn::Vec<decltype(d)> s[4] = {zero, zero, zero, zero};
  ForVectors(d, n, [&](size_t i, size_t count, auto slot) OFL_SIMD_LAMBDA {
    s[slot] = hn::Add(s[slot], LoadUpTo(d, x + i, count, zero));
  });
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s[0], s[1]), hn::Add(s[2], s[3]))));
}

template <class C>
C MaxRow(int64_t n, const C* x) {
  const hn::ScalableTag<C> d;
  const auto first = hn::Set(d, x[0]);
  hn::Vec<decltype(d)> m[4] = {first, first, first, first};
  ForVectors(d, n, [&](size_t i, size_t count, auto slot) OFL_SIMD_LAMBDA {
    m[slot] = MaxOrNan(d, m[slot], LoadUpTo(d, x + i, count, first));
  });
  const auto all = MaxOrNan(d, MaxOrNan(d, m[0], m[1]), MaxOrNan(d, m[2], m[3]));
  HWY_ALIGN C lanes[hn::MaxLanes(d)];
  hn::Store(all, d, lanes);
  C max = lanes[0];
  for (size_t i = 1; i < hn::Lanes(d); ++i) {
    if (!(lanes[i] <= max) && max == max) max = lanes[i];
  }
  return max;
}

template <class C>
void AddTo(int64_t n, const C* x, C* sum) {
  const hn::ScalableTag<C> d;
  const auto zero = hn::Zero(d);
  ForEachVector(d, n, [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    const auto s = hn::Add(LoadUpTo(d, sum + i, count, zero), LoadUpTo(d, x + i, count, zero));
    StoreUpTo(s, d, sum + i, count);
  });
}

template <class C>
void MaxTo(int64_t n, const C* x, C* max) {
  const hn::ScalableTag<C> d;
  const auto zero = hn::Zero(d);
  ForEachVector(d, n, [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    const auto m = LoadUpTo(d, max + i, count, zero);
    StoreUpTo(MaxOrNan(d, m, LoadUpTo(d, x + i, count, zero)), d, max + i, count);
  });
}

}  // namespace

template <class C>
ReduceLoops<C> Loops() {
  return {&SumRow<C>, &MaxRow<C>, &AddTo<C>, &MaxTo<C>};
}
ReduceLoops<float> FloatLoops() { return Loops<float>(); }
ReduceLoops<double> DoubleLoops() { return Loops<double>(); }
ReduceLoops<int64_t> IntLoops() { return Loops<int64_t>(); }

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {
namespace {

HWY_EXPORT(FloatLoops);
HWY_EXPORT(DoubleLoops);
HWY_EXPORT(IntLoops);

}  // namespace

template <>
ReduceLoops<float> FindReduceLoops<float>() {
  return HWY_DYNAMIC_DISPATCH(FloatLoops)();
}
template <>
ReduceLoops<double> FindReduceLoops<double>() {
  return HWY_DYNAMIC_DISPATCH(DoubleLoops)();
}
template <>
ReduceLoops<int64_t> FindReduceLoops<int64_t>() {
  return HWY_DYNAMIC_DISPATCH(IntLoops)();
}

}  // namespace oneflow_lite
#endif  // HWY_ONCE
