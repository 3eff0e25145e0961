// SPDX-License-Identifier: Apache-2.0
//
// A scan is a state and a step; columns are stepped through side by side, and so are a few rows.
#include "primitive/scan.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/beyond.h"
#include "primitive/cpu/convert.h"
#include "primitive/cpu/rearrange.h"

namespace oneflow_lite {
namespace {

constexpr int64_t kGrain = 16384;      // elements, some 10 us of work
constexpr int64_t kColumnBlock = 256;  // columns that are stepped through together
constexpr int64_t kRowsAtOnce = 4;     // rows, of which each step waits for the one before it

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
  BeyondFunction next = FindReaching(DTypeOf<T>(), !kMin);
  RepeatFunction repeat = FindRepeat(sizeof(T)), repeat_place = FindRepeat(sizeof(int64_t));
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

// `count` rows one after the other in memory.
template <int kCount, class F>
void Rows(const F& step, const AxisSplit& s, bool reverse, int64_t offset) {
  typename F::State states[kCount] = {};
  for (int64_t k = 0; k < s.axis; ++k) {
    const int64_t place = reverse ? s.axis - 1 - k : k;
    for (int r = 0; r < kCount; ++r) step(states[r], offset + r * s.axis + place, place, k == 0);
  }
}

// A row forwards. Few elements reach what is the extreme so far; the others repeat it.
template <class T, bool kMin>
void ExtremeRow(const Extreme<T, kMin>& step, int64_t axis, int64_t offset) {
  constexpr int64_t kLeast = 8, kMost = 64;
  int64_t steps = kLeast;  // after one that does: the more, the more of them follow
  typename Extreme<T, kMin>::State state{};
  const T* x = step.x + offset;
  for (int64_t i = 0; i < axis;) {
    for (const int64_t end = std::min(axis, i + steps); i < end; ++i) {
      step(state, offset + i, i, i == 0);
    }
    const T bound = Narrow<T>(state.best);
    const int64_t end = step.next(x, i, axis, &bound);
    step.repeat(end - i, &bound, step.y + offset + i);
    step.repeat_place(end - i, &state.at, step.places + offset + i);
    steps = end == i ? std::min(2 * steps, kMost) : kLeast;
    i = end;
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

// Rows of 16-bit floats are widened and rounded by vectors, a piece of each row at a time.
template <int kCount, class T, bool kProduct>
void ShortRows(const Accumulate<T, kProduct>& step, int64_t axis, bool reverse, int64_t offset) {
  constexpr int64_t kPiece = 256;
  const ConvertFunction widen = FindConvert(DTypeOf<T>(), DType::kFloat32);
  const ConvertFunction narrow = FindConvert(DType::kFloat32, DTypeOf<T>());
  float piece[kCount * kPiece];
  const Accumulate<float, kProduct> wide{piece, piece};
  double states[kCount] = {};
  for (int64_t k = 0; k < axis; k += kPiece) {
    const int64_t n = std::min(kPiece, axis - k), from = offset + (reverse ? axis - k - n : k);
    for (int r = 0; r < kCount; ++r) widen(n, step.x + from + r * axis, piece + r * kPiece);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = reverse ? n - 1 - i : i;
      for (int r = 0; r < kCount; ++r) wide(states[r], r * kPiece + at, at, k + i == 0);
    }
    for (int r = 0; r < kCount; ++r) narrow(n, piece + r * kPiece, step.y + from + r * axis);
  }
}

// The same of rows of a few elements, many of them at a time.
constexpr int64_t kFewColumns = 64;
template <class T, bool kProduct>
void NarrowRows(const Accumulate<T, kProduct>& step, int64_t axis, bool reverse, int64_t offset,
                int64_t count) {
  constexpr int64_t kPiece = 1024;
  const ConvertFunction widen = FindConvert(DTypeOf<T>(), DType::kFloat32);
  const ConvertFunction narrow = FindConvert(DType::kFloat32, DTypeOf<T>());
  float piece[kPiece];
  const Accumulate<float, kProduct> wide{piece, piece};
  for (int64_t n; count > 0; count -= n, offset += n * axis) {
    n = std::min(count, kPiece / axis);
    widen(n * axis, step.x + offset, piece);
    for (int64_t r = 0; r < n; ++r) {
      double state = 0;
      for (int64_t i = 0; i < axis; ++i) {
        const int64_t at = reverse ? axis - 1 - i : i;
        wide(state, r * axis + at, at, i == 0);
      }
    }
    narrow(n * axis, piece, step.y + offset);
  }
}

// What kind of rows a step goes through.
template <class F>
constexpr bool kIsExtreme = false;
template <class T, bool kMin>
constexpr bool kIsExtreme<Extreme<T, kMin>> = true;
template <class F>
constexpr bool kIsShort = false;
template <class T, bool kProduct>
constexpr bool kIsShort<Accumulate<T, kProduct>> = !std::is_same_v<T, ComputeOf<T>>;

template <int kCount, class F>
void SomeRows(const F& step, const AxisSplit& s, bool reverse, int64_t offset) {
  if constexpr (kIsShort<F>) {
    ShortRows<kCount>(step, s.axis, reverse, offset);
  } else {
    Rows<kCount>(step, s, reverse, offset);
  }
}

// All of `count` rows.
template <class F>
void ManyRows(const F& step, const AxisSplit& s, bool reverse, int64_t offset, int64_t count) {
  if constexpr (kIsExtreme<F>) {
    for (; !reverse && count > 0; --count, offset += s.axis) ExtremeRow(step, s.axis, offset);
  }
  if constexpr (kIsShort<F>) {
    if (s.axis <= kFewColumns) return NarrowRows(step, s.axis, reverse, offset, count);
  }
  for (; count >= kRowsAtOnce; count -= kRowsAtOnce, offset += kRowsAtOnce * s.axis) {
    SomeRows<kRowsAtOnce>(step, s, reverse, offset);
  }
  for (; count > 0; --count, offset += s.axis) SomeRows<1>(step, s, reverse, offset);
}

template <class F>
Status Run(const F& step, const AxisSplit& s, bool reverse) {
  if (s.axis <= 0 || s.inner <= 0) return OkStatus();
  const int64_t width = std::min(s.inner, kColumnBlock);
  const int64_t blocks = (s.inner + width - 1) / width;
  const int64_t grain = std::max<int64_t>(1, kGrain / (s.axis * width));
  ParallelFor(s.outer * blocks, grain, [&](int64_t begin, int64_t end) {
    if (s.inner == 1) return ManyRows(step, s, reverse, begin * s.axis, end - begin);
    for (int64_t task = begin; task < end; ++task) {
      const int64_t column = task % blocks * width;
      const int64_t offset = task / blocks * s.axis * s.inner + column;
      Columns(step, s, reverse, offset, std::min(width, s.inner - column));
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
