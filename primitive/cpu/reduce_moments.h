// SPDX-License-Identifier: Apache-2.0
//
// The reducers that carry more than one number: variances and sums of exponentials.
#pragma once

#include <algorithm>
#include <cmath>

#include "primitive/cpu/reducers.h"

namespace oneflow_lite {

// Count, mean and squared distances from it; parts merge as Chan, Golub and LeVeque do (1979).
template <class C>
struct SpreadReducer : ReducerOf<C> {
  struct Total {
    double n, mean, squares;
  };
  struct Lanes {
    C shift[kChunk], sum[kChunk], squares[kChunk];
    int64_t terms, last;  // how often lanes got an element, and how many did the last time
  };
  double correction;
  bool root;
  ReduceOutput<C> y, mean;
  const void* x;
  DType in;
  const ReduceSplit& shape;
  SpreadLoops<C> loops = FindSpreadLoops<C>();

  Total Start() const { return {0, 0, 0}; }
  Total Row(int64_t n, const C* x) const {
    Total t{static_cast<double>(n), 0, 0};
    loops.row(n, x, &t.mean, &t.squares);
    return t;
  }
  Total Merge(const Total& a, const Total& b) const {
    if (a.n == 0) return b;
    if (b.n == 0) return a;
    const double n = a.n + b.n, d = b.mean - a.mean;
    const bool infinite = std::isinf(a.mean) || std::isinf(b.mean);  // d may be infinity, or NaN
    const double mean = a.mean + (infinite ? b.mean : d * (b.n / n));
    return {n, mean, a.squares + b.squares + d * d * (a.n * b.n / n)};
  }
  void Begin(Lanes& lanes, int64_t length) const {
    lanes.terms = lanes.last = 0;
    std::fill_n(lanes.sum, length, C(0));
    std::fill_n(lanes.squares, length, C(0));
  }
  void Add(Lanes& lanes, int64_t n, const C* x) const {
    if (lanes.terms++ == 0) {
      std::transform(x, x + n, lanes.shift, [](C v) { return std::isfinite(v) ? v : C(0); });
    }
    lanes.last = n;
    loops.to(n, x, lanes.shift, lanes.sum, lanes.squares);
  }
  Total Lane(const Lanes& lanes, int64_t i) const {
    const auto n = static_cast<double>(lanes.terms - (i >= lanes.last));
    const double s = lanes.sum[i], all = lanes.squares[i];
    const double left = std::isinf(all) && std::isfinite(s) ? all : all - s * s / n;
    return {n, lanes.shift[i] + s / n, left < 0 ? 0 : left};
  }
  void Finish(const Total* totals, int64_t n, int64_t axis, int64_t index) const {
    if (Write(totals, n, axis, index) || sizeof(C) == sizeof(double)) return;
    if (shape.inner == 1 && axis > kShortAxis) return;  // whose Row has taken double
    if (AreConstant(totals, n, index)) return;
    Total again[kChunk];
    std::copy_n(totals, n, again);
    GoThroughAgain(n, index, again);
    Write(again, n, axis, index);
  }

 private:
  // Whether the squares in C neither overflowed nor underflowed.
  static bool IsInRange(const Total& t) {
    return t.squares >= kLeastSquares<C> * t.n &&
           t.squares < std::numeric_limits<double>::infinity();
  }

  // Whether all squares are in range.
  bool Write(const Total* totals, int64_t n, int64_t axis, int64_t index) const {
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    const double freedom = std::max(0.0, static_cast<double>(axis) - correction);
    bool in_range = true;
    y.Write(n, index, [&](int64_t i) {
      in_range &= IsInRange(totals[i]);
      const double v = totals[i].squares / freedom;
      return axis == 0 ? kNone : root ? std::sqrt(v) : v;
    });
    mean.Write(n, index, [&](int64_t i) { return axis == 0 ? kNone : totals[i].mean; });
    return in_range;
  }

