// SPDX-License-Identifier: Apache-2.0
//
// The reducers of reduce_machine.h, each with its outputs.
#pragma once

#include <cmath>
#include <limits>

#include "primitive/cpu/reduce_loops.h"
#include "primitive/cpu/reduce_machine.h"
#include "primitive/reduce_kinds.h"

namespace oneflow_lite {

template <class C>
constexpr C kLowest = std::numeric_limits<C>::has_infinity ? -std::numeric_limits<C>::infinity()
                                                           : std::numeric_limits<C>::min();
template <class C>
constexpr C kHighest = std::numeric_limits<C>::has_infinity ? std::numeric_limits<C>::infinity()
                                                            : std::numeric_limits<C>::max();

// What a fold makes of a slice.
enum class Result : uint8_t { kItself, kMean, kRoot, kAny, kAll };

// What joins two results of a fold.
constexpr Fold JoinOf(Fold fold) {
  switch (fold) {
    case Fold::kNanSum:
    case Fold::kAbsSum:
    case Fold::kSquares:
      return Fold::kSum;
    case Fold::kAbsMax:
      return Fold::kMax;
    case Fold::kAbsMin:
      return Fold::kMin;
    default:
      return fold;
  }
}

// How the results of a fold join, which is all that is compiled of it here.
enum class Join : uint8_t { kSum, kProduct, kExtreme };

// One number per slice, by a fold that joins so. Out is what results are computed in.
template <class C, Join kJoin, class Out = C>
struct FoldReducer : ReducerOf<C> {
  using Chunk = const void*;
  using Total = SumOf<C>;
  struct Lanes {
    C of[kChunk];
  };

  Fold fold;
  Result result;
  double root;  // of kRoot
  ReduceOutput<Out> y;
  int64_t times = 1;  // that each element counts, of sums
  ReduceLoops<C> loops = FindReduceLoops<C>(fold), joins = FindReduceLoops<C>(JoinOf(fold));
  DType takes = kDTypeOfChunks<C>;
  bool is_max = JoinOf(fold) == Fold::kMax;

  static constexpr int64_t kRowElements = kJoin == Join::kSum ? kChunk : INT64_MAX;  // in float
  static constexpr int64_t kTerms = kJoin != Join::kSum || std::is_same_v<C, int64_t> ? INT64_MAX
                                    : std::is_same_v<C, uint8_t> ? 252  // counts of one byte
                                                                 : kTermsPerLane;
  // Floats are multiplied in double, which takes twice as long as a sum.
  static constexpr int64_t kRowPart = kJoin == Join::kProduct ? kPartElements / 2 : kPartElements;
  // A row's product of floats takes as long as turning 16 of them.
  static constexpr int64_t kShortRow =
      kJoin == Join::kProduct && std::is_floating_point_v<C> ? 16 : kShortAxis;
  static constexpr bool kAddsRows = true;
  static constexpr bool kFinishesLanes = true;
  static constexpr bool kFoldsLanes = !(std::is_same_v<C, uint8_t> && kJoin == Join::kSum);
  static constexpr bool kTakesRows = true;
  DType Takes() const { return takes; }
  // Reads elements of `dtype` as they are if there are loops for them.
  void TakeNarrow(DType dtype) {
    if constexpr (std::is_floating_point_v<C>) {
      const ReduceLoops<C> found = FindNarrowReduceLoops<C>(fold, dtype);
      if (found.rows) loops = found, takes = dtype;
    }
  }
  C Neutral() const {
    if (kJoin != Join::kExtreme) return C(kJoin == Join::kProduct);
    return is_max ? kLowest<C> : kHighest<C>;
  }

