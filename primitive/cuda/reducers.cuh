// SPDX-License-Identifier: Apache-2.0
//
// The reducers of reduce.cuh.
#pragma once

#include "primitive/cuda/chip/compensated_sum.cuh"
#include "primitive/cuda/reduce.cuh"

namespace oneflow_lite {
namespace cuda {

// Adds a pack element by element.
template <class Reducer, class Value_>
struct EachReducer {
  using Value = Value_;
  static constexpr bool kShifted = false;
  template <class In, int N, class State>
  __device__ __forceinline__ void AddPack(State& state, const Pack<In, N>& p, Value,
                                          int64_t place) const {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      static_cast<const Reducer*>(this)->Add(state, ConvertTo<Value>(p.v[i]), place + i);
    }
  }
};

template <class A>
__device__ __forceinline__ A Infinity() {
  return static_cast<A>(__builtin_huge_val());
}

// Sums of floats with their rounding error, of integers as they wrap; the result over a divisor.
template <class A>
struct SumReducer {
  using Value = A;
  using State = CompensatedSum<A>;
  static constexpr bool kShifted = false;
  double divisor;  // 1 for none, NaN for a mean over nothing

  __device__ __forceinline__ State Identity() const { return {}; }
  __device__ __forceinline__ void Add(State& s, A v, int64_t) const { s.Add(v); }
  // A pack's elements pairwise first.
  template <class In, int N>
  __device__ __forceinline__ void AddPack(State& s, const Pack<In, N>& p, A, int64_t) const {
    A v[N];
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] = ConvertTo<A>(p.v[i]);
#pragma unroll
    for (int half = N / 2; half > 0; half /= 2) {
#pragma unroll
      for (int i = 0; i < half; ++i) v[i] += v[i + half];
    }
    s.Add(v[0]);
  }
  __device__ __forceinline__ State Merge(const State& a, const State& b) const {
    return MergeCompensated{}(a, b);
  }
  __device__ __forceinline__ void Finish(const State& s, A, const ReduceOutputs& out,
                                         int64_t item) const {
    A v = s.Get();
    if (divisor != 1) v = static_cast<A>(v / static_cast<A>(divisor));
    StoreAs(out.y, out.dtype, item, v);
  }
};

// The same of what is not NaN; a mean over how many that are.
template <class A>
struct NanSumReducer : EachReducer<NanSumReducer<A>, A> {
  struct State {
    CompensatedSum<A> sum;
    int64_t count;
  };
  bool mean;

  __device__ __forceinline__ State Identity() const { return {{}, 0}; }
  __device__ __forceinline__ void Add(State& s, A v, int64_t) const {
    const bool number = v == v;
    s.sum.Add(number ? v : A(0));
    s.count += number;
  }
  __device__ __forceinline__ State Merge(const State& a, const State& b) const {
    return {MergeCompensated{}(a.sum, b.sum), a.count + b.count};
  }
  __device__ __forceinline__ void Finish(const State& s, A, const ReduceOutputs& out,
                                         int64_t item) const {
    A v = s.sum.Get();
    if (mean) v = static_cast<A>(v / static_cast<A>(s.count));
    StoreAs(out.y, out.dtype, item, v);
  }
};

template <class A>
struct ProdReducer : EachReducer<ProdReducer<A>, A> {
  struct State {
    A product;
  };
  __device__ __forceinline__ State Identity() const { return {A(1)}; }
  __device__ __forceinline__ void Add(State& s, A v, int64_t) const { s.product *= v; }
  __device__ __forceinline__ State Merge(const State& a, const State& b) const {
    return {static_cast<A>(a.product * b.product)};
  }
  __device__ __forceinline__ void Finish(const State& s, A, const ReduceOutputs& out,
                                         int64_t item) const {
    StoreAs(out.y, out.dtype, item, s.product);
  }
};

// The product of what is not 0, and how many zeros.
template <class A>
struct ProdPartsReducer : EachReducer<ProdPartsReducer<A>, A> {
  struct State {
    A product;
    int64_t zeros;
  };
  __device__ __forceinline__ State Identity() const { return {A(1), 0}; }
  __device__ __forceinline__ void Add(State& s, A v, int64_t) const {
    s.product *= v == A(0) ? A(1) : v;
    s.zeros += v == A(0);
  }
  __device__ __forceinline__ State Merge(const State& a, const State& b) const {
    return {a.product * b.product, a.zeros + b.zeros};
  }
  __device__ __forceinline__ void Finish(const State& s, A, const ReduceOutputs& out,
                                         int64_t item) const {
    StoreAs(out.y, out.dtype, item, s.product);
    static_cast<int64_t*>(out.second)[item] = s.zeros;
  }
};

