// SPDX-License-Identifier: Apache-2.0
#include "primitive/cuda/functions/float_math.cuh"
#include "primitive/cuda/reduce/scan.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

// States are whole words: integers of fewer bytes are carried in int64, which wraps like them.
template <class T>
using Carried = std::conditional_t<std::is_integral_v<T>, int64_t, ComputeType<T>>;

// Sums and products of float32 are carried in double, as on the CPU: memory takes longer.
template <class T>
using Accumulated = std::conditional_t<std::is_same_v<T, float>, double, Carried<T>>;

// Whether columns of T may be scanned in a ring (scan_ring.cuh).
template <class T>
inline constexpr bool kScansInRings = !std::is_integral_v<T> && sizeof(T) <= 4;

template <class T, bool kProduct>
struct Accumulate {
  using C = Accumulated<T>;
  struct State {
    C value;
  };
  const T* x;
  T* y;
  explicit Accumulate(const ScanRun& r) : x(static_cast<const T*>(r.x)), y(static_cast<T*>(r.y)) {}
  static constexpr int kItems = sizeof(C) <= 4 ? 16 : 8, kRowBlocks = 8;
  static constexpr int kColumns = 4, kHeldBytes = 256;
  static constexpr int kRingWarps = kScansInRings<T> ? 8 : 0;
  static constexpr bool kOfElements = true, kScansRuns = false, kLogRows = false, kLogRing = false;
  using Element = T;
  __device__ __forceinline__ State Of(T v, int64_t) const { return {ConvertTo<C>(v)}; }
  __device__ __forceinline__ C Value(const State& s) const { return s.value; }
  template <int N>
  __device__ __forceinline__ void WriteRun(int64_t low, bool reverse, const State (&s)[N]) const {
    T v[N];
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] = ConvertTo<T>(Value(s[i]));
    StoreRun(y + low, reverse, v);
  }
  __device__ __forceinline__ State Merge(const State& a, const State& b) const {
    return {kProduct ? static_cast<C>(a.value * b.value) : static_cast<C>(a.value + b.value)};
  }
};
template <class T>
using Sum = Accumulate<T, false>;
template <class T>
using Product = Accumulate<T, true>;

// An extreme and its last place; NaN stays.
template <class T, bool kMin>
struct Extreme {
  using C = std::conditional_t<std::is_integral_v<T> && sizeof(T) <= 4, int32_t, Carried<T>>;
  struct State {
    C value;
    int64_t place;
  };
  const T* x;
  T* y;
  int64_t* places;
  explicit Extreme(const ScanRun& r)
      : x(static_cast<const T*>(r.x)), y(static_cast<T*>(r.y)), places(r.places) {}
  static constexpr int kItems = 4, kColumns = 2;  // whose places are 32 and 16 bytes
  static constexpr int kRowBlocks = 8, kHeldBytes = 256, kRingWarps = 0;
  static constexpr bool kOfElements = true, kScansRuns = false, kLogRows = false, kLogRing = false;
  using Element = T;
  __device__ __forceinline__ State Of(T v, int64_t place) const { return {ConvertTo<C>(v), place}; }
  template <int N>
  __device__ __forceinline__ void WriteRun(int64_t low, bool reverse, const State (&s)[N]) const {
    T v[N];
    int64_t at[N];
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] = ConvertTo<T>(s[i].value), at[i] = s[i].place;
    StoreRun(y + low, reverse, v);
    StoreRun(places + low, reverse, at);
  }
  __device__ __forceinline__ State Merge(const State& a, const State& b) const {
    const bool wins = (kMin ? b.value <= a.value : b.value >= a.value) || b.value != b.value;
    return wins ? b : a;
  }
};
template <class T>
using Maximum = Extreme<T, false>;
template <class T>
using Minimum = Extreme<T, true>;

// exp(x) of x <= 0, which errs by some units in the last place for each unit of x: where x is
// large, the result is small beside the 1 that it is added to. And log(x) of normal x: within
// 2^-22 of the greater of it and 1.
__device__ __forceinline__ float ExpNonPositive(float x) { return fast::Exp2(x * 1.44269504f); }
__device__ __forceinline__ double ExpNonPositive(double x) { return exp(x); }
__device__ __forceinline__ float LogOfSum(float x) { return fast::Log2(x) * 0.693147181f; }
__device__ __forceinline__ double LogOfSum(double x) { return log(x); }

