// SPDX-License-Identifier: Apache-2.0
//
// softmax and log_softmax. A contiguous row is read once for its maximum, then, from the cache,
// for the sum of exp(x - max), which is stored on the way where y can hold it, and scaled. Another
// axis is worked on in blocks of neighbouring columns. NaN needs no test: it travels through the
// sum into the whole row, as inf - inf does.
#include "primitive/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/simd_targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/softmax.cpp"
#include "primitive/cpu/foreach_target.h"
// clang-format on
#include "primitive/cpu/softmax-inl.h"
#include "primitive/cpu/softmax_plan.h"

#ifndef OFL_PRIMITIVE_CPU_SOFTMAX_ONCE_
#define OFL_PRIMITIVE_CPU_SOFTMAX_ONCE_
namespace oneflow_lite {

struct SoftmaxKernels {
  // Rows [begin, end) of `cols` elements, x's `stride` apart; stream_rows stores past the caches.
  void (*rows)(int64_t begin, int64_t end, int64_t cols, int64_t stride, const void* x, void* y);
  void (*stream_rows)(int64_t begin, int64_t end, int64_t cols, int64_t stride, const void* x,
                      void* y);
  RowStats (*stats)(int64_t n, const void* x);
  void (*write)(int64_t n, RowStats row, const void* x, void* y);
  // Columns [begin, end) of `cols` rows that lie `inner` elements apart; at most kAxisBlock.
  void (*axis)(int64_t cols, int64_t inner, int64_t begin, int64_t end, const void* x, void* y);
};

}  // namespace oneflow_lite
#endif

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

// y = e * factor. Of exponentials that lie in parts only whole packs can be read: such a row is not
// brought to its alignment.
template <class T, bool kStream>
OFL_ROW_LOOP void Scale(const ComputeOf<T>* e, size_t n, ComputeOf<T> factor, T* y) {
  const auto f = hn::Set(TagOf<T>(), factor);
  const auto scaled = [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    return EachPart([&](auto v) OFL_SIMD_LAMBDA { return hn::Mul(v, f); },
                    LoadParts<T>(e + i, count));
  };
  if (kPackParts<T> == 1 || PastAlignment(y) == 0) {
    GeneratePacks<T, kStream>(n, y, scaled);
  } else {
    ForPacks<T>(n, [&](size_t i, size_t count, auto)
                       OFL_SIMD_LAMBDA { StorePack<false>(scaled(i, count), y + i, count); });
  }
}

// 1 / sum, or log(sum)
template <class T, bool kLog>
ComputeOf<T> FactorOf(double sum) {
  return static_cast<ComputeOf<T>>(kLog ? std::log(sum) : 1 / sum);
}

// y from x, its row's maximum and the factor.
template <class T, bool kLog, bool kStream>
OFL_ROW_LOOP void WriteRow(size_t n, ComputeOf<T> max, ComputeOf<T> factor, const T* x, T* y) {
  const TagOf<T> d;
  const auto zero = hn::Zero(d), m = hn::Set(d, max), f = hn::Set(d, factor);
  GeneratePacks<T, kStream>(n, y, [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    const auto result = [&](auto a) OFL_SIMD_LAMBDA {
      const auto v = hn::Sub(a, m);
      return kLog ? hn::Sub(v, f) : hn::Mul(ExpNonPositive(d, v), f);
    };
    return EachPart(result, LoadPack(x + i, count, zero));
  });
}

template <class T, bool kLog>
void Write(int64_t n, RowStats row, const void* x, void* y) {
  WriteRow<T, kLog, false>(n, static_cast<ComputeOf<T>>(row.max), FactorOf<T, kLog>(row.sum),
                           static_cast<const T*>(x), static_cast<T*>(y));
}

