// SPDX-License-Identifier: Apache-2.0
//
// The reducers of reduce.cuh: sums, products and counts; those of extremes are in
// extremes.cuh, those of exponentials in moments.cuh, of distances from the mean in spread.cuh.
#pragma once

#include <math.h>

#include "primitive/cuda/chip/group.cuh"
#include "primitive/cuda/reduce/reduce.cuh"

namespace oneflow_lite {
namespace cuda {

template <class A>
__device__ __forceinline__ A Infinity() {
  return static_cast<A>(__builtin_huge_val());
}

// What sums and products of T are taken in.
template <class T>
using Accumulator = std::conditional_t<std::is_integral_v<T>, int64_t, ComputeType<T>>;

// A reducer that joins parts of elements pairwise before they go into a state:
//
//   using Part = float;
//   static Part Join(const Part&, const Part&);
//   void Put(State&, const Part&) const;
//   template <class F> void WithPart(F f) const;   // calls f(part of an element)
template <class Reducer, class A>
struct PartsReducer {
  using Value = A;
  static constexpr int kBatch = ReducePolicy::kBatch, kResident = 6;
  static constexpr int kPlaces = ReducePolicy::kPlaces, kColumnsResident = 5;
  static constexpr int kWholeColumnsResident = 4, kWholeRowsResident = 4;
  static constexpr bool kReadsAhead = false;
  static constexpr int64_t kMostPlaces = INT64_MAX;
  static constexpr bool kOneBit = false;
  static constexpr bool kMergesSeveral = false;
  static constexpr bool kMergesEight = false;
  static constexpr bool kFills = true;

  __device__ __forceinline__ auto Begin() const { return self().Identity(); }
  template <class In, int N>
  __device__ __forceinline__ auto BeginColumns() const {
    return FilledPack<N>(self().Identity());
  }
  template <class State>
  __device__ __forceinline__ State Conclude(const State& s) const {
    return s;
  }
  template <class Column, int N>
  __device__ __forceinline__ auto ConcludeColumn(const Pack<Column, N>& s, int i,
                                                 const ReduceWay&) const {
    return self().Conclude(s.v[i]);
  }
  template <class State>
  __device__ __forceinline__ void Add(State& s, A v, int64_t) const {
    self().WithPart([&](auto part) { self().Put(s, part(v)); });
  }
  template <class In, int N, int K, class State>
  __device__ __forceinline__ void AddPacks(State& s, const Pack<In, N> (&x)[K],
                                           const int64_t (&)[K]) const {
    self().WithPart([&](auto part) {
      using Part = decltype(part(A()));
      Part joined[N];
#pragma unroll
      for (int i = 0; i < N; ++i) joined[i] = JoinColumn(x, i, part);
      self().Put(s, JoinAll(joined));
    });
  }
  template <class In, int N, int K, class Column>
  __device__ __forceinline__ void AddPlaces(Pack<Column, N>& s, const Pack<In, N> (&x)[K], int64_t,
                                            int64_t) const {
    self().WithPart([&](auto part) {
      ForEachColumn<A>(x, [&](int i, const A(&v)[K]) {
        decltype(part(A())) parts[K];
#pragma unroll
        for (int k = 0; k < K; ++k) parts[k] = part(v[k]);
        self().Put(s.v[i], JoinAll(parts));
      });
    });
  }

 private:
  __device__ __forceinline__ const Reducer& self() const {
    return *static_cast<const Reducer*>(this);
  }
  template <class Part, int N>
  __device__ __forceinline__ static Part JoinAll(Part (&parts)[N]) {
#pragma unroll
    for (int half = N / 2; half > 0; half /= 2) {
#pragma unroll
      for (int i = 0; i < half; ++i) parts[i] = Reducer::Join(parts[i], parts[i + half]);
    }
    return parts[0];
  }
  // Of element i of each pack.
  template <class In, int N, int K, class F>
  __device__ __forceinline__ static auto JoinColumn(const Pack<In, N> (&x)[K], int i, F part) {
    decltype(part(A())) parts[K];
#pragma unroll
    for (int k = 0; k < K; ++k) parts[k] = part(ConvertTo<A>(x[k].v[i]));
    return JoinAll(parts);
  }
};

// What a norm sums.
enum class Terms : int { kNonzero, kSizes, kSquares };

// Sums of floats with their rounding error, of integers as they wrap; the result over a divisor, or
// the root of a sum of squares. kOf is kSum, kNanSum or kNorm, whose terms are one launch's.
template <class A, ReduceKind kOf>
struct SumReducer : PartsReducer<SumReducer<A, kOf>, A> {
  using State = CompensatedSum<A>;
  using Gathered = State;
  Terms terms;
  double divisor;  // 1 for none, NaN for a mean over nothing

