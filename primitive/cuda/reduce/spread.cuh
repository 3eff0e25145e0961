// SPDX-License-Identifier: Apache-2.0
//
// The reducer of distances from the mean.
#pragma once

#include "primitive/cuda/reduce/extremes.cuh"

namespace oneflow_lite {
namespace cuda {

__device__ __forceinline__ float FastQuotient(float a, float b) { return __fdividef(a, b); }
__device__ __forceinline__ double FastQuotient(double a, double b) { return a / b; }

// Count, mean and squared distances from it, merged as by Chan, Golub and LeVeque. A mean is a
// center and an offset from it, so that one that is large beside the spread takes no digits away;
// offsets are sums of shares, so that an infinite one stays. The squares of a slice with an
// infinite element are NaN.
//
// Of rows a thread sums distances from a center and their squares: four instructions an element.
// The center is its first element, and, whenever the count has doubled, the mean of all its
// elements: the squares about the mean, which these sums give by a subtraction, are then never less
// than a quarter of the squares about the center, after the first batch. Of columns, of which it
// has many at once, it merges the state of each batch.
//
// kShort: elements of 16 bits, for which a float has bits to spare. Rows move their center when the
// count is 16 times as large. The squares of a batch of columns are those of the differences of
// pairs, of the pairs' sums, and so on: the sums are as good as exact, and an element takes four
// instructions instead of six.
template <class A, bool kShort>
struct SpreadReducer {
  using Value = A;
  struct State {
    A n, center, offset, squares;
  };
  struct Gathered {
    A n, recenter_at, center, sum, squares;
  };
  static constexpr int kBatch = ReducePolicy::kBatch, kResident = 6;
  static constexpr int kPlaces = ReducePolicy::kPlaces, kColumnsResident = kShort ? 4 : 5;
  static constexpr int kWholeColumnsResident = kColumnsResident;
  static constexpr int kWholeRowsResident = sizeof(A) == 4 ? 5 : 4;
  static constexpr bool kReadsAhead = false;
  static constexpr int64_t kMostPlaces = INT64_MAX;
  static constexpr bool kOneBit = false;
  static constexpr bool kMergesSeveral = true;
  static constexpr bool kMergesEight = sizeof(A) == 4;  // float64 has no registers for it
  static constexpr bool kFills = false;
  A freedom;  // what squares are divided by; NaN for a slice without elements
  bool root;

  __device__ __forceinline__ State Identity() const { return {A(0), A(0), A(0), A(0)}; }
  __device__ __forceinline__ Gathered Begin() const { return {A(0), A(0), A(0), A(0), A(0)}; }
  __device__ __forceinline__ State Conclude(const Gathered& s) const {
    if (s.n == A(0)) return Identity();
    const A offset = s.sum / s.n, beside = s.sum * offset;
    const A squares = s.squares - (fabs(beside) < Infinity<A>() ? beside : s.sum - s.sum);
    return {s.n, s.center, offset, squares < A(0) ? A(0) : squares};
  }
  template <class In, int N>
  __device__ __forceinline__ Pack<State, N> BeginColumns() const {
    return FilledPack<N>(Identity());
  }
  template <int N>
  __device__ __forceinline__ State ConcludeColumn(const Pack<State, N>& s, int i,
                                                  const ReduceWay&) const {
    return s.v[i];
  }
  __device__ __forceinline__ void Add(Gathered& s, A v, int64_t) const {
    Recenter<1>(s, v);
    AddAbout(s, v);
    s.n += A(1);
  }
  template <class In, int N, int K>
  __device__ __forceinline__ void AddPacks(Gathered& s, const Pack<In, N> (&x)[K],
                                           const int64_t (&)[K]) const {
    Recenter<N * K>(s, ConvertTo<A>(x[0].v[0]));
    A sums[K], squares[K];
#pragma unroll
    for (int k = 0; k < K; ++k) {
      sums[k] = squares[k] = A(0);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const A d = ConvertTo<A>(x[k].v[i]) - s.center;
        sums[k] += d;
        squares[k] += d * d;
      }
    }
#pragma unroll
    for (int k = 0; k < K; ++k) s.sum += sums[k], s.squares += squares[k];
    s.n += A(N * K);
  }
  // All columns have as many elements so far. Offsets are of the mean from the first element.
  template <class In, int N, int K>
  __device__ __forceinline__ void AddPlaces(Pack<State, N>& s, const Pack<In, N> (&x)[K], int64_t,
                                            int64_t) const {
    const A before = s.v[0].n, n = before + A(K), share = FastQuotient(A(K), n);
    const A weight = before * share;
    ForEachColumn<A>(x, [&](int i, const A(&v)[K]) {
      State& column = s.v[i];
      if (before == A(0)) column.center = CenterAt(v[0]);
      A offset, squares;
      if constexpr (kShort) {
        SpreadOfTree<!std::is_same_v<In, __half>>(v, column.center, &offset, &squares);
      } else {
        SpreadOfBatch(v, column.center, &offset, &squares);
      }
      MergeBatch(column, offset, squares, share, weight);
      column.n = n;
    });
  }
  // About a's center.
  __device__ __forceinline__ State Merge(const State& a, const State& b) const {
    if (a.n == A(0) || b.n == A(0)) return a.n == A(0) ? b : a;
    const A n = a.n + b.n, share = FastQuotient(b.n, n);
    const A b_offset = (b.center - a.center) + b.offset, d = b_offset - a.offset;
    return {n, a.center, a.offset * (A(1) - share) + b_offset * share,
            a.squares + b.squares + d * d * a.n * share};
  }
  // The mean of all, and the squares about it: one division.
  template <int K>
  __device__ __forceinline__ State MergeSeveral(const State& first, const State (&next)[K]) const {
    A n = first.n, offsets[K];
#pragma unroll
    for (const State& s : next) n += s.n;
    const A per = n > A(0) ? FastQuotient(A(1), n) : A(0);
    A mean = first.n * per * first.offset;
#pragma unroll
    for (int k = 0; k < K; ++k) {
      offsets[k] = (next[k].center - first.center) + next[k].offset;
      mean += next[k].n * per * offsets[k];
    }
    A d = first.offset - mean, squares = first.squares + first.n * d * d;
#pragma unroll
    for (int k = 0; k < K; ++k) {
      d = offsets[k] - mean;
      squares += next[k].squares + next[k].n * d * d;
    }
    return {n, first.center, mean, squares};
  }
  template <class In>
  __device__ __forceinline__ void Finish(const State& s, const ReduceOutputs& out, int64_t y,
                                         const In*, int64_t) const {
    A v = s.squares / freedom;
    if (root) v = sqrt(v);
    StoreAs<In>(out.y, out.dtype, y, v);
    if (!out.second) return;
    const A mean = out.axis == 0 ? static_cast<A>(NAN) : s.center + s.offset;
    StoreAs<In>(out.second, out.dtype, y, mean);
  }