template <class T>
struct LogSumExp {
  using C = ComputeType<T>;
  struct State {
    C max, sum;
  };
  const T* x;
  T* y;
  explicit LogSumExp(const ScanRun& r) : x(static_cast<const T*>(r.x)), y(static_cast<T*>(r.y)) {}
  static constexpr C kNear = sizeof(T) == 2 ? 16 : 8;
  static constexpr int kItems = sizeof(C) <= 4 ? 16 : 8, kRowBlocks = 6;
  static constexpr int kColumns = 4, kHeldBytes = 128;
  static constexpr int kRingWarps = !kScansInRings<T> ? 0 : sizeof(T) == 2 ? 16 : 8;
  static constexpr bool kOfElements = true, kScansRuns = true;
  static constexpr bool kLogRows = sizeof(T) <= 4, kLogRing = sizeof(T) == 2;
  using Element = T;
  __device__ __forceinline__ State Of(T v, int64_t) const { return {ConvertTo<C>(v), C(1)}; }
  __device__ __forceinline__ static C Exp(C x) { return ExpNonPositive(x); }
  __device__ __forceinline__ C Value(const State& s) const { return s.max + LogOfSum(s.sum); }
  template <int N>
  __device__ __forceinline__ void WriteRun(int64_t low, bool reverse, const State (&s)[N]) const {
    T v[N];
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] = ConvertTo<T>(Value(s[i]));
    StoreRun(y + low, reverse, v);
  }
  __device__ __forceinline__ State Merge(const State& a, const State& b) const {
    // One of the two shares is 1. A NaN among them makes the sum NaN.
    const C share =
        a.max == b.max ? C(1) : ExpNonPositive(a.max > b.max ? b.max - a.max : a.max - b.max);
    return a.max > b.max ? State{a.max, a.sum + b.sum * share}
                         : State{b.max, b.sum + a.sum * share};
  }
  // The merge of get(0) ... get(n - 1), n > 0, whose exponentials do not wait for each other.
  template <class Get>
  __device__ __forceinline__ State MergeAll(int n, const Get& get) const {
    C most = get(0).max;
#pragma unroll 4
    for (int i = 1; i < n; ++i) {
      const C max = get(i).max;
      most = max > most ? max : most;
    }
    const C shift = fabs(most) < C(INFINITY) ? most : C(0);
    C sum = 0;
#pragma unroll 4
    for (int i = 0; i < n; ++i) {
      const State s = get(i);
      sum += s.sum * ExpNonPositive(s.max - shift);
    }
    return {most, sum};
  }
  // The inclusive scan of N elements, of which those from `count` on are anything: sums beside one
  // maximum, where the first is not far below it. A result errs by as much of that distance as a
  // C does of it, besides.
  template <int N>
  __device__ __forceinline__ void Scan(State (&s)[N], int count) const {
    C most = s[0].max;
#pragma unroll
    for (int i = 1; i < N; ++i) {
      if (i < count && s[i].max > most) most = s[i].max;
    }
    if (most - s[0].max <= kNear) {  // neither infinities nor NaN
      C sum = 0;
#pragma unroll
      for (int i = 0; i < N; ++i) {
        sum += ExpNonPositive(s[i].max - most);
        s[i] = {most, sum};
      }
      return;
    }
#pragma unroll
    for (int i = 1; i < N; ++i) s[i] = Merge(s[i - 1], s[i]);
  }
  // Merges `before` with each of N states that Scan gave.
  template <int N>
  __device__ __forceinline__ void After(const State& before, State (&s)[N]) const {
    const C own = s[0].max;
    if (own == s[N - 1].max) {  // then all have this maximum
      const C most = before.max > own ? before.max : own;
      const C of_before = before.max == most ? C(1) : ExpNonPositive(before.max - most);
      const C of_each = own == most ? C(1) : ExpNonPositive(own - most);
#pragma unroll
      for (int i = 0; i < N; ++i) s[i] = {most, before.sum * of_before + s[i].sum * of_each};
      return;
    }
#pragma unroll
    for (int i = 0; i < N; ++i) s[i] = Merge(before, s[i]);
  }
};

