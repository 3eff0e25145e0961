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

#include "primitive/cpu/pack-inl.h"
#include "primitive/cpu/softmax_plan.h"

// A function of a loop begins at a line of code, wherever the linker lays it: 16 bytes into one,
// scale_mask_softmax of float64 took 4 % longer (docs/lab/35). GCC ignores -falign-functions beside
// `#pragma GCC target`.
#undef OFL_ROW_LOOP
#define OFL_ROW_LOOP __attribute__((aligned(64))) HWY_NOINLINE

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {

// The largest of n elements.
template <class T>
HWY_INLINE ComputeOf<T> MaxOf(const T* x, size_t n) {
  const TagOf<T> d;
  const auto lowest = hn::Set(d, -std::numeric_limits<ComputeOf<T>>::infinity());
  const auto max = [](auto a, auto b) OFL_SIMD_LAMBDA { return hn::Max(a, b); };
  Pack<T> m[4];
  std::fill_n(m, 4, SetPack<T>(lowest));
  ForPacks<T>(n, [&](size_t i, size_t count, auto slot) OFL_SIMD_LAMBDA {
    m[slot] = EachPart(max, m[slot], LoadPack(x + i, count, lowest));
  });
  return hn::GetLane(hn::MaxOfLanes(d, Merged<T>(max, m)));
}

// sum of exp(x - max); each pack of terms goes to keep(i, count, terms) as well. Blocks of 128
// packs are summed in the compute type, at most 32 terms per lane, and the blocks in double.
template <class T, class Keep>
HWY_INLINE double SumExp(const T* x, size_t n, ComputeOf<T> max, Keep keep) {
  const TagOf<T> d;
  const auto lowest = hn::Set(d, -std::numeric_limits<ComputeOf<T>>::infinity());
  const auto m = hn::Set(d, max);
  return SumPacks<T>(n, [&](size_t i, size_t count, Pack<T> sum) OFL_SIMD_LAMBDA {
    const auto e =
        EachPart([&](auto v) OFL_SIMD_LAMBDA { return ExpNonPositive(d, hn::Sub(v, m)); },
                 LoadPack(x + i, count, lowest));
    keep(i, count, e);
    return EachPart([](auto a, auto b) OFL_SIMD_LAMBDA { return hn::Add(a, b); }, sum, e);
  });
}

// Steps that are functions of their own: inlined, each would be compiled for every kind of row.
template <class T>
OFL_ROW_LOOP ComputeOf<T> Largest(size_t n, const T* x) {
  return MaxOf(x, n);
}

// The sum of exp(x - max), which go to e where it is not null. The lines of `next` are asked for.
template <class T>
OFL_ROW_LOOP double SumOfExp(size_t n, const T* x, const T* next, ComputeOf<T> max,
                             ComputeOf<T>* e) {
  if (e == nullptr) {
    return SumExp(x, n, max,
                  [&](size_t i, size_t, auto) OFL_SIMD_LAMBDA { hwy::Prefetch(next + i); });
  }
  return SumExp(x, n, max, [&](size_t i, size_t count, auto v) OFL_SIMD_LAMBDA {
    StoreParts<T>(v, e + i, count);
    hwy::Prefetch(next + i);
  });
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