template <class T, bool kLog, bool kStream>
void Rows(int64_t begin, int64_t end, int64_t cols, int64_t stride, const void* x_data,
          void* y_data) {
  using C = ComputeOf<T>;
  const size_t n = cols, room = RoundUpToPacks<T>(n);
  constexpr bool kWide = sizeof(T) == sizeof(C);  // y can hold exponentials
  HWY_ALIGN C buffer[kLog ? 1 : kRowBuffer / sizeof(C)];
  const bool buffered = !kLog && (kStream || !kWide) && room * sizeof(C) <= kRowBuffer;
  constexpr int64_t kMost = 4;
  const int64_t together = RowsTogether(cols * sizeof(T), kMost);
  C max[kMost], factor[kMost];
  for (; begin < end; begin += together) {
    const int64_t count = std::min(together, end - begin);
    const T* x = static_cast<const T*>(x_data) + begin * stride;
    T* y = static_cast<T*>(y_data) + begin * cols;
    const auto exponentials = [&](int64_t k) -> C* {
      if constexpr (!kLog && kWide && !kStream) return y + k * cols;
      return buffered ? buffer + k * room : nullptr;
    };
    for (int64_t k = 0; k < count; ++k) max[k] = Largest(n, x + k * stride);
    for (int64_t k = 0; k < count; ++k) {
      const T* row = x + k * stride;
      const T* next = n * sizeof(T) >= kLongRow ? row + stride : row;
      factor[k] = FactorOf<T, kLog>(SumOfExp(n, row, next, max[k], exponentials(k)));
    }
    for (int64_t k = 0; k < count; ++k) {
      if (const C* e = exponentials(k)) {
        Scale<T, kStream>(e, n, factor[k], y + k * cols);
      } else {
        WriteRow<T, kLog, kStream>(n, max[k], factor[k], x + k * stride, y + k * cols);
      }
    }
  }
  if constexpr (kStream) hwy::FlushStream();
}

// max and sum of exp(x - max) of `width` columns, kAxisRows rows at a time: those rows are read
// from memory for their maximum and from the cache for their exp, and a column's sum so far is
// rescaled where they raise the maximum. Sums of rows are added by Kahan's method.
template <class T>
void AxisStats(int64_t cols, int64_t inner, size_t width, const T* x, ComputeOf<T>* max,
               ComputeOf<T>* sum) {
  using C = ComputeOf<T>;
  const TagOf<T> d;
  const auto lowest = hn::Set(d, -std::numeric_limits<C>::infinity());
  HWY_ALIGN C lost[kAxisBlock];
  std::fill_n(max, kAxisBlock, -std::numeric_limits<C>::infinity());
  std::fill_n(sum, kAxisBlock, C(0));
  std::fill_n(lost, kAxisBlock, C(0));
  for (int64_t a = 0; a < cols; a += kAxisRows) {
    const T* first = x + a * inner;
    const T* last = x + std::min(a + kAxisRows, cols) * inner;
    ForEachVector(d, width, [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
      const auto before = hn::Load(d, max + i);
      auto m = before;
      for (const T* row = first; row != last; row += inner) {
        m = hn::Max(m, LoadUpTo(d, row + i, count, lowest));
      }
      hn::Store(m, d, max + i);
      const auto reference = hn::IfThenZeroElse(hn::Eq(m, lowest), m);  // -inf weighs 0
      auto added = hn::Zero(d);
      for (const T* row = first; row != last; row += inner) {
        const auto v = hn::Sub(LoadUpTo(d, row + i, count, lowest), reference);
        added = hn::Add(added, ExpNonPositive(d, v));
      }
      const auto shrink = ExpNonPositive(d, hn::Sub(before, reference));
      const auto s = hn::Mul(hn::Load(d, sum + i), shrink);
      added = hn::Sub(added, hn::Mul(hn::Load(d, lost + i), shrink));
      const auto total = hn::Add(s, added);
      hn::Store(total, d, sum + i);
      hn::Store(hn::Sub(hn::Sub(total, s), added), d, lost + i);
    });
  }
}

template <class T, bool kLog>
void Axis(int64_t cols, int64_t inner, int64_t begin, int64_t end, const void* x_data,
          void* y_data) {
  using C = ComputeOf<T>;
  const TagOf<T> d;
  const T* x = static_cast<const T*>(x_data) + begin;
  T* y = static_cast<T*>(y_data) + begin;
  const size_t width = end - begin;
  HWY_ALIGN C max[kAxisBlock], scale[kAxisBlock];
  AxisStats(cols, inner, width, x, max, scale);
  const auto zero = hn::Zero(d);
  for (size_t i = 0; i < width; i += hn::Lanes(d)) {
    const auto sum = hn::Load(d, scale + i);
    hn::Store(kLog ? LogOf(d, sum) : hn::Div(hn::Set(d, C(1)), sum), d, scale + i);
  }
  for (int64_t a = 0; a < cols; ++a) {
    const T* x_row = x + a * inner;
    T* y_row = y + a * inner;
    ForEachVector(d, width, [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
      const auto v = hn::Sub(LoadUpTo(d, x_row + i, count, zero), hn::Load(d, max + i));
      const auto factor = hn::Load(d, scale + i);
      const auto result = kLog ? hn::Sub(v, factor) : hn::Mul(ExpNonPositive(d, v), factor);
      StoreUpTo(result, d, y_row + i, count);
    });
  }
}

