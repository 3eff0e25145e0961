// SPDX-License-Identifier: Apache-2.0
//
// Gradients of softmax and log_softmax: a row's sum, then dx, from the cache.
#include <algorithm>

#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/simd_targets.h"
#include "primitive/softmax.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/softmax_backward.cpp"
#include "primitive/cpu/foreach_target.h"
// clang-format on
#include "primitive/cpu/pack-inl.h"
#include "primitive/cpu/softmax_plan.h"

#ifndef OFL_PRIMITIVE_CPU_SOFTMAX_BACKWARD_ONCE_
#define OFL_PRIMITIVE_CPU_SOFTMAX_BACKWARD_ONCE_
namespace oneflow_lite {

struct SoftmaxBackwardKernels {
  // Rows [begin, end); stream_rows stores past the caches.
  void (*rows)(const SoftmaxShape& shape, int64_t begin, int64_t end, const void* y, const void* dy,
               void* dx);
  void (*stream_rows)(const SoftmaxShape& shape, int64_t begin, int64_t end, const void* y,
                      const void* dy, void* dx);
  // sum(y * dy), or sum(dy) for log_softmax.
  double (*sum)(int64_t n, const void* y, const void* dy);
  void (*write)(int64_t n, double sum, const void* y, const void* dy, void* dx);
  // Columns [begin, end) of `cols` rows that lie `inner` elements apart; at most kAxisBlock.
  void (*axis)(int64_t cols, int64_t inner, int64_t begin, int64_t end, const void* y,
               const void* dy, void* dx);
};

}  // namespace oneflow_lite
#endif

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

// What an element adds to its row's sum, and its gradient.
template <bool kLog, class D, class V = hn::Vec<D>>
HWY_INLINE V Accumulate(D, V sum, V y, V dy) {
  return kLog ? hn::Add(sum, dy) : hn::MulAdd(y, dy, sum);
}
template <bool kLog, class D, class V = hn::Vec<D>>
HWY_INLINE V Gradient(D d, V sum, V y, V dy) {
  if constexpr (kLog) return hn::NegMulAdd(ExpNonPositive(d, y), sum, dy);
  return hn::Mul(y, hn::Sub(dy, sum));
}

template <class T, bool kLog>
double Sum(int64_t n, const void* y_data, const void* dy_data) {
  const TagOf<T> d;
  const T* y = static_cast<const T*>(y_data);
  const T* dy = static_cast<const T*>(dy_data);
  const auto zero = hn::Zero(d);
  return SumPacks<T>(n, [&](size_t i, size_t count, Pack<T> sum) OFL_SIMD_LAMBDA {
    const auto g = LoadPack(dy + i, count, zero);
    const auto v = kLog ? g : LoadPack(y + i, count, zero);
    return EachPart([&](auto s, auto y, auto dy)
                        OFL_SIMD_LAMBDA { return Accumulate<kLog>(d, s, y, dy); },
                    sum, v, g);
  });
}

// The lines of what comes next are asked for.
template <class T, bool kLog, bool kStream>
HWY_INLINE void WriteRow(int64_t n, double sum, const T* y, const T* dy, const T* next_y,
                         const T* next_dy, T* dx) {
  const TagOf<T> d;
  const auto s = hn::Set(d, static_cast<ComputeOf<T>>(sum));
  const auto zero = hn::Zero(d);
  GeneratePacks<T, kStream>(n, dx, [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    hwy::Prefetch(next_y + i);
    hwy::Prefetch(next_dy + i);
    return EachPart([&](auto y, auto dy) OFL_SIMD_LAMBDA { return Gradient<kLog>(d, s, y, dy); },
                    LoadPack(y + i, count, zero), LoadPack(dy + i, count, zero));
  });
}

template <class T, bool kLog>
void Write(int64_t n, double sum, const void* y_data, const void* dy_data, void* dx_data) {
  const T* y = static_cast<const T*>(y_data);
  const T* dy = static_cast<const T*>(dy_data);
  WriteRow<T, kLog, false>(n, sum, y, dy, y + n, dy + n, static_cast<T*>(dx_data));
}

template <class T, bool kLog, bool kStream>
void Rows(const SoftmaxShape& shape, int64_t begin, int64_t end, const void* y_data,
          const void* dy_data, void* dx_data) {
  const int64_t cols = shape.cols, y_stride = shape.stride(0), dy_stride = shape.stride(1);
  constexpr int64_t kMost = 8;
  const int64_t together = RowsTogether(cols * sizeof(T), kMost);
  const bool ahead = cols * sizeof(T) >= 2 * kLongRow;
  double sum[kMost];
  for (; begin < end; begin += together) {
    const int64_t count = std::min(together, end - begin);
    const T* y = static_cast<const T*>(y_data) + begin * y_stride;
    const T* dy = static_cast<const T*>(dy_data) + begin * dy_stride;
    T* dx = static_cast<T*>(dx_data) + begin * cols;
    for (int64_t k = 0; k < count; ++k) {
      sum[k] = Sum<T, kLog>(cols, y + k * y_stride, dy + k * dy_stride);
    }
    for (int64_t k = 0; k < count; ++k, y += y_stride, dy += dy_stride, dx += cols) {
      WriteRow<T, kLog, kStream>(cols, sum[k], y, dy, ahead ? y + y_stride : y,
                                 ahead ? dy + dy_stride : dy, dx);
    }
  }
  if constexpr (kStream) hwy::FlushStream();
}

