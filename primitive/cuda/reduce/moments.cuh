// SPDX-License-Identifier: Apache-2.0
//
// The reducer of sums of exponentials.
#pragma once

#include "primitive/cuda/functions/float_math.cuh"
#include "primitive/cuda/reduce/extremes.cuh"

namespace oneflow_lite {
namespace cuda {

// e^x of a term beside one that is 1, or infinite: its error is below 2^-21 of that.
__device__ __forceinline__ float ExpOfTerm(float x) { return fast::Exp2(x * fast::kLog2E); }
__device__ __forceinline__ double ExpOfTerm(double x) { return exp(x); }

// log(sum(exp(x))): the largest x, or a point that no x exceeds by more than kAbove, and the sum of
// exp(x - point). A thread moves its point only when it must, so that a batch costs an exponential
// of each element and no other. An infinite point shifts nothing, so that exp is 0 or infinite.
// kShort: elements of 16 bits, whose exponentials take as long as the loads: threads of whole
// columns ask for the next turn's packs before they add one's, and have the registers of 4 blocks
// for that.
template <class A, bool kShort>
struct LogSumExpReducer {
  using Value = A;
  struct State {
    A point, sum;
  };
  struct Gathered {
    A shift, limit, sum;
  };
  static constexpr int kBatch = ReducePolicy::kBatch, kResident = 5;
  static constexpr int kPlaces = ReducePolicy::kPlaces, kColumnsResident = 5;
  static constexpr int kWholeColumnsResident = kShort ? 4 : 5, kWholeRowsResident = 4;
  static constexpr bool kReadsAhead = kShort;
  static constexpr int64_t kMostPlaces = INT64_MAX;
  static constexpr bool kOneBit = false;
  static constexpr bool kMergesSeveral = true;
  static constexpr bool kMergesEight = false;
  static constexpr bool kFills = true;
  static constexpr A kAbove = 4;  // the error of an exponential grows with its size

  __device__ __forceinline__ State Identity() const { return {-Infinity<A>(), A(0)}; }
  template <class In, int N>
  __device__ __forceinline__ In Filler(const Pack<In, N>&, int) const {
    return ConvertTo<In>(-Infinity<A>());
  }
  __device__ __forceinline__ Gathered Begin() const { return {A(0), -Infinity<A>(), A(0)}; }
  template <class In, int N>
  __device__ __forceinline__ Pack<Gathered, N> BeginColumns() const {
    return FilledPack<N>(Begin());
  }
  template <int N>
  __device__ __forceinline__ State ConcludeColumn(const Pack<Gathered, N>& s, int i,
                                                  const ReduceWay&) const {
    return Conclude(s.v[i]);
  }
  __device__ __forceinline__ State Conclude(const Gathered& s) const {
    return {fabs(s.limit) == Infinity<A>() ? s.limit : s.shift, s.sum};
  }
  __device__ __forceinline__ void Add(Gathered& s, A v, int64_t) const {
    if (v > s.limit) MoveTo(s, v);
    s.sum += ExpOfTerm(v - s.shift);
  }
  template <class In, int N, int K>
  __device__ __forceinline__ void AddPacks(Gathered& s, const Pack<In, N> (&x)[K],
                                           const int64_t (&)[K]) const {
    const A max = FurthestOf<true, A>(FurthestPack<true>(x));
    if (max > s.limit) MoveTo(s, max);
    const Term<In> term(s.shift);
    A sum(0);
    ForEachColumn<A>(x, [&](int, const A(&v)[K]) {
      A part(0);
#pragma unroll
      for (int k = 0; k < K; ++k) part += term(v[k]);
      sum += part;
    });
    s.sum += sum;
  }
  template <class In, int N, int K>
  __device__ __forceinline__ void AddPlaces(Pack<Gathered, N>& s, const Pack<In, N> (&x)[K],
                                            int64_t, int64_t) const {
    const Pack<In, N> most = FurthestPack<true>(x);
    bool above = false;
#pragma unroll
    for (int i = 0; i < N; ++i) above |= ConvertTo<A>(most.v[i]) > s.v[i].limit;
    if (above) {
#pragma unroll
      for (int i = 0; i < N; ++i) MoveTo(s.v[i], ConvertTo<A>(most.v[i]));
    }
    ForEachColumn<A>(x, [&](int i, const A(&v)[K]) {
      const Term<In> term(s.v[i].shift);
      A sum(0);
#pragma unroll
      for (int k = 0; k < K; ++k) sum += term(v[k]);
      s.v[i].sum += sum;
    });
  }
  // Of the two, one keeps its point.
  __device__ __forceinline__ State Merge(const State& a, const State& b) const {
    const A point = Further<true>(a.point, b.point), shift = Shift(point);
    const bool a_stays = Shift(a.point) == shift;
    const A stays = a_stays ? a.sum : b.sum, moves = a_stays ? b.sum : a.sum;
    const A scale = ExpOfTerm(Shift(a_stays ? b.point : a.point) - shift);
    return {point, stays + (moves == A(0) ? A(0) : moves * scale)};
  }
  // Beside the largest point, so that no exponential waits for another.
  template <int K>
  __device__ __forceinline__ State MergeSeveral(const State& first, const State (&next)[K]) const {
    A point = first.point;
#pragma unroll
    for (const State& s : next) point = Further<true>(point, s.point);
    const A shift = Shift(point);
    A sum = Moved(first, shift);
#pragma unroll
    for (const State& s : next) sum += Moved(s, shift);
    return {point, sum};
  }
  template <class In>
  __device__ __forceinline__ void Finish(const State& s, const ReduceOutputs& out, int64_t y,
                                         const In*, int64_t) const {
    StoreAs<In>(out.y, out.dtype, y, Shift(s.point) + log(s.sum));
  }

 private:
  // e^(x - shift) of elements of In. Of float16 in one multiplication and addition: a shift's
  // rounded product is the same in all terms, and its error is below float16's.
  template <class In>
  struct Term {
    A shift;
    __device__ __forceinline__ explicit Term(A by) : shift(by) {
      if constexpr (std::is_same_v<In, __half>) shift *= fast::kLog2E;
    }
    __device__ __forceinline__ A operator()(A x) const {
      if constexpr (std::is_same_v<In, __half>) {
        return fast::Exp2(fmaf(x, fast::kLog2E, -shift));
      } else {
        return ExpOfTerm(x - shift);
      }
    }
  };
  __device__ __forceinline__ static A Shift(A point) {
    return fabs(point) == Infinity<A>() ? A(0) : point;
  }
  __device__ __forceinline__ static A Moved(const State& s, A shift) {
    return s.sum == A(0) ? A(0) : s.sum * ExpOfTerm(Shift(s.point) - shift);
  }
  // Moves the point to v where v lies above it.
  __device__ __forceinline__ static void MoveTo(Gathered& s, A v) {
    if (!(v + kAbove > s.limit)) return;
    const A shift = Shift(v);
    s.sum = s.sum == A(0) ? A(0) : s.sum * ExpOfTerm(s.shift - shift);
    s.shift = shift, s.limit = v + kAbove;
  }
};

}  // namespace cuda
}  // namespace oneflow_lite