template <class T, bool kLog>
constexpr SoftmaxKernels kKernels = {&Rows<T, kLog, false>, &Rows<T, kLog, true>, &Stats<T>,
                                     &Write<T, kLog>, &Axis<T, kLog>};

}  // namespace

SoftmaxKernels GetSoftmaxKernels(DType dtype, bool log) {
  return VisitFloating(
      dtype, [&]<class T>(Tag<T>) { return log ? kKernels<T, true> : kKernels<T, false>; });
}

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {
namespace {

HWY_EXPORT(GetSoftmaxKernels);

class CpuSoftmax final : public Softmax {
 public:
  explicit CpuSoftmax(const Spec& spec)
      : item_(SizeOf(spec.dtype)),
        kernels_(HWY_DYNAMIC_DISPATCH(GetSoftmaxKernels)(spec.dtype, spec.log)) {}

  Status Launch(Stream&, const SoftmaxShape& shape, const void* x, void* y, void*) const override {
    if (shape.rows <= 0 || shape.cols <= 0 || shape.inner <= 0) return OkStatus();
    if (shape.inner > 1) {
      ForAxisBlocks(shape, item_, [&](int64_t offset, int64_t begin, int64_t end) {
        kernels_.axis(shape.cols, shape.inner, begin, end, At(x, offset), At(y, offset));
      });
    } else if (SplitsRows(shape)) {
      for (int64_t row = 0; row < shape.rows; ++row) {
        SplitRow(shape.cols, At(x, row * shape.stride(0)), At(y, row * shape.cols));
      }
    } else {
      const bool stream = x != y && StreamsOutput(2 * shape.rows * shape.cols * item_);
      ParallelFor(shape.rows, RowGrain(shape.cols), [&](int64_t begin, int64_t end) {
        (stream ? kernels_.stream_rows : kernels_.rows)(begin, end, shape.cols, shape.stride(0), x,
                                                        y);
      });
    }
    return OkStatus();
  }

 private:
  const void* At(const void* p, int64_t i) const { return static_cast<const char*>(p) + i * item_; }
  void* At(void* p, int64_t i) const { return static_cast<char*>(p) + i * item_; }

  // One long row on all threads: statistics of its parts, merged in order, then the results.
  void SplitRow(int64_t cols, const void* x, void* y) const {
    const RowParts parts(cols);
    RowStats stats[RowParts::kMax];
    ParallelFor(parts.count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        stats[i] = kernels_.stats(parts.Size(i), At(x, parts.Begin(i)));
      }
    });
    RowStats row{-std::numeric_limits<double>::infinity(), 0};
    for (int i = 0; i < parts.count; ++i) row.max = std::max(row.max, stats[i].max);
    // A masked part weighs exp(-inf) = 0, unless the whole row is masked: then NaN, as it should.
    for (int i = 0; i < parts.count; ++i) {
      row.sum += stats[i].sum * std::exp(stats[i].max - row.max);
    }
    ParallelFor(parts.count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        kernels_.write(parts.Size(i), row, At(x, parts.Begin(i)), At(y, parts.Begin(i)));
      }
    });
  }

  int64_t item_;
  SoftmaxKernels kernels_;
};

StatusOr<std::unique_ptr<Softmax>> NewSoftmax(const Softmax::Spec& spec) {
  if (spec.to_float32) return NoPrimitiveFor(Softmax::kName, DeviceType::kCPU, spec.dtype);
  if (!IsFloating(spec.dtype)) {
    return NoPrimitiveFor(Softmax::kName, DeviceType::kCPU, spec.dtype);
  }
  return std::make_unique<CpuSoftmax>(spec);
}

const bool registered = RegisterPrimitive<Softmax>(DeviceType::kCPU, &NewSoftmax);

}  // namespace
}  // namespace oneflow_lite
#endif  // HWY_ONCE