  __device__ __forceinline__ State Identity() const { return {}; }
  template <class In, int N>
  __device__ __forceinline__ In Filler(const Pack<In, N>&, int) const {
    return ConvertTo<In>(A(0));
  }
  __device__ __forceinline__ static A Join(A a, A b) { return a + b; }
  __device__ __forceinline__ void Put(State& s, A part) const { s.Add(part); }
  template <class F>
  __device__ __forceinline__ void WithPart(F f) const {
    if constexpr (kOf == ReduceKind::kSum) {
      f([](A v) { return v; });
    } else if constexpr (kOf == ReduceKind::kNanSum) {
      f([](A v) { return v == v ? v : A(0); });
    } else if (terms == Terms::kSquares) {
      f([](A v) { return v * v; });
    } else if (terms == Terms::kSizes) {
      f([](A v) { return fabs(v); });
    } else {
      f([](A v) { return v != A(0) ? A(1) : A(0); });
    }
  }
  __device__ __forceinline__ State Merge(const State& a, const State& b) const {
    return MergeCompensated{}(a, b);
  }
  template <class In>
  __device__ __forceinline__ void Finish(const State& s, const ReduceOutputs& out, int64_t y,
                                         const In*, int64_t) const {
    A v = s.Get();
    if constexpr (std::is_floating_point_v<A>) {
      if (kOf == ReduceKind::kNorm && terms == Terms::kSquares) v = sqrt(v);
      if (divisor != 1) v = static_cast<A>(v / static_cast<A>(divisor));
    }
    StoreAs<In>(out.y, out.dtype, y, v);
  }
};

// The mean of what is not NaN.
template <class A>
struct NanMeanReducer : PartsReducer<NanMeanReducer<A>, A> {
  struct State {
    CompensatedSum<A> sum;
    int64_t count;
  };
  struct Part {
    A sum;
    int count;
  };
  using Gathered = State;
  static constexpr int kWholeColumnsResident = 5;
  __device__ __forceinline__ State Identity() const { return {{}, 0}; }
  template <class In, int N>
  __device__ __forceinline__ In Filler(const Pack<In, N>&, int) const {
    return ConvertTo<In>(static_cast<A>(NAN));
  }
  __device__ __forceinline__ static Part Join(const Part& a, const Part& b) {
    return {a.sum + b.sum, a.count + b.count};
  }
  __device__ __forceinline__ void Put(State& s, const Part& part) const {
    s.sum.Add(part.sum);
    s.count += part.count;
  }
  template <class F>
  __device__ __forceinline__ void WithPart(F f) const {
    f([](A v) { return v == v ? Part{v, 1} : Part{A(0), 0}; });
  }
  __device__ __forceinline__ State Merge(const State& a, const State& b) const {
    return {MergeCompensated{}(a.sum, b.sum), a.count + b.count};
  }
  template <class In>
  __device__ __forceinline__ void Finish(const State& s, const ReduceOutputs& out, int64_t y,
                                         const In*, int64_t) const {
    StoreAs<In>(out.y, out.dtype, y, static_cast<A>(s.sum.Get() / static_cast<A>(s.count)));
  }
};

template <class A>
struct ProdReducer : PartsReducer<ProdReducer<A>, A> {
  struct State {
    A product;
  };
  using Gathered = State;
  __device__ __forceinline__ State Identity() const { return {A(1)}; }
  template <class In, int N>
  __device__ __forceinline__ In Filler(const Pack<In, N>&, int) const {
    return ConvertTo<In>(A(1));
  }
  __device__ __forceinline__ static A Join(A a, A b) { return a * b; }
  __device__ __forceinline__ void Put(State& s, A part) const { s.product *= part; }
  template <class F>
  __device__ __forceinline__ void WithPart(F f) const {
    f([](A v) { return v; });
  }
  __device__ __forceinline__ State Merge(const State& a, const State& b) const {
    return {static_cast<A>(a.product * b.product)};
  }
  template <class In>
  __device__ __forceinline__ void Finish(const State& s, const ReduceOutputs& out, int64_t y,
                                         const In*, int64_t) const {
    StoreAs<In>(out.y, out.dtype, y, s.product);
  }
};

// The product of what is not 0, and how many zeros.
template <class A>
struct ProdPartsReducer : PartsReducer<ProdPartsReducer<A>, A> {
  struct State {
    A product;
    int64_t zeros;
  };
  struct Part {
    A product;
    int zeros;
  };
  using Gathered = State;
  __device__ __forceinline__ State Identity() const { return {A(1), 0}; }
  template <class In, int N>
  __device__ __forceinline__ In Filler(const Pack<In, N>&, int) const {
    return ConvertTo<In>(A(1));
  }
  __device__ __forceinline__ static Part Join(const Part& a, const Part& b) {
    return {a.product * b.product, a.zeros + b.zeros};
  }
  __device__ __forceinline__ void Put(State& s, const Part& part) const {
    s.product *= part.product;
    s.zeros += part.zeros;
  }
  template <class F>
  __device__ __forceinline__ void WithPart(F f) const {
    f([](A v) { return v == A(0) ? Part{A(1), 1} : Part{v, 0}; });
  }
  __device__ __forceinline__ State Merge(const State& a, const State& b) const {
    return {a.product * b.product, a.zeros + b.zeros};
  }
  template <class In>
  __device__ __forceinline__ void Finish(const State& s, const ReduceOutputs& out, int64_t y,
                                         const In*, int64_t) const {
    StoreAs<In>(out.y, out.dtype, y, s.product);
    static_cast<int64_t*>(out.second)[y] = s.zeros;
  }
};

// A 1 for each of a word's bytes that is not 0.
__device__ __forceinline__ uint32_t NonzeroBytes(uint32_t word) {
  return (((word & 0x7f7f7f7fu) + 0x7f7f7f7fu) | word) >> 7 & 0x01010101u;
}

// How many are not 0.
template <class A>
struct CountReducer : PartsReducer<CountReducer<A>, A> {
  struct State {
    int64_t count;
  };