// kAxisRows rows at a time, whose sums are added by Kahan's method.
template <class T, bool kLog>
void AxisSum(int64_t cols, int64_t inner, size_t width, const T* y, const T* dy,
             ComputeOf<T>* sum) {
  using C = ComputeOf<T>;
  const TagOf<T> d;
  const auto zero = hn::Zero(d);
  HWY_ALIGN C lost[kAxisBlock];
  std::fill_n(sum, kAxisBlock, C(0));
  std::fill_n(lost, kAxisBlock, C(0));
  for (int64_t a = 0; a < cols; a += kAxisRows) {
    const int64_t end = std::min(a + kAxisRows, cols);
    ForEachVector(d, width, [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
      auto added = zero;
      for (int64_t row = a; row < end; ++row) {
        const auto g = LoadUpTo(d, dy + row * inner + i, count, zero);
        const auto v = kLog ? zero : LoadUpTo(d, y + row * inner + i, count, zero);
        added = Accumulate<kLog>(d, added, v, g);
      }
      const auto s = hn::Load(d, sum + i);
      added = hn::Sub(added, hn::Load(d, lost + i));
      const auto total = hn::Add(s, added);
      hn::Store(total, d, sum + i);
      hn::Store(hn::Sub(hn::Sub(total, s), added), d, lost + i);
    });
  }
}

template <class T, bool kLog>
void Axis(int64_t cols, int64_t inner, int64_t begin, int64_t end, const void* y_data,
          const void* dy_data, void* dx_data) {
  const TagOf<T> d;
  const T* y = static_cast<const T*>(y_data) + begin;
  const T* dy = static_cast<const T*>(dy_data) + begin;
  T* dx = static_cast<T*>(dx_data) + begin;
  const size_t width = end - begin;
  HWY_ALIGN ComputeOf<T> sum[kAxisBlock];
  AxisSum<T, kLog>(cols, inner, width, y, dy, sum);
  const auto zero = hn::Zero(d);
  for (int64_t a = 0; a < cols; ++a) {
    const int64_t row = a * inner;
    ForEachVector(d, width, [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
      const auto v = LoadUpTo(d, y + row + i, count, zero);
      const auto g = LoadUpTo(d, dy + row + i, count, zero);
      StoreUpTo(Gradient<kLog>(d, hn::Load(d, sum + i), v, g), d, dx + row + i, count);
    });
  }
}

template <class T, bool kLog>
constexpr SoftmaxBackwardKernels kKernels = {&Rows<T, kLog, false>, &Rows<T, kLog, true>,
                                             &Sum<T, kLog>, &Write<T, kLog>, &Axis<T, kLog>};

}  // namespace

SoftmaxBackwardKernels GetSoftmaxBackwardKernels(DType dtype, bool log) {
  return VisitFloating(
      dtype, [&]<class T>(Tag<T>) { return log ? kKernels<T, true> : kKernels<T, false>; });
}

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {
namespace {

HWY_EXPORT(GetSoftmaxBackwardKernels);

class CpuSoftmaxBackward final : public SoftmaxBackward {
 public:
  explicit CpuSoftmaxBackward(const Spec& spec)
      : item_(SizeOf(spec.dtype)),
        kernels_(HWY_DYNAMIC_DISPATCH(GetSoftmaxBackwardKernels)(spec.dtype, spec.log)) {}

  Status Launch(Stream&, const SoftmaxShape& shape, const void* y, const void* dy, void* dx,
                void*) const override {
    if (shape.rows <= 0 || shape.cols <= 0 || shape.inner <= 0) return OkStatus();
    if (shape.inner > 1) {
      ForAxisBlocks(shape, 2 * item_, [&](int64_t offset, int64_t begin, int64_t end) {
        kernels_.axis(shape.cols, shape.inner, begin, end, At(y, offset), At(dy, offset),
                      At(dx, offset));
      });
    } else if (SplitsRows(shape)) {
      for (int64_t row = 0; row < shape.rows; ++row) {
        SplitRow(shape.cols, At(y, row * shape.stride(0)), At(dy, row * shape.stride(1)),
                 At(dx, row * shape.cols));
      }
    } else {
      const bool stream = dx != dy && StreamsOutput(3 * shape.rows * shape.cols * item_);
      ParallelFor(shape.rows, RowGrain(shape.cols), [&](int64_t begin, int64_t end) {
        (stream ? kernels_.stream_rows : kernels_.rows)(shape, begin, end, y, dy, dx);
      });
    }
    return OkStatus();
  }

 private:
  const void* At(const void* p, int64_t i) const { return static_cast<const char*>(p) + i * item_; }
  void* At(void* p, int64_t i) const { return static_cast<char*>(p) + i * item_; }

  // One long row on all threads.
  void SplitRow(int64_t cols, const void* y, const void* dy, void* dx) const {
    const RowParts parts(cols);
    double sums[RowParts::kMax];
    ParallelFor(parts.count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        sums[i] = kernels_.sum(parts.Size(i), At(y, parts.Begin(i)), At(dy, parts.Begin(i)));
      }
    });
    double sum = 0;
    for (int i = 0; i < parts.count; ++i) sum += sums[i];
    ParallelFor(parts.count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t offset = parts.Begin(i);
        kernels_.write(parts.Size(i), sum, At(y, offset), At(dy, offset), At(dx, offset));
      }
    });
  }

  int64_t item_;
  SoftmaxBackwardKernels kernels_;
};

StatusOr<std::unique_ptr<SoftmaxBackward>> NewSoftmaxBackward(const SoftmaxBackward::Spec& spec) {
  if (!IsFloating(spec.dtype)) {
    return NoPrimitiveFor(SoftmaxBackward::kName, DeviceType::kCPU, spec.dtype);
  }
  return std::make_unique<CpuSoftmaxBackward>(spec);
}

const bool registered = RegisterPrimitive<SoftmaxBackward>(DeviceType::kCPU, &NewSoftmaxBackward);

}  // namespace
}  // namespace oneflow_lite
#endif  // HWY_ONCE