  // take(k, count, v) for the n slices from `index` on: of rows one after another, the elements of
  // row k; of columns side by side, the k-th element of each.
  template <class D, class Take>
  void GoThrough(int64_t n, int64_t index, const Take& take) const {
    const bool rows = shape.inner == 1;
    const ChunkSource source(in, kDTypeOfChunks<D>, rows ? shape.axis_stride : 1);
    const int64_t first = index / shape.inner * shape.outer_stride + index % shape.inner;
    D buffer[kChunk];
    for (int64_t k = 0; k < (rows ? n : shape.axis); ++k) {
      const int64_t count = rows ? shape.axis : n;
      const int64_t offset = first + k * (rows ? shape.outer_stride : shape.axis_stride);
      take(k, count, static_cast<const D*>(source.Load(x, offset, count, buffer)));
    }
  }

  // Whether the slices that are not in range have no spread at all, as columns of zeros do.
  bool AreConstant(const Total* totals, int64_t n, int64_t index) const {
    C means[kChunk];
    int32_t asked[kChunk], differs = 0;
    for (int64_t i = 0; i < n; ++i) {
      asked[i] = !IsInRange(totals[i]);
      if (asked[i] && totals[i].squares != 0) return false;
      means[i] = static_cast<C>(totals[i].mean);
    }
    const bool rows = shape.inner == 1;
    GoThrough<C>(n, index, [&](int64_t k, int64_t count, const C* v) {
      for (int64_t i = 0; i < count; ++i) {
        const int64_t at = rows ? k : i;
        differs |= (v[i] != means[at]) & asked[at];
      }
    });
    return differs == 0;
  }

  // In double. The slices whose squares in C are in range stay.
  void GoThroughAgain(int64_t n, int64_t index, Total* totals) const {
    const bool rows = shape.inner == 1;
    Total again[kChunk] = {};
    const auto each = [&](const auto& take) {
      GoThrough<double>(n, index, [&](int64_t k, int64_t count, const double* v) {
        for (int64_t i = 0; i < count; ++i) take(again[rows ? k : i], v[i]);
      });
    };
    each([](Total& t, double v) { t.mean += v; });
    for (int64_t i = 0; i < n; ++i) again[i].mean /= static_cast<double>(shape.axis);
    each([](Total& t, double v) { t.squares += (v - t.mean) * (v - t.mean); });
    for (int64_t i = 0; i < n; ++i) {
      if (!IsInRange(totals[i])) totals[i] = {totals[i].n, again[i].mean, again[i].squares};
    }
  }
};

// The largest x, and the sum of exp(x - largest).
template <class C>
struct ExpSumReducer : ReducerOf<C> {
  struct Total {
    double max, sum;
  };
  struct Lanes {
    C max[kChunk], sum[kChunk];
  };
  static constexpr bool kFinishesLanes = true;
  ReduceOutput<C> y;
  ReduceLoops<C> extremes = FindReduceLoops<C>(Fold::kMax);
  ExpLoops<C> loops = FindExpLoops<C>();

  Total Start() const { return {kLowest<double>, 0}; }
  Total Row(int64_t n, const C* x) const {
    const auto max = static_cast<C>(extremes.row(n, x));
    return {max, loops.row(n, x, max)};
  }
  Total Merge(const Total& a, const Total& b) const {
    const Total& top = a.max >= b.max ? a : b;
    const Total& low = a.max >= b.max ? b : a;
    const double share = low.max == top.max ? 1 : std::exp(low.max - top.max);
    return {top.max, top.sum + (low.sum == 0 ? 0 : low.sum * share)};
  }
  void Begin(Lanes& lanes, int64_t length) const {
    std::fill_n(lanes.max, length, kLowest<C>);
    std::fill_n(lanes.sum, length, C(0));
  }
  void Add(Lanes& lanes, int64_t n, const C* x) const { loops.to(n, x, lanes.max, lanes.sum); }
  Total Lane(const Lanes& lanes, int64_t i) const { return {lanes.max[i], lanes.sum[i]}; }
  void Finish(const Total* totals, int64_t n, int64_t, int64_t index) const {
    y.Write(n, index, [&](int64_t i) { return totals[i].max + std::log(totals[i].sum); });
  }
  void FinishLanes(const Lanes& lanes, int64_t n, int64_t, int64_t index) const {
    C results[kChunk];
    loops.finish(n, lanes.max, lanes.sum, results);
    y.Copy(n, index, results);
  }
};

}  // namespace oneflow_lite
