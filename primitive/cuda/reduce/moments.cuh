// SPDX-License-Identifier: Apache-2.0
//
// The reducers of exponentials and of distances from the mean.
#pragma once

#include "primitive/cuda/functions/float_math.cuh"
#include "primitive/cuda/reduce/extremes.cuh"

namespace oneflow_lite {
namespace cuda {

// e^x of a term beside one that is 1, or infinite: its error is below 2^-21 of that.
__device__ __forceinline__ float ExpOfTerm(float x) { return fast::Exp2(x * fast::kLog2E); }
__device__ __forceinline__ double ExpOfTerm(double x) { return exp(x); }

// log(sum(exp(x))): the largest x, and the sum of exp(x - largest). An infinite largest x shifts
// nothing, so that exp is 0 or infinite.
template <class A>
struct LogSumExpReducer {
  using Value = A;
  struct State {
    A max, sum;
  };
  static constexpr bool kShifted = false;
  static constexpr int kBatch = ReducePolicy::kBatch;

  __device__ __forceinline__ State Identity() const { return {-Infinity<A>(), A(0)}; }
  __device__ __forceinline__ void Add(State& s, A v, A, int64_t) const {
    s = Merge(s, {v, ExpOfTerm(v - Shift(v))});
  }
  template <class In, int N, int K>
  __device__ __forceinline__ void AddPacks(State& s, const Pack<In, N> (&x)[K], A,
                                           const int64_t (&)[K]) const {
    const A max = FurthestOf<true, A>(FurthestPack<true>(x)), shift = Shift(max);
    A sum(0);
#pragma unroll
    for (int k = 0; k < K; ++k) {
      A part(0);
#pragma unroll
      for (int i = 0; i < N; ++i) part += ExpOfTerm(ConvertTo<A>(x[k].v[i]) - shift);
      sum += part;
    }
    s = Merge(s, {max, sum});
  }
  template <class In, int N, int K>
  __device__ __forceinline__ void AddPlaces(State (&s)[N], const Pack<In, N> (&x)[K],
                                            const A (&)[N], int64_t) const {
    const Pack<In, N> most = FurthestPack<true>(x);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const A max = ConvertTo<A>(most.v[i]), shift = Shift(max);
      A sum(0);
#pragma unroll
      for (int k = 0; k < K; ++k) sum += ExpOfTerm(ConvertTo<A>(x[k].v[i]) - shift);
      s[i] = Merge(s[i], {max, sum});
    }
  }
  // Of the two, one keeps its shift.
  __device__ __forceinline__ State Merge(const State& a, const State& b) const {
    const A max = Further<true>(a.max, b.max), shift = Shift(max);
    const bool a_stays = Shift(a.max) == shift;
    const A stays = a_stays ? a.sum : b.sum, moves = a_stays ? b.sum : a.sum;
    const A scale = ExpOfTerm(Shift(a_stays ? b.max : a.max) - shift);
    return {max, stays + (moves == A(0) ? A(0) : moves * scale)};
  }
  template <class In>
  __device__ __forceinline__ void Finish(const State& s, A, const ReduceOutputs& out, int64_t y,
                                         const In*, int64_t) const {
    StoreAs(out.y, out.dtype, y, Shift(s.max) + log(s.sum));
  }

 private:
  __device__ __forceinline__ static A Shift(A max) {
    return fabs(max) == Infinity<A>() ? A(0) : max;
  }
};

__device__ __forceinline__ float FastQuotient(float a, float b) { return __fdividef(a, b); }
__device__ __forceinline__ double FastQuotient(double a, double b) { return a / b; }

// Count, mean and squared distances from it, of elements less the first one of the slice, so that a
// mean that is large beside the spread takes no digits away. A batch has its own mean first, and is
// merged as by Chan, Golub and LeVeque. A mean is a sum of shares: an infinite one stays. The
// squares of a slice with an infinite element are NaN.
template <class A>
struct SpreadReducer {
  using Value = A;
  struct State {
    A n, mean, squares;
  };
  static constexpr bool kShifted = true;
  static constexpr int kBatch = ReducePolicy::kBatch;
  double correction;
  bool root;

  __device__ __forceinline__ State Identity() const { return {A(0), A(0), A(0)}; }
  __device__ __forceinline__ void Add(State& s, A v, A shift, int64_t) const {
    s = Merge(s, {A(1), v - shift, v - v});
  }
  template <class In, int N, int K>
  __device__ __forceinline__ void AddPacks(State& s, const Pack<In, N> (&x)[K], A shift,
                                           const int64_t (&)[K]) const {
    A v[K][N], mean(0), squares(0);
#pragma unroll
    for (int k = 0; k < K; ++k) {
      A sum(0);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        v[k][i] = ConvertTo<A>(x[k].v[i]) - shift;
        sum += v[k][i];
      }
      mean += sum;
    }
    mean *= A(1) / A(N * K);
#pragma unroll
    for (int k = 0; k < K; ++k) {
#pragma unroll
      for (int i = 0; i < N; ++i) squares += (v[k][i] - mean) * (v[k][i] - mean);
    }
    s = Merge(s, State{A(N * K), mean, squares});
  }
  template <class In, int N, int K>
  __device__ __forceinline__ void AddPlaces(State (&s)[N], const Pack<In, N> (&x)[K],
                                            const A (&shift)[N], int64_t) const {
    // All columns have as many elements so far.
    const A before = s[0].n, n = before + A(K), share = FastQuotient(A(K), n);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      A v[K], mean(0), squares(0);
#pragma unroll
      for (int k = 0; k < K; ++k) {
        v[k] = ConvertTo<A>(x[k].v[i]) - shift[i];
        mean += v[k];
      }
      mean *= A(1) / A(K);
#pragma unroll
      for (int k = 0; k < K; ++k) squares += (v[k] - mean) * (v[k] - mean);
      const A d = mean - s[i].mean;
      s[i].n = n;
      s[i].mean = s[i].mean * (A(1) - share) + mean * share;
      s[i].squares += squares + d * d * before * share;
    }
  }
  __device__ __forceinline__ State Merge(const State& a, const State& b) const {
    const A n = a.n + b.n;
    const A share = n > A(0) ? FastQuotient(b.n, n) : A(0), d = b.mean - a.mean;
    const A mean = a.mean * (A(1) - share) + b.mean * share;
    return {n, mean, a.squares + b.squares + d * d * a.n * share};
  }
  template <class In>
  __device__ __forceinline__ void Finish(const State& s, A shift, const ReduceOutputs& out,
                                         int64_t y, const In*, int64_t) const {
    const double freedom = static_cast<double>(out.axis) - correction;
    const A nothing = static_cast<A>(NAN);
    A v = s.squares / static_cast<A>(freedom > 0 ? freedom : 0);
    if (root) v = sqrt(v);
    StoreAs(out.y, out.dtype, y, out.axis == 0 ? nothing : v);
    if (out.second) StoreAs(out.second, out.dtype, y, out.axis == 0 ? nothing : shift + s.mean);
  }
};

}  // namespace cuda
}  // namespace oneflow_lite
