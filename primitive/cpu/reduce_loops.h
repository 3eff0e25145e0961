// SPDX-License-Identifier: Apache-2.0
//
// The vector loops of reductions over contiguous float, double or int64 elements, and over truths.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "oneflow_lite/core/dtype.h"

namespace oneflow_lite {

// What sums of C are carried in between chunks.
template <class C>
using SumOf = std::conditional_t<std::is_floating_point_v<C>, double, int64_t>;

// Extremes with a NaN are NaN; integers wrap around. Those of squares and |x| are for floats.
enum class Fold : uint8_t {
  kSum,
  kMax,
  kMin,
  kProd,
  kNonzeroProd,
  kNanSum,
  kAbsSum,
  kSquares,
  kAbsMax,
  kAbsMin
};

// Elements of C, or of the type that FindNarrowReduceLoops was asked for.
template <class C>
struct ReduceLoops {
  // Of each of so many rows of n elements, which begin `stride` elements apart; n > 0 for extremes.
  // Floats are added in float32, for n of a few hundred.
  void (*rows)(int64_t rows, int64_t n, const void* x, int64_t stride, SumOf<C>* totals);
  SumOf<C> row(int64_t n, const void* x) const {
    SumOf<C> total;
    rows(1, n, x, 0, &total);
    return total;
  }
  // to[i] = fold(to[i], x[i]) for n columns in each of so many rows, which begin `stride` elements
  // apart; from *start on instead of to[i], unless that is null.
  void (*columns)(int64_t rows, int64_t n, const void* x, int64_t stride, const C* start, C* to);
};
// For float, double and int64_t; for int8_t, int16_t and int32_t kMax and kMin alone; for uint8_t
// these and kSum, which is of truths: 0 or 1.
template <class C>
ReduceLoops<C> FindReduceLoops(Fold fold);
// Those that widen elements of `dtype` in registers: float16 and bfloat16 to float for sums, kMax
// and kMin, floats to double for kProd; no loops where elements must be converted before.
template <class C>
ReduceLoops<C> FindNarrowReduceLoops(Fold fold, DType dtype);

// The least and the most of n > 0 elements in one pass, as the folds have them.
template <class C>
struct ExtremesOf {
  SumOf<C> least, most;
};
template <class C>
using ExtremesLoop = ExtremesOf<C> (*)(int64_t n, const void* x);
// Of elements of `dtype`: one that FindNarrowReduceLoops knows, or C's.
template <class C>
ExtremesLoop<C> FindExtremesLoop(DType dtype);

// The product of what is not 0 of n elements, and how many are 0.
struct NonzeroProductOf {
  double product;
  int64_t zeros;
};
using NonzeroProductLoop = NonzeroProductOf (*)(int64_t n, const double* x);
NonzeroProductLoop FindNonzeroProductLoop();

// Squares whose mean is below this have underflowed, or may have, where they were taken in C.
template <class C>
constexpr double kLeastSquares = static_cast<double>(std::numeric_limits<C>::min()) /
                                 static_cast<double>(std::numeric_limits<C>::epsilon());

// A chunk of floats about its mean, and columns about a shift of each.
template <class C>
struct SpreadLoops {
  // mean and the sum of the squared distances from it; n > 0
  void (*row)(int64_t n, const C* x, double* mean, double* squares);
  // sum[i] += x[i] - shift[i], squares[i] += (x[i] - shift[i])^2
  void (*to)(int64_t n, const C* x, const C* shift, C* sum, C* squares);
};
// Sums of exponentials beside the largest exponent; an element that equals it counts as 1.
template <class C>
struct ExpLoops {
  double (*row)(int64_t n, const C* x, C max);                  // sum exp(x - max)
  void (*to)(int64_t n, const C* x, C* max, C* sum);            // of x[i] into (max[i], sum[i])
  void (*finish)(int64_t n, const C* max, const C* sum, C* y);  // y[i] = max[i] + log(sum[i])
};
// y[i] = |x[i]|^p for finite p > 0 or p < 0; y may be x.
using PowerLoop = void (*)(int64_t n, const double* x, double p, double* y);

template <class C>
SpreadLoops<C> FindSpreadLoops();
template <class C>
ExpLoops<C> FindExpLoops();
PowerLoop FindPowerLoop();

}  // namespace oneflow_lite
