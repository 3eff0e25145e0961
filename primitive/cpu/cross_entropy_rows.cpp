// SPDX-License-Identifier: Apache-2.0
//
// The vector loops of cross entropy.
#include "primitive/cpu/cross_entropy_rows.h"

#include <algorithm>
#include <cmath>

#include "primitive/cpu/simd_targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/cross_entropy_rows.cpp"
#include "primitive/cpu/foreach_target.h"
// clang-format on
#include "primitive/cpu/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

template <class T>
RowStats RowStatistics(int64_t n, const void* data) {
  const T* x = static_cast<const T*>(data);
  const auto max = Largest(n, x);
  const bool masked = max == -std::numeric_limits<ComputeOf<T>>::infinity();
  return {max, SumOfExp<T>(n, x, x + n, masked ? 0 : max, nullptr)};
}

// Blocks of 128 vectors are summed in the compute type, and the blocks in double.
template <class T>
OFL_ROW_LOOP double Deviation(int64_t n, double anchor, const void* data) {
  const TagOf<T> d;
  const T* x = static_cast<const T*>(data);
  const auto a = hn::Set(d, static_cast<ComputeOf<T>>(anchor));
  const int64_t block = 128 * hn::Lanes(d);
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += block) {
    const auto zero = hn::Zero(d);
    hn::Vec<TagOf<T>> s[4] = {zero, zero, zero, zero};
    ForVectors(d, std::min(block, n - begin),
               [&](size_t i, size_t count, auto slot) OFL_SIMD_LAMBDA {
                 s[slot] = hn::Add(s[slot], hn::Sub(LoadUpTo(d, x + begin + i, count, a), a));
               });
    total += hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s[0], s[1]), hn::Add(s[2], s[3]))));
  }
  return total;
}

template <class T>
double Element(const void* x, int64_t i) {
  return static_cast<ComputeOf<T>>(static_cast<const T*>(x)[i]);
}

template <class T>
void PutElement(void* x, int64_t i, double v) {
  static_cast<T*>(x)[i] = T(static_cast<ComputeOf<T>>(v));
}

// Where the loss was a pass of its own, logits come from memory again. The processor asks for lines
// ahead by itself, but not beyond a page: with this, loss and gradient in place of 256 x 50257
// float16 take 6.9 instead of 7.9 ms.
constexpr size_t kLinesAhead = 4096;  // bytes

template <class T>
OFL_ROW_LOOP void GradientOf(int64_t n, const GradientRow& row, const void* x_data, void* dx) {
  using C = ComputeOf<T>;
  const TagOf<T> d;
  const T* x = static_cast<const T*>(x_data);
  const auto max = hn::Set(d, static_cast<C>(row.max));
  const auto log_sum = hn::Set(d, static_cast<C>(row.log_sum));
  const auto uniform = hn::Set(d, static_cast<C>(row.uniform));
  const auto dloss = hn::Set(d, static_cast<C>(row.dloss));
  const auto zero = hn::Zero(d);
  Generate<false>(d, n, static_cast<T*>(dx), [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    hwy::Prefetch(x + i + kLinesAhead / sizeof(T));
    const auto v = hn::Sub(LoadUpTo(d, x + i, count, zero), max);
    return hn::Mul(hn::Sub(ExpNonPositive(d, hn::Sub(v, log_sum)), uniform), dloss);
  });
}

template <class T>
void GradientAt(int64_t i, double x, double sharp, const GradientRow& row, void* dx) {
  using C = ComputeOf<T>;
  const double p = std::exp((x - row.max) - row.log_sum);
  static_cast<T*>(dx)[i] = T(static_cast<C>((p - row.uniform - sharp) * row.dloss));
}

template <class T>
OFL_ROW_LOOP void Scale(int64_t n, double factor, void* data) {
  const TagOf<T> d;
  T* x = static_cast<T*>(data);
  const auto f = hn::Set(d, static_cast<ComputeOf<T>>(factor));
  const auto zero = hn::Zero(d);
  Generate<false>(d, n, x, [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    return hn::Mul(LoadUpTo(d, x + i, count, zero), f);
  });
}

template <class T>
void PutNumber(void* p, int64_t i, double v) {
  static_cast<ComputeOf<T>*>(p)[i] = static_cast<ComputeOf<T>>(v);
}

template <class T>
constexpr CrossEntropyKernels kKernels = {&RowStatistics<T>, &Deviation<T>,          &Element<T>,
                                          &PutElement<T>,    &GradientOf<T>,         &GradientAt<T>,
                                          &Scale<T>,         &Element<ComputeOf<T>>, &PutNumber<T>};

}  // namespace

CrossEntropyKernels GetCrossEntropyKernels(DType dtype) {
  return VisitFloating(dtype, []<class T>(Tag<T>) { return kKernels<T>; });
}

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {

HWY_EXPORT(GetCrossEntropyKernels);

CrossEntropyKernels FindCrossEntropyKernels(DType dtype) {
  return HWY_DYNAMIC_DISPATCH(GetCrossEntropyKernels)(dtype);
}

}  // namespace oneflow_lite
#endif  // HWY_ONCE