// How many are not 0; or whether any is, or whether all are.
enum class CountOf : int { kItself, kAny, kAll };
template <class A>
struct CountReducer : EachReducer<CountReducer<A>, A> {
  struct State {
    int64_t count;
  };
  CountOf of;

  __device__ __forceinline__ State Identity() const { return {0}; }
  __device__ __forceinline__ void Add(State& s, A v, int64_t) const { s.count += v != A(0); }
  __device__ __forceinline__ State Merge(const State& a, const State& b) const {
    return {a.count + b.count};
  }
  __device__ __forceinline__ void Finish(const State& s, A, const ReduceOutputs& out,
                                         int64_t item) const {
    const int64_t v = of == CountOf::kItself ? s.count
                      : of == CountOf::kAny  ? s.count != 0
                                             : s.count == out.axis;
    StoreAs(out.y, out.dtype, item, v);
  }
};

template <class A>
__device__ __forceinline__ A SmallerOrNan(A m, A v) {
  return v < m || v != v ? v : m;
}
template <class A>
__device__ __forceinline__ A LargerOrNan(A m, A v) {
  return v > m || v != v ? v : m;
}
template <class A>
__device__ __forceinline__ A LowestOf() {
  if constexpr (std::is_floating_point_v<A>) {
    return -Infinity<A>();
  } else {
    return A(1) << (8 * sizeof(A) - 1);  // of a signed integer
  }
}
template <class A>
__device__ __forceinline__ A HighestOf() {
  if constexpr (std::is_floating_point_v<A>) {
    return Infinity<A>();
  } else {
    return ~LowestOf<A>();
  }
}

// The smallest and the largest, of which `op` wants one or both; NaN wins.
template <class A>
struct ExtremesReducer : EachReducer<ExtremesReducer<A>, A> {
  struct State {
    A low, high;
  };
  ReduceKind op;

  __device__ __forceinline__ State Identity() const { return {HighestOf<A>(), LowestOf<A>()}; }
  __device__ __forceinline__ void Add(State& s, A v, int64_t) const {
    s.low = SmallerOrNan(s.low, v);
    s.high = LargerOrNan(s.high, v);
  }
  __device__ __forceinline__ State Merge(const State& a, const State& b) const {
    return {SmallerOrNan(a.low, b.low), LargerOrNan(a.high, b.high)};
  }
  __device__ __forceinline__ void Finish(const State& s, A, const ReduceOutputs& out,
                                         int64_t item) const {
    StoreAs(out.y, out.dtype, item, op == ReduceKind::kMax ? s.high : s.low);
    if (out.second) StoreAs(out.second, out.dtype, item, s.high);
  }
};

// An extreme and where it stands: the first one, or the first NaN.
template <class A>
struct PlaceReducer : EachReducer<PlaceReducer<A>, A> {
  struct State {
    A value;
    int64_t place;
  };
  bool smallest;

  __device__ __forceinline__ State Identity() const {
    return {smallest ? HighestOf<A>() : LowestOf<A>(), INT64_MAX};  // loses to every element
  }
  __device__ __forceinline__ void Add(State& s, A v, int64_t place) const {
    s = Merge(s, State{v, place});
  }
  __device__ __forceinline__ State Merge(const State& a, const State& b) const {
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    if (a.value == b.value || (a_nan && b_nan)) return a.place < b.place ? a : b;
    const bool before = smallest ? a.value < b.value : a.value > b.value;
    return a_nan || (!b_nan && before) ? a : b;
  }
  __device__ __forceinline__ void Finish(const State& s, A, const ReduceOutputs& out,
                                         int64_t item) const {
    if (out.y) StoreAs(out.y, out.dtype, item, s.value);
    static_cast<int64_t*>(out.second)[item] = s.place;
  }
};

// The p-norm; the kind is the same for a whole launch.
enum class NormKind : int { kCount, kSum, kSquares, kPowers, kMax, kMin };
template <class A>
struct NormReducer : EachReducer<NormReducer<A>, A> {
  using State = CompensatedSum<A>;
  NormKind kind;
  double p;

