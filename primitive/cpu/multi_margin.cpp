// SPDX-License-Identifier: Apache-2.0
#include "primitive/multi_margin.h"

#include <algorithm>

#include "oneflow_lite/core/error.h"
#include "oneflow_lite/core/parallel.h"

namespace oneflow_lite {
namespace {

constexpr int64_t kGrain = 16384;  // elements: some 10 us of work

Status CheckTargets(const MultiMarginShape& s, const int64_t* target) {
  for (int64_t r = 0; r < s.rows; ++r) {
    if (target[r] >= 0 && target[r] < s.classes) continue;
    return Error(ErrorKind::kIndex, "multi_margin_loss(): target ", target[r],
                 " is out of range [0, ", s.classes - 1, "]");
  }
  return OkStatus();
}

template <class F>
void ForRows(const MultiMarginShape& s, F&& f) {
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, s.classes));
  ParallelFor(s.rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) f(r);
  });
}

// How far x is above the margin, 0 below; NaN stays.
template <class C>
C Over(C x, C least) {
  const C over = x + least;
  return over <= 0 ? C(0) : over;
}

class CpuMultiMargin final : public MultiMargin {
 public:
  explicit CpuMultiMargin(const Spec& spec) : dtype_(spec.dtype) {}

  Status Launch(Stream&, const MultiMarginShape& s, const void* x_data, const int64_t* target,
                void* loss) const override {
    OFL_RETURN_IF_ERROR(CheckTargets(s, target));
    VisitFloating(dtype_, [&]<class T>(Tag<T>) {
      using C = ComputeOf<T>;
      ForRows(s, [&](int64_t r) {
        const T* x = static_cast<const T*>(x_data) + r * s.classes;
        const C least = static_cast<C>(s.margin) - static_cast<C>(x[target[r]]);
        const auto sum_of = [&](int64_t begin, int64_t end) {
          C sum = 0;
          for (int64_t j = begin; j < end; ++j) {
            const C over = Over(static_cast<C>(x[j]), least);
            sum += s.squared ? over * over : over;
          }
          return sum;
        };
        const C sum = sum_of(0, target[r]) + sum_of(target[r] + 1, s.classes);
        static_cast<T*>(loss)[r] = static_cast<T>(sum / static_cast<C>(s.classes));
      });
    });
    return OkStatus();
  }

  Status LaunchBackward(Stream&, const MultiMarginShape& s, const void* dloss, const void* x_data,
                        const int64_t* target, void* dx_data) const override {
    OFL_RETURN_IF_ERROR(CheckTargets(s, target));
    VisitFloating(dtype_, [&]<class T>(Tag<T>) {
      using C = ComputeOf<T>;
      ForRows(s, [&](int64_t r) {
        const T* x = static_cast<const T*>(x_data) + r * s.classes;
        T* dx = static_cast<T*>(dx_data) + r * s.classes;
        const C least = static_cast<C>(s.margin) - static_cast<C>(x[target[r]]);
        const C flow = static_cast<C>(static_cast<const T*>(dloss)[r]) / static_cast<C>(s.classes);
        C sum = 0;
        for (int64_t j = 0; j < s.classes; ++j) {
          const C over = Over(static_cast<C>(x[j]), least);
          const C slope = j == target[r] || over == 0 ? C(0) : s.squared ? 2 * over : C(1);
          sum += slope;
          dx[j] = static_cast<T>(slope * flow);
        }
        dx[target[r]] = static_cast<T>(-sum * flow);
      });
    });
    return OkStatus();
  }

 private:
  DType dtype_;
};

StatusOr<std::unique_ptr<MultiMargin>> NewMultiMargin(const MultiMargin::Spec& spec) {
  if (!IsFloating(spec.dtype)) {
    return NoPrimitiveFor(MultiMargin::kName, DeviceType::kCPU, spec.dtype);
  }
  return std::make_unique<CpuMultiMargin>(spec);
}

const bool registered = RegisterPrimitive<MultiMargin>(DeviceType::kCPU, &NewMultiMargin);

}  // namespace
}  // namespace oneflow_lite
