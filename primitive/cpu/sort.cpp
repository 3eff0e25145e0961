// SPDX-License-Identifier: Apache-2.0
#include "primitive/sort.h"

#include <algorithm>
#include <numeric>

#include "oneflow_lite/core/parallel.h"

namespace oneflow_lite {
namespace {

constexpr int64_t kGrain = 512;  // elements

// Whether a comes before b; NaN after everything else.
template <class T>
bool Before(T a, T b) {
  if constexpr (IsFloating(DTypeOf<T>())) {
    using C = ComputeOf<T>;
    const C x = static_cast<C>(a), y = static_cast<C>(b);
    return x < y || (y != y && x == x);
  } else {
    return a < b;
  }
}

class CpuSort final : public Sort {
 public:
  explicit CpuSort(DType dtype) : dtype_(dtype) {}

  StatusOr<size_t> WorkspaceBytes(const Stream&, int64_t, int64_t) const override { return 0; }
  Status Launch(Stream&, int64_t rows, int64_t cols, bool descending, const void* x_data,
                void* values_data, int64_t* indices, void*) const override {
    VisitAll(dtype_, [&]<class T>(Tag<T>) {
      const T* x = static_cast<const T*>(x_data);
      T* values = static_cast<T*>(values_data);
      ParallelFor(rows, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, cols)),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t row = begin; row < end; ++row) {
                      Row(cols, descending, x + row * cols, values + row * cols,
                          indices + row * cols);
                    }
                  });
    });
    return OkStatus();
  }

 private:
  template <class T>
  static void Row(int64_t cols, bool descending, const T* x, T* values, int64_t* indices) {
    std::iota(indices, indices + cols, int64_t{0});
    std::stable_sort(indices, indices + cols, [&](int64_t i, int64_t j) {
      return descending ? Before(x[j], x[i]) : Before(x[i], x[j]);
    });
    for (int64_t k = 0; k < cols; ++k) values[k] = x[indices[k]];
  }

  DType dtype_;
};

StatusOr<std::unique_ptr<Sort>> NewSort(const Sort::Spec& spec) {
  return std::make_unique<CpuSort>(spec.dtype);
}

const bool registered = RegisterPrimitive<Sort>(DeviceType::kCPU, &NewSort);

}  // namespace
}  // namespace oneflow_lite
