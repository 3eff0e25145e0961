// SPDX-License-Identifier: Apache-2.0
#include "primitive/frexp.h"

#include <algorithm>
#include <cmath>

#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/strided.h"

namespace oneflow_lite {
namespace {

template <class T>
void Split(const Elementwise<3>& g, const T* x, T* mantissa, int32_t* exponent, int64_t begin,
           int64_t end) {
  using C = ComputeOf<T>;
  StridedCursor from(g, 0, begin), to(g, 1, begin), whole(g, 2, begin);
  for (int64_t left = end - begin; left > 0;) {
    const int64_t n = std::min({left, from.run(), to.run(), whole.run()});
    for (int64_t i = 0; i < n; ++i) {
      const C value = static_cast<C>(x[from.offset() + i * from.stride()]);
      int power = 0;
      const C part = std::frexp(value, &power);
      mantissa[to.offset() + i * to.stride()] = static_cast<T>(part);
      exponent[whole.offset() + i * whole.stride()] = std::isfinite(value) ? power : 0;
    }
    from.Advance(n), to.Advance(n), whole.Advance(n);
    left -= n;
  }
}

template <class T>
class CpuFrexp final : public Frexp {
 public:
  Status Launch(Stream&, const Elementwise<3>& g, const void* x, void* mantissa,
                void* exponent) const override {
    ParallelFor(g.numel, kElementwiseGrain, [&](int64_t begin, int64_t end) {
      Split(g, static_cast<const T*>(x), static_cast<T*>(mantissa), static_cast<int32_t*>(exponent),
            begin, end);
    });
    return OkStatus();
  }
};

StatusOr<std::unique_ptr<Frexp>> NewFrexp(const Frexp::Spec& spec) {
  if (!IsFloating(spec.dtype)) return NoPrimitiveFor(Frexp::kName, DeviceType::kCPU, spec.dtype);
  return VisitFloating(spec.dtype, []<class T>(Tag<T>) -> StatusOr<std::unique_ptr<Frexp>> {
    return std::make_unique<CpuFrexp<T>>();
  });
}

const bool registered = RegisterPrimitive<Frexp>(DeviceType::kCPU, &NewFrexp);

}  // namespace
}  // namespace oneflow_lite
