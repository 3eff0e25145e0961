// SPDX-License-Identifier: Apache-2.0
#include "primitive/cpu/gemv.h"

#include "primitive/cpu/simd_targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/gemv.cpp"
#include "primitive/cpu/foreach_target.h"
// clang-format on
#include "primitive/cpu/pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

constexpr int kRowsAtOnce = 4;

// kRows rows, each with kSums sums, because a product waits for the one before it.
template <int kRows, int kSums, class T>
HWY_INLINE void SomeRows(int64_t cols, const T* matrix, int64_t ld, const ComputeOf<T>* v,
                         ComputeOf<T>* out) {
  const TagOf<T> d;
  const auto zero = hn::Zero(d);
  hn::Vec<TagOf<T>> sums[kSums][kRows];
  for (auto& some : sums) std::fill_n(some, kRows, zero);
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto add = [&](int64_t c, int64_t n, hn::Vec<TagOf<T>>(&sum)[kRows]) OFL_SIMD_LAMBDA {
    const auto count = static_cast<size_t>(n);
    const auto x = LoadUpTo(d, v + c, count, zero);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      sum[r] = hn::MulAdd(LoadUpTo(d, matrix + r * ld + c, count, zero), x, sum[r]);
    }
  };
  int64_t c = 0;
  for (; c + kSums * lanes <= cols; c += kSums * lanes) {
#pragma GCC unroll 8
    for (int k = 0; k < kSums; ++k) add(c + k * lanes, lanes, sums[k]);
  }
  for (; c + lanes <= cols; c += lanes) add(c, lanes, sums[0]);
  if (c < cols) add(c, cols - c, sums[kSums - 1]);
  for (int r = 0; r < kRows; ++r) {
    auto all = sums[0][r];
    for (int k = 1; k < kSums; ++k) all = hn::Add(all, sums[k][r]);
    out[r] += hn::GetLane(hn::SumOfLanes(d, all));
  }
}

template <class T>
void Rows(int64_t rows, int64_t cols, const void* matrix, int64_t ld, const void* v, void* out) {
  using C = ComputeOf<T>;
  const T* m = static_cast<const T*>(matrix);
  const C* x = static_cast<const C*>(v);
  C* y = static_cast<C*>(out);
  int64_t r = 0;
  for (; r + kRowsAtOnce <= rows; r += kRowsAtOnce) {
    SomeRows<kRowsAtOnce, 2>(cols, m + r * ld, ld, x, y + r);
  }
  for (; r < rows; ++r) SomeRows<1, 2>(cols, m + r * ld, ld, x, y + r);
}

// Eight sums of vectors, as a product waits for the one before it.
template <class T>
void Dot(int64_t length, const void* x_data, const void* y_data, void* sum) {
  using C = ComputeOf<T>;
  constexpr int kTurn = 8 / kPackParts<T>;
  const TagOf<T> d;
  const auto zero = hn::Zero(d);
  const T *x = static_cast<const T*>(x_data), *y = static_cast<const T*>(y_data);
  const auto n = static_cast<size_t>(length), pack = PackSize<T>();
  Pack<T> sums[kTurn];
#pragma GCC unroll 8
  for (auto& some : sums) some = SetPack<T>(zero);
  const auto add = [&](size_t i, size_t count, Pack<T>& s) OFL_SIMD_LAMBDA {
    s = EachPart([](auto a, auto u, auto v) OFL_SIMD_LAMBDA { return hn::MulAdd(u, v, a); }, s,
                 LoadPack(x + i, count, zero), LoadPack(y + i, count, zero));
  };
  size_t i = 0;
  for (; i + kTurn * pack <= n; i += kTurn * pack) {
#pragma GCC unroll 8
    for (int k = 0; k < kTurn; ++k) add(i + k * pack, pack, sums[k]);
  }
  for (; i + pack <= n; i += pack) add(i, pack, sums[0]);
  if (i < n) add(i, n - i, sums[kTurn - 1]);
  auto all = zero;
  for (const Pack<T>& s : sums) {
    for (int part = 0; part < kPackParts<T>; ++part) all = hn::Add(all, s.part[part]);
  }
  *static_cast<C*>(sum) += hn::GetLane(hn::SumOfLanes(d, all));
}

// The sums of a block of columns stay in the L1 cache.
template <class T>
void Columns(int64_t rows, int64_t cols, const void* matrix, int64_t ld, const void* v, void* out) {
  using C = ComputeOf<T>;
  constexpr int64_t kBlock = 2048;
  const TagOf<T> d;
  const auto zero = hn::Zero(d);
  const T* m = static_cast<const T*>(matrix);
  const C* x = static_cast<const C*>(v);
  C* y = static_cast<C*>(out);
  const auto add = [&](int64_t r, int64_t begin, int64_t n, auto count_of_rows) OFL_SIMD_LAMBDA {
    constexpr int kRows = count_of_rows;
    hn::Vec<TagOf<T>> factor[kRows];
    for (int k = 0; k < kRows; ++k) factor[k] = hn::Set(d, x[r + k]);
    const T* from = m + r * ld + begin;
    ForEachVector(d, static_cast<size_t>(n), [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
      auto sum = LoadUpTo(d, y + begin + i, count, zero);
#pragma GCC unroll 4
      for (int k = 0; k < kRows; ++k) {
        sum = hn::MulAdd(factor[k], LoadUpTo(d, from + k * ld + i, count, zero), sum);
      }
      StoreUpTo(sum, d, y + begin + i, count);
    });
  };
  for (int64_t begin = 0; begin < cols; begin += kBlock) {
    const int64_t n = std::min(kBlock, cols - begin);
    int64_t r = 0;
    for (; r + kRowsAtOnce <= rows; r += kRowsAtOnce) add(r, begin, n, Slot<kRowsAtOnce>());
    for (; r < rows; ++r) add(r, begin, n, Slot<1>());
  }
}

}  // namespace

GemvLoops Find(DType dtype) {
  return VisitFloating(dtype, []<class T>(Tag<T>) -> GemvLoops {
    return {&Rows<T>, &Columns<T>, &Dot<T>};
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {

HWY_EXPORT(Find);
GemvLoops FindGemv(DType dtype) { return HWY_DYNAMIC_DISPATCH(Find)(dtype); }

}  // namespace oneflow_lite
#endif  // HWY_ONCE
