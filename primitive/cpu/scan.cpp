// SPDX-License-Identifier: Apache-2.0
#include "primitive/scan.h"

#include <algorithm>

#include "oneflow_lite/core/parallel.h"

namespace oneflow_lite {
namespace {

constexpr int64_t kGrain = 16384;  // elements, some 10 us of work

// Sums of floats are kept in double, whose rounding does not add up to anything in float32.
template <class T>
using SumOf = std::conditional_t<IsFloating(DTypeOf<T>()), double, T>;

class CpuCumSum final : public CumSum {
 public:
  explicit CpuCumSum(DType dtype) : dtype_(dtype) {}

  Status Launch(Stream&, int64_t rows, int64_t cols, bool reverse, const void* x_data,
                void* y_data) const override {
    VisitAll(dtype_, [&]<class T>(Tag<T>) {
      if constexpr (!std::is_same_v<T, bool>) {
        ParallelFor(rows, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, cols)),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t row = begin; row < end; ++row) {
                        Row(cols, reverse, static_cast<const T*>(x_data) + row * cols,
                            static_cast<T*>(y_data) + row * cols);
                      }
                    });
      }
    });
    return OkStatus();
  }

 private:
  template <class T>
  static void Row(int64_t cols, bool reverse, const T* x, T* y) {
    SumOf<T> sum = 0;
    for (int64_t k = 0; k < cols; ++k) {
      const int64_t i = reverse ? cols - 1 - k : k;
      sum = static_cast<SumOf<T>>(sum + static_cast<SumOf<T>>(static_cast<ComputeOf<T>>(x[i])));
      y[i] = T(static_cast<ComputeOf<T>>(sum));
    }
  }

  DType dtype_;
};

StatusOr<std::unique_ptr<CumSum>> NewCumSum(const CumSum::Spec& spec) {
  if (spec.dtype == DType::kBool) {
    return NoPrimitiveFor(CumSum::kName, DeviceType::kCPU, spec.dtype);
  }
  return std::make_unique<CpuCumSum>(spec.dtype);
}

const bool registered = RegisterPrimitive<CumSum>(DeviceType::kCPU, &NewCumSum);

}  // namespace
}  // namespace oneflow_lite
