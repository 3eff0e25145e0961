// SPDX-License-Identifier: Apache-2.0
#include "primitive/creation.h"

#include <algorithm>
#include <cstring>

#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/convert.h"
#include "primitive/cpu/strided.h"

namespace oneflow_lite {
namespace {

class CpuFill final : public Fill {
 public:
  explicit CpuFill(const Spec& spec)
      : dtype_(spec.dtype), item_(SizeOf(spec.dtype)), repeat_(FindRepeat(item_)) {}

  Status Launch(Stream&, const Elementwise<1>& g, Scalar value, void* y) const override {
    char element[8] = {};
    VisitAll(dtype_, [&]<class T>(Tag<T>) {
      const T cast = CastScalar<T>(value);
      std::memcpy(element, &cast, sizeof(T));
    });
    const bool one_byte = std::count(element, element + item_, *element) == static_cast<int>(item_);
    ParallelFor(g.numel, kElementwiseGrain, [&](int64_t begin, int64_t end) {
      StridedCursor cursor(g, 0, begin);
      for (int64_t i = begin; i < end;) {
        const int64_t count = std::min(end - i, cursor.run());
        char* to = static_cast<char*>(y) + cursor.offset() * static_cast<int64_t>(item_);
        if (cursor.stride() != 1) {
          CopyStrided(item_, count, element, 0, to, cursor.stride());
        } else if (one_byte) {  // the C library knows the fastest way
          std::memset(to, *element, static_cast<size_t>(count) * item_);
        } else {
          repeat_(count, element, to);
        }
        cursor.Advance(count);
        i += count;
      }
    });
    return OkStatus();
  }

 private:
  DType dtype_;
  size_t item_;
  RepeatFunction repeat_;
};

// f(i, i - zero) for i in [begin, end). Vectors convert int32 to double, few instruction sets
// int64.
template <class F>
void ForPlaces(int64_t begin, int64_t end, int64_t zero, F&& f) {
  for (int64_t start = begin; start < end; start += kChunk) {
    const double base = static_cast<double>(start - zero);
    const auto n = static_cast<int32_t>(std::min(kChunk, end - start));
#pragma GCC ivdep
    for (int32_t j = 0; j < n; ++j) f(start + j, base + j);
  }
}

template <class T>
void FillSequence(int64_t begin, int64_t end, Scalar start, Scalar step, T* y) {
  if constexpr (std::is_integral_v<T>) {
    const uint64_t first = static_cast<uint64_t>(CastScalar<int64_t>(start));
    const uint64_t each = static_cast<uint64_t>(CastScalar<int64_t>(step));
    for (int64_t i = begin; i < end; ++i) {
      y[i] = static_cast<T>(first + static_cast<uint64_t>(i) * each);
    }
  } else {
    const double first = start.to<double>(), each = step.to<double>();
    ForPlaces(begin, end, 0, [&](int64_t i, double place) {
      y[i] = static_cast<T>(static_cast<ComputeOf<T>>(first + place * each));
    });
  }
}

// y[i] = from + (i - zero) step, for the half of the numbers that is counted from this end.
template <class T>
void FillHalf(int64_t begin, int64_t end, double from, double step, int64_t zero, T* y) {
  ForPlaces(begin, end, zero, [&](int64_t i, double place) {
    const double v = from + place * step;
    if constexpr (std::is_integral_v<T>) {
      y[i] = static_cast<T>(v < 0x1p63 ? static_cast<int64_t>(v) : INT64_MAX);
    } else {
      y[i] = static_cast<T>(static_cast<ComputeOf<T>>(v));
    }
  });
}

class CpuArange final : public Arange {
 public:
  explicit CpuArange(const Spec& spec) : dtype_(spec.dtype) {}

  Status Launch(Stream&, int64_t n, Scalar start, Scalar step, void* y) const override {
    ParallelFor(n, kElementwiseGrain, [&](int64_t begin, int64_t end) {
      VisitAll(dtype_,
               [&]<class T>(Tag<T>) { FillSequence(begin, end, start, step, static_cast<T*>(y)); });
    });
    return OkStatus();
  }
  Status LaunchBetween(Stream&, int64_t n, double start, double end, void* y) const override {
    const double step = (end - start) / static_cast<double>(std::max<int64_t>(1, n - 1));
    const int64_t half = std::max<int64_t>(1, n / 2);
    ParallelFor(n, kElementwiseGrain, [&](int64_t first, int64_t last) {
      VisitAll(dtype_, [&]<class T>(Tag<T>) {
        const int64_t middle = std::clamp(half, first, last);
        FillHalf(first, middle, start, step, 0, static_cast<T*>(y));
        FillHalf(middle, last, end, step, n - 1, static_cast<T*>(y));
      });
    });
    return OkStatus();
  }

 private:
  DType dtype_;
};

StatusOr<std::unique_ptr<Fill>> NewFill(const Fill::Spec& spec) {
  return std::make_unique<CpuFill>(spec);
}
StatusOr<std::unique_ptr<Arange>> NewArange(const Arange::Spec& spec) {
  if (spec.dtype == DType::kBool) {
    return NoPrimitiveFor(Arange::kName, DeviceType::kCPU, spec.dtype);
  }
  return std::make_unique<CpuArange>(spec);
}
const bool registered = RegisterPrimitive<Fill>(DeviceType::kCPU, &NewFill) &&
                        RegisterPrimitive<Arange>(DeviceType::kCPU, &NewArange);

}  // namespace
}  // namespace oneflow_lite
