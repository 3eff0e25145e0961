// SPDX-License-Identifier: Apache-2.0
//
// What reductions, their gradients and scans compute. C++17, so that .cu files can include it.
#pragma once

#include <cstdint>

namespace oneflow_lite {

// Reductions: what they give for a slice, and for one without elements; `in` and `out` are dtypes.
enum class ReduceKind : uint8_t {
  kSum,      // floats to any float, bool and integers to int64; 0
  kMean,     // floats to any float; NaN
  kNanSum,   // as kSum, without the NaNs
  kNanMean,  // as kMean, without the NaNs
  kProd,     // as kSum; 1
  kMax,      // out = in, as for the next two
  kMin,
  kMinMax,     // the minimum, second: the maximum
  kAny,        // out = bool; false
  kAll,        // out = bool; true
  kCount,      // of what is not 0, out = int64; 0
  kNorm,       // floats to any float: (sum |x|^p)^(1/p), the extremes of |x|, or the count; 0
  kLogSumExp,  // floats to any float; -inf
  kVar,        // out = in, floats; NaN. Second: the mean
  kStd,        // the root of kVar
  kProdParts,  // out = the compute type: the product of what is not 0. Second: how many zeros,
               // int64
  kArgMax,     // out = in: the maximum. Second: its first place, int64
  kArgMin,
};

// Gradients of reductions, of dy, x, and y or extra; p is the parameter.
enum class ReduceGradKind : uint8_t {
  kVar,        // dy p (x - extra), with the mean in extra
  kStd,        // the same over y; 0 where y is 0
  kNorm,       // that of the p-norm y; 0 where y or x is 0
  kLogSumExp,  // dy exp(x - extra), with the result in extra
  kProd,       // with kProdParts in extra and zeros
};

// Scans, in their direction: s[i] is what the elements up to i come to. Sums of the 16-bit floats
// and float32 are carried in float32 or better.
enum class ScanKind : uint8_t {
  kSum,            // all but bool
  kProd,           // all but bool
  kMax,            // and the last place of it; NaN stays
  kMin,            // likewise
  kLogSumExp,      // log of the sum of exp(x); floats
  kLinear,         // s[i] = x[i] + other[i] s[i - 1], shifted: other[i - 1]; floats
  kProductBefore,  // y[i] = other[i] times the product of the x before i; floats
};

}  // namespace oneflow_lite