 private:
  // How far a batch's mean lies from the center, and the squares about that mean.
  template <int K>
  __device__ __forceinline__ static void SpreadOfBatch(const A (&v)[K], A center, A* offset,
                                                       A* squares) {
    *offset = *squares = A(0);
#pragma unroll
    for (int k = 0; k < K; ++k) *offset += (v[k] - center) * (A(1) / A(K));
#pragma unroll
    for (int k = 0; k < K; ++k) {
      const A d = (v[k] - center) - *offset;
      *squares += d * d;
    }
  }
  // The same by differences. Two groups of m elements whose sums differ by d have d^2 / 2m more
  // squares than each about its own mean. kScaled: the sums are K times smaller, which would be
  // infinite where elements are close to the largest float.
  template <bool kScaled, int K>
  __device__ __forceinline__ static void SpreadOfTree(const A (&v)[K], A center, A* offset,
                                                      A* squares) {
    static_assert((K & (K - 1)) == 0, "sums are halved");
    constexpr A kScale = kScaled ? A(1) / A(K) : A(1);
    A sums[K];
    *squares = A(0);
#pragma unroll
    for (int k = 0; k < K; ++k) sums[k] = v[k] * kScale;
#pragma unroll
    for (int half = K / 2; half > 0; half /= 2) {
      A level(0);
#pragma unroll
      for (int k = 0; k < half; ++k) {
        const A d = sums[k] - sums[k + half];
        level += d * d;
        sums[k] += sums[k + half];
      }
      *squares += level * (A(half) / A(K) / (kScale * kScale));
    }
    *offset = sums[0] * (A(1) / (A(K) * kScale)) - center;
    *squares += *offset * A(0);  // NaN where an element is infinite
  }
  // `share`: of a batch in all elements; `weight`: of how far its mean lies from the others'.
  __device__ __forceinline__ static void MergeBatch(State& s, A offset, A squares, A share,
                                                    A weight) {
    const A d = offset - s.offset;
    s.offset = s.offset * (A(1) - share) + offset * share;
    s.squares += squares + d * weight * d;
  }
  __device__ __forceinline__ static void AddAbout(Gathered& s, A v) {
    const A d = v - s.center;
    s.sum += d;
    s.squares += d * d;
  }
  __device__ __forceinline__ static A CenterAt(A first) {
    return fabs(first) < Infinity<A>() ? first : A(0);
  }
  // Before a batch of kCount elements. The sums are of distances from the rounded center; where
  // they are infinite, it stays.
  template <int kCount>
  __device__ __forceinline__ static void Recenter(Gathered& s, A first) {
    if (s.n < s.recenter_at) return;
    s.recenter_at = kShort ? A(16) * (s.n + A(kCount)) : A(2) * s.n + A(kCount);
    if (s.n == A(0)) {
      s.center = CenterAt(first);
      return;
    }
    const A center = s.center + FastQuotient(s.sum, s.n), by = center - s.center;
    if (!(fabs(by) < Infinity<A>() && s.squares < Infinity<A>())) return;
    s.squares -= by * (A(2) * s.sum - s.n * by);
    s.sum -= s.n * by;
    s.center = center;
  }
};

}  // namespace cuda
}  // namespace oneflow_lite
