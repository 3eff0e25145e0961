// SPDX-License-Identifier: Apache-2.0
//
// The statistics of a row that softmax and what is fused with it need: the maximum, and the sum of
// exp(x - max). Compiled once per instruction set, like simd-inl.h.
#if defined(OFL_PRIMITIVE_CPU_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OFL_PRIMITIVE_CPU_SOFTMAX_INL_H_
#undef OFL_PRIMITIVE_CPU_SOFTMAX_INL_H_
#else
#define OFL_PRIMITIVE_CPU_SOFTMAX_INL_H_
#endif

#include "primitive/cpu/simd-inl.h"
#include "primitive/cpu/softmax_plan.h"

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {

// The largest of n values; load(i, count) gives a vector of them, -inf in the lanes beyond count.
template <class D, class Load, class C = hn::TFromD<D>>
HWY_INLINE C MaxOfLoaded(D d, size_t n, Load load) {
  const auto lowest = hn::Set(d, -std::numeric_limits<C>::infinity());
  hn::Vec<D> m[4] = {lowest, lowest, lowest, lowest};
  ForVectors(d, n, [&](size_t i, size_t count, auto slot) OFL_SIMD_LAMBDA {
    m[slot] = hn::Max(m[slot], load(i, count));
  });
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(hn::Max(m[0], m[1]), hn::Max(m[2], m[3]))));
}

// sum of exp(x - max); each term goes to keep(i, count, term) as well. Blocks of 128 vectors are
// summed in the compute type, at most 32 terms per lane, and the blocks in double.
template <class D, class Load, class Keep, class C = hn::TFromD<D>>
HWY_INLINE double SumExpOfLoaded(D d, size_t n, C max, Load load, Keep keep) {
  const auto m = hn::Set(d, max);
  const size_t block = 128 * hn::Lanes(d);
  double total = 0;
  for (size_t begin = 0; begin < n; begin += block) {
    const auto zero = hn::Zero(d);
    hn::Vec<D> s[4] = {zero, zero, zero, zero};
    ForVectors(d, std::min(block, n - begin),
               [&](size_t i, size_t count, auto slot) OFL_SIMD_LAMBDA {
                 const auto e = ExpNonPositive(d, hn::Sub(load(begin + i, count), m));
                 keep(begin + i, count, e);
                 s[slot] = hn::Add(s[slot], e);
               });
    total += hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s[0], s[1]), hn::Add(s[2], s[3]))));
  }
  return total;
}

// The same of n elements in memory.
template <class T>
HWY_INLINE ComputeOf<T> MaxOf(const T* x, size_t n) {
  const TagOf<T> d;
  const auto lowest = hn::Set(d, -std::numeric_limits<ComputeOf<T>>::infinity());
  return MaxOfLoaded(d, n, [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    return LoadUpTo(d, x + i, count, lowest);
  });
}
template <class T, class Keep>
HWY_INLINE double SumExp(const T* x, size_t n, ComputeOf<T> max, Keep keep) {
  const TagOf<T> d;
  const auto lowest = hn::Set(d, -std::numeric_limits<ComputeOf<T>>::infinity());
  return SumExpOfLoaded(
      d, n, max,
      [&](size_t i, size_t count) OFL_SIMD_LAMBDA { return LoadUpTo(d, x + i, count, lowest); },
      keep);
}

template <class T>
inline RowStats Stats(int64_t n, const void* x_data) {
  const T* x = static_cast<const T*>(x_data);
  const auto max = MaxOf(x, n);
  const bool masked = max == -std::numeric_limits<ComputeOf<T>>::infinity();
  return {max, SumExp(x, n, masked ? 0 : max, [](size_t, size_t, auto) OFL_SIMD_LAMBDA {})};
}

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#endif  // OFL_PRIMITIVE_CPU_SOFTMAX_INL_H_