// s -> value + factor s, composed.
template <class T>
struct Linear {
  using C = ComputeType<T>;
  struct State {
    C factor, value;
  };
  const T *x, *other;
  T* y;
  int64_t to_other;  // from an element to its factor
  explicit Linear(const ScanRun& r)
      : x(static_cast<const T*>(r.x)),
        other(static_cast<const T*>(r.other)),
        y(static_cast<T*>(r.y)),
        to_other(!r.shifted  ? 0
                 : r.reverse ? r.problem.inner
                             : -r.problem.inner) {}
  static constexpr int kItems = 8, kRowBlocks = 8, kColumns = 1, kRingWarps = 0;
  static constexpr bool kOfElements = false, kScansRuns = false, kLogRows = false, kLogRing = false;
  __device__ __forceinline__ State At(int64_t i, int64_t, bool first) const {
    return {first ? C(0) : ConvertTo<C>(other[i + to_other]), ConvertTo<C>(x[i])};
  }
  __device__ __forceinline__ State Merge(const State& a, const State& b) const {
    return {a.factor * b.factor, b.value + b.factor * a.value};
  }
  __device__ __forceinline__ void Write(int64_t i, const State& s) const {
    y[i] = ConvertTo<T>(s.value);
  }
};

template <class T>
struct ProductBefore {
  using C = ComputeType<T>;
  struct State {
    C value;
  };
  const T *x, *other;
  T* y;
  int64_t back;  // from an element to the one before
  explicit ProductBefore(const ScanRun& r)
      : x(static_cast<const T*>(r.x)),
        other(static_cast<const T*>(r.other)),
        y(static_cast<T*>(r.y)),
        back(r.reverse ? r.problem.inner : -r.problem.inner) {}
  static constexpr int kItems = 8, kRowBlocks = 8, kColumns = 1, kRingWarps = 0;
  static constexpr bool kOfElements = false, kScansRuns = false, kLogRows = false, kLogRing = false;
  __device__ __forceinline__ State At(int64_t i, int64_t, bool first) const {
    return {first ? C(1) : ConvertTo<C>(x[i + back])};
  }
  __device__ __forceinline__ State Merge(const State& a, const State& b) const {
    return {a.value * b.value};
  }
  __device__ __forceinline__ void Write(int64_t i, const State& s) const {
    y[i] = ConvertTo<T>(ConvertTo<C>(other[i]) * s.value);
  }
};

template <class F>
cudaError_t LaunchOf(const ScanRun& run, const DeviceLimits& limits, cudaStream_t stream) {
  return LaunchScan(run, F(run), limits, stream);
}

template <template <class> class F>
struct Finder {
  template <class T>
  ScanLaunchers operator()(Tag<T>) const {
    return {&ScanWorkspace<F<T>>, &LaunchOf<F<T>>};
  }
};

}  // namespace

ScanLaunchers FindScan(ScanKind kind, DType dtype) {
  switch (kind) {
    case ScanKind::kSum:
      return VisitDeviceNumeric<ScanLaunchers>(dtype, Finder<Sum>{});
    case ScanKind::kProd:
      return VisitDeviceNumeric<ScanLaunchers>(dtype, Finder<Product>{});
    case ScanKind::kMax:
      return VisitDeviceAll<ScanLaunchers>(dtype, Finder<Maximum>{});
    case ScanKind::kMin:
      return VisitDeviceAll<ScanLaunchers>(dtype, Finder<Minimum>{});
    case ScanKind::kLogSumExp:
      return VisitDeviceFloating<ScanLaunchers>(dtype, Finder<LogSumExp>{});
    case ScanKind::kLinear:
      return VisitDeviceFloating<ScanLaunchers>(dtype, Finder<Linear>{});
    case ScanKind::kProductBefore:
      return VisitDeviceFloating<ScanLaunchers>(dtype, Finder<ProductBefore>{});
  }
  return {};
}

}  // namespace cuda
}  // namespace oneflow_lite