  __device__ __forceinline__ bool extreme() const { return kind >= NormKind::kMax; }
  __device__ __forceinline__ State Identity() const {
    State s;
    if (kind == NormKind::kMin) s.high = Infinity<A>();
    return s;
  }
  __device__ __forceinline__ void Add(State& s, A v, int64_t) const {
    const A size = v < A(0) ? -v : v;
    switch (kind) {
      case NormKind::kCount:
        s.Add(v != A(0) ? A(1) : A(0));
        break;
      case NormKind::kSum:
        s.Add(size);
        break;
      case NormKind::kSquares:
        s.Add(v * v);
        break;
      case NormKind::kPowers:
        s.Add(pow(size, static_cast<A>(p)));
        break;
      case NormKind::kMax:
        s.high = LargerOrNan(s.high, size);
        break;
      case NormKind::kMin:
        s.high = SmallerOrNan(s.high, size);
        break;
    }
  }
  __device__ __forceinline__ State Merge(const State& a, const State& b) const {
    if (!extreme()) return MergeCompensated{}(a, b);
    State s;
    s.high = kind == NormKind::kMax ? LargerOrNan(a.high, b.high) : SmallerOrNan(a.high, b.high);
    return s;
  }
  __device__ __forceinline__ void Finish(const State& s, A, const ReduceOutputs& out,
                                         int64_t item) const {
    A v = s.Get();
    if (kind == NormKind::kSquares) v = sqrt(v);
    if (kind == NormKind::kPowers) v = pow(v, static_cast<A>(1 / p));
    StoreAs(out.y, out.dtype, item, out.axis == 0 ? A(0) : v);
  }
};

// log(sum(exp(x))): the largest x, and the sum of exp(x - largest).
template <class A>
struct LogSumExpReducer : EachReducer<LogSumExpReducer<A>, A> {
  struct State {
    A max, sum;
  };
  __device__ __forceinline__ State Identity() const { return {-Infinity<A>(), A(0)}; }
  __device__ __forceinline__ void Add(State& s, A v, int64_t) const { s = Merge(s, {v, A(1)}); }
  __device__ __forceinline__ State Merge(const State& a, const State& b) const {
    const bool first = a.max >= b.max;
    const State top = first ? a : b, low = first ? b : a;
    const A share = low.max == top.max ? A(1) : exp(low.max - top.max);
    return {top.max, top.sum + (low.sum == A(0) ? A(0) : low.sum * share)};
  }
  __device__ __forceinline__ void Finish(const State& s, A, const ReduceOutputs& out,
                                         int64_t item) const {
    StoreAs(out.y, out.dtype, item, s.max + log(s.sum));
  }
};

// Count, mean and squared distances from it, of elements less the first one of the slice, so that a
// mean that is large beside the spread takes no digits away. Merged as by Chan, Golub and LeVeque.
template <class A>
struct SpreadReducer {
  using Value = A;
  static constexpr bool kShifted = true;
  struct State {
    A n, mean, squares;
  };
  double correction;
  bool root;

  __device__ __forceinline__ State Identity() const { return {A(0), A(0), A(0)}; }
  __device__ __forceinline__ void Add(State& s, A v, int64_t) const {
    s.n += A(1);
    const A d = v - s.mean;
    s.mean += d / s.n;
    s.squares += d * (v - s.mean);
  }
  // The pack's own mean and squares first: one division for all of it.
  template <class In, int N>
  __device__ __forceinline__ void AddPack(State& s, const Pack<In, N>& p, A shift, int64_t) const {
    A v[N], mean = A(0), squares = A(0);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      v[i] = ConvertTo<A>(p.v[i]) - shift;
      mean += v[i];
    }
    mean *= A(1) / A(N);
#pragma unroll
    for (int i = 0; i < N; ++i) squares += (v[i] - mean) * (v[i] - mean);
    s = Merge(s, State{A(N), mean, squares});
  }
  __device__ __forceinline__ State Merge(const State& a, const State& b) const {
    const A n = a.n + b.n;
    const A share = n > A(0) ? b.n / n : A(0), d = b.mean - a.mean;
    return {n, a.mean + d * share, a.squares + b.squares + d * d * a.n * share};
  }
  __device__ __forceinline__ void Finish(const State& s, A shift, const ReduceOutputs& out,
                                         int64_t item) const {
    const double freedom = static_cast<double>(out.axis) - correction;
    const A nothing = static_cast<A>(NAN);
    A v = s.squares / static_cast<A>(freedom > 0 ? freedom : 0);
    if (root) v = sqrt(v);
    StoreAs(out.y, out.dtype, item, out.axis == 0 ? nothing : v);
    if (out.second) StoreAs(out.second, out.dtype, item, out.axis == 0 ? nothing : shift + s.mean);
  }
};

}  // namespace cuda
}  // namespace oneflow_lite
