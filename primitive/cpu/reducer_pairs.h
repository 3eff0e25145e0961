// SPDX-License-Identifier: Apache-2.0
//
// Two reducers of reduce_machine.h in one pass, and those that are only used so.
#pragma once

#include <algorithm>

#include "primitive/cpu/reducers.h"

namespace oneflow_lite {

// Two reducers of the same elements; OutputOf writes what both know.
template <class A, class B, class OutputOf>
struct PairReducer : ReducerOf<typename A::Element> {
  using Chunk = typename B::Chunk;
  static constexpr bool kAddsRows = A::kAddsRows && B::kAddsRows;
  static constexpr bool kFinishesLanes = false;
  static constexpr bool kFoldsLanes = A::kFoldsLanes && B::kFoldsLanes;
  static constexpr int64_t kTerms = std::min(A::kTerms, B::kTerms);
  // Read twice: from the L1 cache the second time.
  static constexpr int64_t kRowElements = std::min({A::kRowElements, B::kRowElements, 8 * kChunk});
  struct Total {
    typename A::Total a;
    typename B::Total b;
  };
  struct Lanes {
    typename A::Lanes a;
    typename B::Lanes b;
  };
  A a;
  B b;
  OutputOf output;

  DType Takes() const { return a.Takes(); }
  Total Start() const { return {a.Start(), b.Start()}; }
  Total Row(int64_t n, Chunk x) const { return {a.Row(n, x), b.Row(n, x)}; }
  Total Merge(const Total& u, const Total& v) const {
    return {a.Merge(u.a, v.a), b.Merge(u.b, v.b)};
  }
  void Begin(Lanes& lanes, int64_t length) const {
    a.Begin(lanes.a, length);
    b.Begin(lanes.b, length);
  }
  void Add(Lanes& lanes, int64_t n, Chunk x) const {
    a.Add(lanes.a, n, x);
    b.Add(lanes.b, n, x);
  }
  void AddRows(Lanes& lanes, int64_t rows, int64_t n, Chunk x, int64_t stride, bool first) const {
    a.AddRows(lanes.a, rows, n, x, stride, first);
    b.AddRows(lanes.b, rows, n, x, stride, first);
  }
  void FoldLanes(Lanes& lanes, int64_t rows, int64_t width) const {
    a.FoldLanes(lanes.a, rows, width);
    b.FoldLanes(lanes.b, rows, width);
  }
  Total Lane(const Lanes& lanes, int64_t i) const {
    return {a.Lane(lanes.a, i), b.Lane(lanes.b, i)};
  }
  void Finish(const Total* totals, int64_t n, int64_t axis, int64_t index) const {
    output(totals, n, axis, index);
  }
};

// Minimum and maximum: rows in one pass.
template <class C, class OutputOf>
struct ExtremesReducer
    : PairReducer<FoldReducer<C, Join::kExtreme>, FoldReducer<C, Join::kExtreme>, OutputOf> {
  using Chunk = const void*;
  static constexpr int64_t kRowElements = INT64_MAX;
  ExtremesLoop<C> both = FindExtremesLoop<C>(this->a.takes);

  auto Row(int64_t n, Chunk x) const {
    const ExtremesOf<C> found = both(n, x);
    return typename ExtremesReducer::Total{found.least, found.most};
  }
};

// How many elements `kTest` holds for, beside another reducer.
template <class C, bool (*kTest)(C)>
struct CountReducer : ReducerOf<C> {
  using Total = int64_t;
  struct Lanes {
    uint8_t of[kChunk];
  };
  Total Start() const { return 0; }
  Total Row(int64_t n, const C* x) const {
    int32_t count = 0;
    for (int64_t i = 0; i < n; ++i) count += kTest(x[i]);
    return count;
  }
  Total Merge(Total a, Total b) const { return a + b; }
  void Begin(Lanes& lanes, int64_t length) const { std::fill_n(lanes.of, length, uint8_t{0}); }
  void Add(Lanes& lanes, int64_t n, const C* x) const {
    for (int64_t i = 0; i < n; ++i) lanes.of[i] = static_cast<uint8_t>(lanes.of[i] + kTest(x[i]));
  }
  Total Lane(const Lanes& lanes, int64_t i) const { return lanes.of[i]; }
};

// The product of what is not 0.
struct NonzeroProduct : ReducerOf<double> {
  using Total = double;
  struct Lanes {
    double of[kChunk];
  };
  ReduceLoops<double> loops = FindReduceLoops<double>(Fold::kNonzeroProd);

  Total Start() const { return 1; }
  Total Row(int64_t n, const double* x) const { return loops.row(n, x); }
  Total Merge(Total a, Total b) const { return a * b; }
  void Begin(Lanes& lanes, int64_t length) const { std::fill_n(lanes.of, length, 1.0); }
  void Add(Lanes& lanes, int64_t n, const double* x) const {
    loops.columns(1, n, x, 0, nullptr, lanes.of);
  }
  Total Lane(const Lanes& lanes, int64_t i) const { return lanes.of[i]; }
};

// The product of what is not 0 and how many are 0: rows in one pass.
template <bool (*kIsZero)(double), class OutputOf>
struct ProductPartsReducer : PairReducer<NonzeroProduct, CountReducer<double, kIsZero>, OutputOf> {
  NonzeroProductLoop both = FindNonzeroProductLoop();

  auto Row(int64_t n, const double* x) const {
    const NonzeroProductOf found = both(n, x);
    return typename ProductPartsReducer::Total{found.product, found.zeros};
  }
};

}  // namespace oneflow_lite
