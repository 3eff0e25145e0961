// SPDX-License-Identifier: Apache-2.0
#include "primitive/cpu/beyond.h"

#include "primitive/cpu/simd_targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/beyond.cpp"
#include "primitive/cpu/foreach_target.h"
// clang-format on
#include "primitive/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

// Whether v is beyond the bound, or has no order with it.
template <bool kLarger>
struct IsBeyond {
  template <class D>
  HWY_INLINE hn::Mask<D> operator()(D, hn::Vec<D> v, hn::Vec<D> bound) const {
    if constexpr (hwy::IsFloat<hn::TFromD<D>>()) {
      return hn::Not(kLarger ? hn::Le(v, bound) : hn::Ge(v, bound));
    } else {
      return kLarger ? hn::Gt(v, bound) : hn::Lt(v, bound);
    }
  }
};
template <bool kLarger>
struct IsReaching {
  template <class D>
  HWY_INLINE hn::Mask<D> operator()(D, hn::Vec<D> v, hn::Vec<D> bound) const {
    if constexpr (hwy::IsFloat<hn::TFromD<D>>()) {
      return hn::Or(kLarger ? hn::Ge(v, bound) : hn::Le(v, bound), hn::IsNaN(v));
    } else {
      return hn::Not(kLarger ? hn::Lt(v, bound) : hn::Gt(v, bound));
    }
  }
};

template <class T, class Test>
int64_t Next(const void* x_data, int64_t begin, int64_t end, const void* bound_data) {
  const TagOf<T> d;
  const T* x = static_cast<const T*>(x_data);
  const auto bound = hn::Set(d, static_cast<ComputeOf<T>>(*static_cast<const T*>(bound_data)));
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = begin;
  for (; i + lanes <= end; i += lanes) {
    const auto found = Test()(d, LoadFrom(d, x + i), bound);
    if (!hn::AllFalse(d, found)) return i + static_cast<int64_t>(hn::FindKnownFirstTrue(d, found));
  }
  if (i == end) return end;
  // The last whole vector of the row, whose first lanes are done, or all of a shorter row.
  const int64_t start = std::max<int64_t>(0, end - lanes);
  const auto v = LoadUpTo(d, x + start, static_cast<size_t>(end - start), bound);
  const auto seen = hn::FirstN(d, static_cast<size_t>(i - start));
  const auto there = hn::FirstN(d, static_cast<size_t>(end - start));
  const auto found = hn::And(hn::AndNot(seen, there), Test()(d, v, bound));
  if (!hn::AllFalse(d, found)) {
    return start + static_cast<int64_t>(hn::FindKnownFirstTrue(d, found));
  }
  return end;
}
template <template <bool> class Test>
BeyondFunction Of(DType dtype, bool larger) {
  return VisitAll(dtype, [&]<class T>(Tag<T>) -> BeyondFunction {
    using Number = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
    return larger ? &Next<Number, Test<true>> : &Next<Number, Test<false>>;
  });
}

}  // namespace

BeyondFunction BeyondOf(DType dtype, bool larger) { return Of<IsBeyond>(dtype, larger); }
BeyondFunction ReachingOf(DType dtype, bool larger) { return Of<IsReaching>(dtype, larger); }

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {

HWY_EXPORT(BeyondOf);
HWY_EXPORT(ReachingOf);

BeyondFunction FindBeyond(DType dtype, bool larger) {
  return HWY_DYNAMIC_DISPATCH(BeyondOf)(dtype, larger);
}
BeyondFunction FindReaching(DType dtype, bool larger) {
  return HWY_DYNAMIC_DISPATCH(ReachingOf)(dtype, larger);
}

}  // namespace oneflow_lite
#endif  // HWY_ONCE