  using Gathered = State;
  using Column = uint32_t;  // a thread has fewer places of one
  __device__ __forceinline__ State Identity() const { return {0}; }
  template <class In, int N>
  __device__ __forceinline__ In Filler(const Pack<In, N>&, int) const {
    return ConvertTo<In>(A(0));
  }
  __device__ __forceinline__ static int Join(int a, int b) { return a + b; }
  __device__ __forceinline__ void Put(State& s, int part) const { s.count += part; }
  __device__ __forceinline__ void Put(Column& s, int part) const { s += part; }
  template <class In, int N>
  __device__ __forceinline__ Pack<Column, N> BeginColumns() const {
    return FilledPack<N>(Column(0));
  }
  __device__ __forceinline__ State Conclude(const State& s) const { return s; }
  __device__ __forceinline__ State Conclude(Column s) const { return {s}; }
  // Bytes are counted four at a time.
  template <class In, int N, int K>
  __device__ __forceinline__ void AddPacks(State& s, const Pack<In, N> (&x)[K],
                                           const int64_t (&places)[K]) const {
    if constexpr (sizeof(In) == 1 && N % 4 == 0) {
      uint32_t counts[N / 4];
      CountBytes(x, counts);
      uint32_t sum = 0;
#pragma unroll
      for (const uint32_t count : counts) sum += count;
      s.count += sum * 0x01010101u >> 24;
    } else {
      PartsReducer<CountReducer, A>::AddPacks(s, x, places);
    }
  }
  template <class In, int N, int K>
  __device__ __forceinline__ void AddPlaces(Pack<Column, N>& s, const Pack<In, N> (&x)[K],
                                            int64_t place, int64_t seen) const {
    if constexpr (sizeof(In) == 1 && N % 4 == 0) {
      uint32_t counts[N / 4];
      CountBytes(x, counts);
#pragma unroll
      for (int i = 0; i < N; ++i) s.v[i] += counts[i / 4] >> 8 * (i % 4) & 0xff;
    } else {
      PartsReducer<CountReducer, A>::AddPlaces(s, x, place, seen);
    }
  }
  template <class F>
  __device__ __forceinline__ void WithPart(F f) const {
    f([](A v) { return v != A(0) ? 1 : 0; });
  }
  __device__ __forceinline__ State Merge(const State& a, const State& b) const {
    return {a.count + b.count};
  }
  template <class In>
  __device__ __forceinline__ void Finish(const State& s, const ReduceOutputs& out, int64_t y,
                                         const In*, int64_t) const {
    StoreAs<int64_t>(out.y, out.dtype, y, s.count);
  }

 private:
  template <class In, int N, int K>
  __device__ __forceinline__ static void CountBytes(const Pack<In, N> (&x)[K],
                                                    uint32_t (&counts)[N / 4]) {
#pragma unroll
    for (uint32_t& count : counts) count = 0;
#pragma unroll
    for (int k = 0; k < K; ++k) {
      uint32_t words[N / 4];
      memcpy(words, &x[k], sizeof(words));
#pragma unroll
      for (int i = 0; i < N / 4; ++i) counts[i] += NonzeroBytes(words[i]);
    }
  }
};

// (sum |x|^p)^(1/p) for a p that is neither 0, 1, 2 nor infinite.
template <class A>
struct PowersReducer : PartsReducer<PowersReducer<A>, A> {
  using State = CompensatedSum<A>;
  static constexpr int kBatch = 1, kPlaces = 1;  // pow is long
  static constexpr bool kFills = false;
  double p;

  using Gathered = State;
  __device__ __forceinline__ State Identity() const { return {}; }
  __device__ __forceinline__ static A Join(A a, A b) { return a + b; }
  __device__ __forceinline__ void Put(State& s, A part) const { s.Add(part); }
  template <class F>
  __device__ __forceinline__ void WithPart(F f) const {
    const A exponent = static_cast<A>(p);
    f([exponent](A v) { return pow(fabs(v), exponent); });
  }
  __device__ __forceinline__ State Merge(const State& a, const State& b) const {
    return MergeCompensated{}(a, b);
  }
  template <class In>
  __device__ __forceinline__ void Finish(const State& s, const ReduceOutputs& out, int64_t y,
                                         const In*, int64_t) const {
    StoreAs<In>(out.y, out.dtype, y, out.axis == 0 ? A(0) : pow(s.Get(), static_cast<A>(1 / p)));
  }
};

}  // namespace cuda
}  // namespace oneflow_lite