  Total Start() const { return static_cast<Total>(Neutral()); }
  Total Row(int64_t n, Chunk x) const { return loops.row(n, x); }
  void Rows(int64_t rows, int64_t n, Chunk x, int64_t stride, Total* totals) const {
    loops.rows(rows, n, x, stride, totals);
  }
  Total Merge(Total a, Total b) const {
    if constexpr (kJoin == Join::kExtreme) {
      return (is_max ? b > a : b < a) || b != b ? b : a;
    } else if constexpr (std::is_integral_v<Total>) {
      const auto u = static_cast<uint64_t>(a), v = static_cast<uint64_t>(b);
      return static_cast<Total>(kJoin == Join::kProduct ? u * v : u + v);
    } else {
      return kJoin == Join::kProduct ? a * b : a + b;
    }
  }
  void Begin(Lanes& lanes, int64_t length) const { std::fill_n(lanes.of, length, Neutral()); }
  void Add(Lanes& lanes, int64_t n, Chunk x) const { AddRows(lanes, 1, n, x, 0, false); }
  void AddRows(Lanes& lanes, int64_t rows, int64_t n, Chunk x, int64_t stride, bool first) const {
    const C neutral = Neutral();
    loops.columns(rows, n, x, stride, first ? &neutral : nullptr, lanes.of);
  }
  void FoldLanes(Lanes& lanes, int64_t rows, int64_t width) const {
    while (rows > 1) {
      const int64_t half = rows / 2;
      joins.columns(1, half * width, lanes.of + (rows - half) * width, 0, nullptr, lanes.of);
      rows -= half;
    }
  }
  Total Lane(const Lanes& lanes, int64_t i) const { return static_cast<Total>(lanes.of[i]); }

  void Finish(const Total* totals, int64_t n, int64_t axis, int64_t index) const {
    if (times == 1) return y.Write(n, index, [&](int64_t i) { return Of(totals[i], axis); });
    y.Write(n, index, [&](int64_t i) { return Of(Repeated(totals[i]), axis); });
  }
  // A quotient of floats is rounded as one of doubles would be.
  void FinishLanes(const Lanes& lanes, int64_t n, int64_t axis, int64_t index) const {
    if (times != 1) {
      const auto total = [&](int64_t i) { return Repeated(static_cast<Total>(lanes.of[i])); };
      return y.Write(n, index, [&](int64_t i) { return Of(total(i), axis); });
    }
    if constexpr (std::is_same_v<C, Out>) {
      if (result == Result::kItself) return y.Copy(n, index, lanes.of);
      if (std::is_floating_point_v<C> && result == Result::kMean) {
        const auto count = static_cast<C>(axis);
        return y.Write(n, index, [&](int64_t i) { return lanes.of[i] / count; });
      }
    }
    y.Write(n, index, [&](int64_t i) { return Of(static_cast<Total>(lanes.of[i]), axis); });
  }
  // What a sum comes to whose elements each count so many times; integers wrap around.
  Total Repeated(Total total) const {
    if constexpr (std::is_floating_point_v<Total>) return total * static_cast<double>(times);
    return static_cast<Total>(static_cast<uint64_t>(total) * static_cast<uint64_t>(times));
  }
  auto Of(Total total, int64_t axis) const {
    if constexpr (std::is_integral_v<Total>) {
      if (result == Result::kAny) return Total{total != 0};
      if (result == Result::kAll) return Total{total == axis};
      return total;
    } else {
      if (result == Result::kMean) return total / static_cast<double>(axis);
      if (result == Result::kRoot) return root == 2 ? std::sqrt(total) : std::pow(total, 1 / root);
      const bool of_sizes = fold == Fold::kAbsMax || fold == Fold::kAbsMin;
      return axis == 0 && of_sizes ? 0.0 : total;
    }
  }
};

// The sum of |x|^p.
struct PowerReducer : ReducerOf<double> {
  using Total = double;
  struct Lanes {
    double of[kChunk];
  };
  double p;
  int64_t times;  // that each element counts
  ReduceOutput<double> y;
  PowerLoop powers = FindPowerLoop();
  ReduceLoops<double> sums = FindReduceLoops<double>(Fold::kSum);

  Total Start() const { return 0; }
  Total Row(int64_t n, const double* x) const {
    double of[kChunk];
    powers(n, x, p, of);
    return sums.row(n, of);
  }
  Total Merge(Total a, Total b) const { return a + b; }
  void Begin(Lanes& lanes, int64_t length) const { std::fill_n(lanes.of, length, 0.0); }
  void Add(Lanes& lanes, int64_t n, const double* x) const {
    double of[kChunk];
    powers(n, x, p, of);
    sums.columns(1, n, of, 0, nullptr, lanes.of);
  }
  Total Lane(const Lanes& lanes, int64_t i) const { return lanes.of[i]; }
  void Finish(const Total* totals, int64_t n, int64_t axis, int64_t index) const {
    // The root of nothing is 0, whatever p is.
    y.Write(n, index, [&](int64_t i) {
      return axis == 0 ? 0.0 : std::pow(totals[i] * static_cast<double>(times), 1 / p);
    });
  }
};

}  // namespace oneflow_lite
