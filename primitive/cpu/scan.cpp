// SPDX-License-Identifier: Apache-2.0
//
// A scan is a state and a step; columns are stepped through side by side.
#include "primitive/scan.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "oneflow_lite/core/parallel.h"

namespace oneflow_lite {
namespace {

constexpr int64_t kGrain = 16384;      // elements, some 10 us of work
constexpr int64_t kColumnBlock = 256;  // columns that are stepped through together

// Sums of floats are kept in double, whose rounding does not add up to anything in float32.
template <class T>
using SumOf = std::conditional_t<IsFloating(DTypeOf<T>()), double, T>;
template <class T>
ComputeOf<T> Wide(T x) {
  return static_cast<ComputeOf<T>>(x);
}
template <class T, class C>
T Narrow(C x) {
  return T(static_cast<ComputeOf<T>>(x));
}

// A step gets its state, the element's offset and place in the axis, and whether it is the first.

template <class T, bool kProduct>
struct Accumulate {
  using State = SumOf<T>;
  const T* x;
  T* y;
  void operator()(State& s, int64_t i, int64_t, bool first) const {
    const auto v = static_cast<State>(Wide(x[i]));
    if constexpr (kProduct) {
      s = first ? v : static_cast<State>(s * v);
    } else {
      s = first ? v : static_cast<State>(s + v);
    }
    y[i] = Narrow<T>(s);
  }
};

template <class T, bool kMin>
struct Extreme {
  struct State {
    ComputeOf<T> best;
    int64_t at;
  };
  const T* x;
  T* y;
  int64_t* places;
  void operator()(State& s, int64_t i, int64_t place, bool first) const {
    const auto v = Wide(x[i]);
    if (first || (kMin ? v <= s.best : v >= s.best) || v != v) s = {v, place};  // NaN stays
    y[i] = Narrow<T>(s.best);
    places[i] = s.at;
  }
};

template <class T>
struct LogSumExp {
  struct State {
    double max, sum;
  };
  const T* x;
  T* y;
  void operator()(State& s, int64_t i, int64_t, bool first) const {
    using C = ComputeOf<T>;
    const double v = Wide(x[i]);
    if (first) {
      s = {v, 1};
    } else {
      const double share = v == s.max ? 1 : std::exp(static_cast<C>(-std::abs(v - s.max)));
      s = v > s.max ? State{v, s.sum * share + 1} : State{s.max, s.sum + share};
    }
    y[i] = Narrow<T>(s.sum == 1 ? s.max : s.max + std::log(static_cast<C>(s.sum)));
  }
};

template <class T>
struct Linear {
  using State = double;
  const T *x, *other;
  T* y;
  int64_t to_other;  // from an element to its factor
  void operator()(State& s, int64_t i, int64_t, bool first) const {
    const double v = Wide(x[i]);
    s = first ? v : v + static_cast<double>(Wide(other[i + to_other])) * s;
    y[i] = Narrow<T>(s);
  }
};

template <class T>
struct ProductBefore {
  using State = double;
  const T *x, *other;
  T* y;
  void operator()(State& s, int64_t i, int64_t, bool first) const {
    if (first) s = 1;
    const double v = Wide(x[i]), factor = Wide(other[i]);
    y[i] = Narrow<T>(factor * s);
    s *= v;
  }
};

template <class F>
void Row(const F& step, const AxisSplit& s, bool reverse, int64_t offset) {
  typename F::State state{};
  for (int64_t k = 0; k < s.axis; ++k) {
    const int64_t place = reverse ? s.axis - 1 - k : k;
    step(state, offset + place, place, k == 0);
  }
}

template <class F>
void Columns(const F& step, const AxisSplit& s, bool reverse, int64_t offset, int64_t width) {
  typename F::State states[kColumnBlock];
  for (int64_t k = 0; k < s.axis; ++k) {
    const int64_t place = reverse ? s.axis - 1 - k : k, from = offset + place * s.inner;
    if (k == 0) {
      for (int64_t j = 0; j < width; ++j) step(states[j], from + j, place, true);
    } else {
      for (int64_t j = 0; j < width; ++j) step(states[j], from + j, place, false);
    }
  }
}

template <class F>
Status Run(const F& step, const AxisSplit& s, bool reverse) {
  if (s.axis <= 0 || s.inner <= 0) return OkStatus();
  const int64_t width = std::min(s.inner, kColumnBlock);
  const int64_t blocks = (s.inner + width - 1) / width;
  const int64_t grain = std::max<int64_t>(1, kGrain / (s.axis * width));
  ParallelFor(s.outer * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t column = task % blocks * width;
      const int64_t offset = task / blocks * s.axis * s.inner + column;
      if (s.inner == 1) {
        Row(step, s, reverse, offset);
      } else {
        Columns(step, s, reverse, offset, std::min(width, s.inner - column));
      }
    }
  });
  return OkStatus();
}

class CpuScan final : public Scan {
 public:
  explicit CpuScan(const Spec& spec) : spec_(spec) {}

  Status Launch(Stream&, const AxisSplit& shape, bool reverse, bool shifted, const Operands& o,
                void*) const override {
    return VisitAll(spec_.dtype, [&]<class T>(Tag<T>) {
      const T *x = static_cast<const T*>(o.x), *other = static_cast<const T*>(o.other);
      T* y = static_cast<T*>(o.y);
      if (spec_.op == ScanKind::kMax) return Run(Extreme<T, false>{x, y, o.places}, shape, reverse);
      if (spec_.op == ScanKind::kMin) return Run(Extreme<T, true>{x, y, o.places}, shape, reverse);
      if constexpr (!std::is_same_v<T, bool>) {
        if (spec_.op == ScanKind::kSum) return Run(Accumulate<T, false>{x, y}, shape, reverse);
        if (spec_.op == ScanKind::kProd) return Run(Accumulate<T, true>{x, y}, shape, reverse);
      }
      if constexpr (IsFloating(DTypeOf<T>())) {
        if (spec_.op == ScanKind::kLogSumExp) return Run(LogSumExp<T>{x, y}, shape, reverse);
        if (spec_.op == ScanKind::kProductBefore) {
          return Run(ProductBefore<T>{x, other, y}, shape, reverse);
        }
        const int64_t back = !shifted ? 0 : reverse ? shape.inner : -shape.inner;
        return Run(Linear<T>{x, other, y, back}, shape, reverse);
      }
      return OkStatus();
    });
  }

 private:
  Spec spec_;
};

StatusOr<std::unique_ptr<Scan>> NewScan(const Scan::Spec& spec) {
  if (!ScanTakes(spec.op, spec.dtype)) {
    return NoPrimitiveFor(Scan::kName, DeviceType::kCPU, spec.dtype);
  }
  return std::make_unique<CpuScan>(spec);
}

const bool registered = RegisterPrimitive<Scan>(DeviceType::kCPU, &NewScan);

}  // namespace
}  // namespace oneflow_lite
