// SPDX-License-Identifier: Apache-2.0
//
// What the forward and backward of the norms share: several sums over one row at once. Compiled
// once per instruction set, like simd-inl.h.
#if defined(OFL_PRIMITIVE_CPU_NORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OFL_PRIMITIVE_CPU_NORM_INL_H_
#undef OFL_PRIMITIVE_CPU_NORM_INL_H_
#else
#define OFL_PRIMITIVE_CPU_NORM_INL_H_
#endif

#include "primitive/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {

// The sums of one turn of the loop: four accumulators each, one per slot of ForVectors.
template <class D, int kSums>
struct Accumulators {
  hn::Vec<D> of[kSums][4];
};

// total[k] = sum over [0, n) of what add(i, count, slot, sums) adds to sums.of[k][slot]. Blocks of
// 128 vectors are summed in the compute type, at most 32 terms per lane, and the blocks in double.
template <int kSums, class D, class Add>
HWY_INLINE void SumRow(D d, size_t n, double (&total)[kSums], Add add) {
  const size_t block = 128 * hn::Lanes(d);
  const auto zero = hn::Zero(d);
  for (double& t : total) t = 0;
  for (size_t begin = 0; begin < n; begin += block) {
    Accumulators<D, kSums> s;
    for (auto& of : s.of) of[0] = of[1] = of[2] = of[3] = zero;
    ForVectors(d, std::min(block, n - begin),
               [&](size_t i, size_t count, auto slot)
                   OFL_SIMD_LAMBDA { add(begin + i, count, slot, s); });
    for (int k = 0; k < kSums; ++k) {
      const auto& of = s.of[k];
      const auto sum = hn::Add(hn::Add(of[0], of[1]), hn::Add(of[2], of[3]));
      total[k] += hn::GetLane(hn::SumOfLanes(d, sum));
    }
  }
}

// Rows of x lie in memory like this; elements.
template <class T>
HWY_INLINE const T* RowOf(const void* data, int64_t row, int64_t stride) {
  return static_cast<const T*>(data) + row * stride;
}
template <class T>
HWY_INLINE T* RowOf(void* data, int64_t row, int64_t stride) {
  return static_cast<T*>(data) + row * stride;
}

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#endif  // OFL_PRIMITIVE_CPU_NORM_INL_H_
