// SPDX-License-Identifier: Apache-2.0
#include "primitive/rotary.h"

#include <algorithm>
#include <cstring>

#include "oneflow_lite/core/parallel.h"

namespace oneflow_lite {
namespace {

constexpr int64_t kGrain = 16384;  // elements

// The halves a and b of one head; the result may be in their place.
template <class T, class C>
void Turn(int64_t half, const T* a, const T* b, const C* cos, const C* sin, C sign, T* ya, T* yb) {
  for (int64_t i = 0; i < half; ++i) {
    const C u = static_cast<C>(a[i]), v = static_cast<C>(b[i]), s = sign * sin[i];
    ya[i] = static_cast<T>(u * cos[i] - v * s);
    yb[i] = static_cast<T>(v * cos[i] + u * s);
  }
}

template <class T>
void Run(const RotaryShape& s, const T* x, const void* cos_data, const void* sin_data, T* y) {
  using C = ComputeOf<T>;
  const C *cos = static_cast<const C*>(cos_data), *sin = static_cast<const C*>(sin_data);
  const C sign = s.inverse ? C(-1) : C(1);
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, s.features));
  ParallelFor(s.rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* from = x + r * s.features;
      T* to = y + r * s.features;
      const C* cos_row = cos + r % s.length * s.cos_stride;
      const C* sin_row = sin + r % s.length * s.sin_stride;
      for (int64_t f = 0; f < s.rotated; f += 2 * s.half) {
        Turn(s.half, from + f, from + f + s.half, cos_row, sin_row, sign, to + f, to + f + s.half);
      }
      if (to == from || s.rotated == s.features) continue;
      std::memcpy(to + s.rotated, from + s.rotated,
                  static_cast<size_t>(s.features - s.rotated) * sizeof(T));
    }
  });
}

class CpuRotary final : public Rotary {
 public:
  explicit CpuRotary(DType dtype) : dtype_(dtype) {}
  Status Launch(Stream&, const RotaryShape& shape, const void* x, const void* cos, const void* sin,
                void* y) const override {
    VisitFloating(dtype_, [&]<class T>(Tag<T>) {
      Run<T>(shape, static_cast<const T*>(x), cos, sin, static_cast<T*>(y));
    });
    return OkStatus();
  }

 private:
  DType dtype_;
};

StatusOr<std::unique_ptr<Rotary>> NewRotary(const Rotary::Spec& spec) {
  if (!IsFloating(spec.dtype)) {
    return NoPrimitiveFor(Rotary::kName, DeviceType::kCPU, spec.dtype);
  }
  return std::make_unique<CpuRotary>(spec.dtype);
}

const bool registered = RegisterPrimitive<Rotary>(DeviceType::kCPU, &NewRotary);

}  // namespace
}  // namespace oneflow_lite
